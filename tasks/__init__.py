"""The tasks, a folder each: which examples there are, how one becomes an input, what an output means, which figures.

``shared`` has what all of them stand on, ``native`` makes results of what the native tools' own programs print, and
``inspection`` looks at models and machines. The folder is installed as ``evaltools.tasks``.
"""
