"""Many models in many configurations: each job with each model is an ordinary run, and one result has all."""
