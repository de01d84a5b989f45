"""Carries out requests: measures here, resumes, merges shards, and runs on a cluster."""
