"""Examples in: folders of pictures, label lists, the embedded sample.

The folder is installed as ``evaltools.datasets``. A new kind of data is one file here; the task that reads it calls it.
"""
