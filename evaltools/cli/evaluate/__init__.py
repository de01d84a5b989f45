"""The commands that evaluate a task: one module serves them all."""
