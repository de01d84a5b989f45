"""What commands have in common: flags, streams, the terminal."""
