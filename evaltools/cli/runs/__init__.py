"""The commands about run folders."""
