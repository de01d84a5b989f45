"""Two models of the same graph, held against each other layer by layer: by the names of their tensors.

``match`` says which tensors belong together, ``saved`` reads tensors that another framework gave, ``side`` has the
values of either.
"""
