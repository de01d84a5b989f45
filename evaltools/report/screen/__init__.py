"""The first screen of results: the answer, one table of all rows, what is special of some, what to do next."""
