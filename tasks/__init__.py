"""The tasks: which examples there are, how one becomes an input, what an output means, which metrics.

The folder is installed as ``evaltools.tasks``. A new task is one file here plus one command in ``evaltools.cli``.
"""
