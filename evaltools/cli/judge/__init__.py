"""``evaltools gate`` and ``power``: what results are compared with."""
