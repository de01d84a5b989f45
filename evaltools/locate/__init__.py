"""Finds the operator that makes the difference between a delegate and the CPU.

``request`` reads what is asked for, ``run`` carries it out: ``bench`` runs parts of the model in a process of its own
(``child``, ``measurement``), ``search`` decides which parts, ``judge`` applies the verdict rule to their figures,
``context`` looks at operators together, ``answer`` gives the verdict. ``explain`` looks a suspect up in the
table of ``causes``, ``bundle`` writes a reproduction. ``by_name`` compares two models by the names of their tensors
(``names``, ``sides``), ``layers`` one layer at a time.
"""
