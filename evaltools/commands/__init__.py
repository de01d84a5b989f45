"""The words of commands become requests: those of the command line, and those in a file of gates."""
