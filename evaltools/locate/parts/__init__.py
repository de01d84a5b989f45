"""Parts of a model: what they are, how they are run in a process of their own, and what comes of them."""
