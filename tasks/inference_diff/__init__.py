"""The same inputs through a reference and other configurations."""
