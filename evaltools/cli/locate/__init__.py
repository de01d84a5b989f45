"""``evaltools locate``."""
