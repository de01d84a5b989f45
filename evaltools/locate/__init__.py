"""Finds the operator that makes the difference between a delegate and the CPU.

``request`` reads what is asked for, ``run`` carries it out. ``parts`` runs parts of the model in a process of its own,
``search`` decides which parts and judges their figures, ``causes`` holds a culprit against known ways to be wrong,
``bundle`` writes a reproduction.
"""
