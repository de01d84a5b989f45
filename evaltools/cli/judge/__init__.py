"""``evaltools gate`` and ``power``: what results are held against."""
