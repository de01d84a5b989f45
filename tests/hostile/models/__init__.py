"""Models whose tables are damaged one by one, and what commands make of them."""
