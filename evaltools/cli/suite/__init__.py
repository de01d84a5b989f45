"""``evaltools suite``."""
