"""The tasks, a folder each: which examples there are, how one becomes an input, what an output means, which figures.

``framework`` is what all of them stand on: ``@et.task`` and its parts. The folder is installed as ``evaltools.tasks``.
"""
