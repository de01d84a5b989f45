"""Tasks of your own: one function with typed parameters gives examples, inputs, scores and metrics."""
