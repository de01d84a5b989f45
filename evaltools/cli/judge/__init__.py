"""``evaltools gate``, ``baseline`` and ``power``: what results are held against."""
