"""Tasks that a YAML file states, without code: what the inputs are, what is right, what the output means."""
