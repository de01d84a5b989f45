"""Finds the operator that makes the difference between a delegate and the CPU.

``bench`` runs parts of a model in a process of its own, ``judge`` says of numbers alone which operator is at fault,
``methods`` decide which parts are run.
"""
