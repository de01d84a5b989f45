"""``evaltools convert``."""
