"""Examples in: folders of pictures, label lists, annotations of objects, inputs for any model, the embedded sample.

Annotations of every format become ``AnnotatedImages``; those that ``evaltools convert`` reads, an ``AnnotatedFolder``,
which is that with the files of the pictures. The folder is installed as ``evaltools.datasets``. A new kind of data is
one file here; the task or the converter that reads it calls it.
"""
