"""Runs the operators of a model one by one on the tensors of a reference, and says which one makes a difference.

``search`` decides which parts of the model run, ``bench`` runs them in a process of its own (``child``,
``measurement``), ``judge`` applies the verdict rule to their figures (``difference``, ``arithmetic``), and ``answer``
says what they show. ``evaltools locate`` shows all of it; the inference diff asks it where size decides nothing.
"""
