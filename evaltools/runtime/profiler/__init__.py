"""Operator times of ai-edge-litert."""
