"""A page as HTML and Markdown."""
