"""What kind of model this is, and what works on this machine."""
