"""The lines and messages of the native tools, made from results."""
