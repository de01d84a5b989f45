"""One typed result, many renderings."""
