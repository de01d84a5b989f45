"""What the native tools' own programs found, as results of evaltools."""
