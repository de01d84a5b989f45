"""Files that a benchmark writes beside its result: trace."""
