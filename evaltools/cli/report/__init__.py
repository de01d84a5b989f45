"""``evaltools report``."""
