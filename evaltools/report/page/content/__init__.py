"""What stands on a page, before it is rendered."""
