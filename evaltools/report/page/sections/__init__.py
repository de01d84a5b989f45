"""The sections of a page, one file each: pure functions from a result to what is shown."""
