"""Files on devices: sent, kept, fetched."""
