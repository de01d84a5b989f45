"""From a request to its result: measured here, resumed, merged from shards, done on a cluster."""
