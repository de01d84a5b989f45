"""Programs on devices: started, watched, ended."""
