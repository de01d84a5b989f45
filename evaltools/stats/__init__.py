"""Statistics of paired comparisons: intervals, tests, resampling and sample sizes, as functions of counts and arrays.

SciPy is imported where it is used: it takes half a second, and evaluations need it at their end.
"""
