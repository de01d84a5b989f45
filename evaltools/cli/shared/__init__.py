"""What commands have in common: files that they write, streams, progress, the terminal."""
