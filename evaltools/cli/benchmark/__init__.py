"""``evaltools benchmark``."""
