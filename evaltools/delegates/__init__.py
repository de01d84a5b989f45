"""The shared delegate-parameter layer.

Each delegate declares its flags once; those that only native tools take share a file. Command line, ``--config`` texts,
YAML, the JSON record, the native command line and ``docs/delegate-flags.md`` are derived from that. A new delegate is
one file here plus one line in ``registry.DELEGATES``; one from another package is an entry point of the group
``evaltools.delegates``.
"""

from evaltools.delegates.external import parse_external_options
from evaltools.delegates.provider import COMPILED, EMULATED, LITERT, TFLITE_RUNTIME, Delegate, Library
from evaltools.delegates.registry import COMMON, DELEGATES, PARAMETERS
from evaltools.delegates.settings import DelegateSettings

__all__ = [
    "COMMON",
    "COMPILED",
    "DELEGATES",
    "EMULATED",
    "LITERT",
    "PARAMETERS",
    "TFLITE_RUNTIME",
    "Delegate",
    "DelegateSettings",
    "Library",
    "parse_external_options",
]
