"""Shows which operator makes the difference between a delegate and the CPU, why, and how to reproduce it.

``request`` reads what is asked for, ``run`` has the operators searched (:mod:`evaltools.operators`). ``explain`` looks
a suspect up in the table of ``causes``, ``bundle`` writes a reproduction, ``operator_rows`` makes the rows of the
result. ``by_name`` compares two models by the names of their tensors (``sides``), ``layers`` one layer at a time.
"""
