"""The search: which parts are run, what their figures mean, and what is made of them."""
