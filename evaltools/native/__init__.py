"""The native tools: the lines that they print, and the logs that they leave."""
