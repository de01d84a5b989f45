"""External delegate: a shared library that exports ``tflite_plugin_create_delegate``."""

from collections.abc import Mapping
from typing import Final

from evaltools.delegates.option_text import parse_options
from evaltools.delegates.provider import LITERT, TFLITE_RUNTIME, Delegate, Library
from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter, Value

_MOST_OPTIONS: Final = 256


def parse_external_options(text: str) -> dict[str, str]:
    """Read ``key1:value1;key2:value2``, in order.

    The native tools split at ``;`` and then at ``:``. They silently drop an item that does not give exactly two pieces
    (``path:/a:b``, ``k``, ``k:``), shorten ``k:v:`` to ``k:v`` and take ``:v`` for a value without a key. Here each of
    these is an error; a value with ``:`` or ``;`` stands in double quotes. The last item may be followed by ``;``.

    >>> parse_external_options("precision:fp16;ops:add,conv")
    {'precision': 'fp16', 'ops': 'add,conv'}
    """
    options = parse_options("external_delegate_options", text)
    if len(options) > _MOST_OPTIONS:
        message = f"--external_delegate_options: {len(options)} options; an external delegate takes {_MOST_OPTIONS}"
        raise UsageError(message)
    return options


def _check(values: Mapping[str, Value]) -> None:
    parse_external_options(str(values.get("external_delegate_options", "")))


def _library(values: Mapping[str, Value]) -> Library:
    options = parse_external_options(str(values["external_delegate_options"]))
    return Library(str(values["external_delegate_path"]), options)


EXTERNAL: Final = Delegate(
    name="EXTERNAL",
    key="",
    enabled_by="external_delegate_path",
    parameters=(
        Parameter(
            "external_delegate_path",
            "Shared library of the delegate; a path switches it on. Given again, it adds another delegate, which takes "
            "what those before it left; the external_delegate_* flags behind a path belong to that one.",
            repeatable=True,
            log="External delegate path",
            role="library",
        ),
        Parameter(
            "external_delegate_options",
            'Options for it, key1:value1;key2:"value with : or ;".',
            log="External delegate options",
        ),
        Parameter(
            "external_delegate_per_worker",
            "true: each worker may load it for itself. false: it owns its device, and all workers share one session.",
            default=False,
            not_native=NotNative("a native tool has one worker"),
        ),
    ),
    works_in="tflite_runtime, ai-edge-litert and the native tools",
    here="a library built for this machine; that of a phone is another build, and drives other hardware",
    runtimes={LITERT: {}, TFLITE_RUNTIME: {}},
    check=_check,
    library=_library,
    per_worker_flag="external_delegate_per_worker",
)
