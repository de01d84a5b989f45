"""What the evaluations have in common."""
