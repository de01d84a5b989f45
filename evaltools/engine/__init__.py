"""One pass over the examples, N configurations, one record per example and configuration."""
