"""Makes results of evaltools from runs of the native tools' own programs."""
