"""``evaltools doctor``, ``delegates``, ``inspect`` and ``demo``: what there is."""
