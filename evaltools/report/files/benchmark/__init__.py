"""Files that a benchmark writes beside its result: plot, trace."""
