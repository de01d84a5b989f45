"""Holds an operator that was wrong against known ways to be wrong.

A new signature is one function from a :class:`~evaltools.locate.causes.view.View` to a cause or None, and one line in
``table``.
"""
