"""The report: one page about results that people forward, and its first screen in Markdown."""
