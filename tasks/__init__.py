"""The tasks: which examples there are, how one becomes an input, what an output means, which metrics.

``imagenet``, ``coco`` and ``inference_diff`` follow ``evaltools.engine.Task``; ``NAME_evaluation`` runs one, from
request to result. The folder is installed as ``evaltools.tasks``. ``CONTRIBUTING.md`` lists what else a new task needs.
"""
