"""What is written for others to reproduce a finding: a small model, inputs, a script, and text for an issue."""

from evaltools.locate.bundle.write import BUNDLE_FILES, RESULT, write_bundle

__all__ = ["BUNDLE_FILES", "RESULT", "write_bundle"]
