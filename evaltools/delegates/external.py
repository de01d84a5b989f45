"""External delegate: a shared library that exports ``tflite_plugin_create_delegate``."""

from collections.abc import Mapping
from typing import Final

from evaltools.delegates.provider import LITERT, TFLITE_RUNTIME, Delegate
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, Value

_MOST_OPTIONS: Final = 256


def parse_external_options(text: str) -> dict[str, str]:
    """Read ``key1:value1;key2:value2``, in order.

    The native tools split at ``;`` and then at ``:``. They silently drop an item that does not give exactly two pieces
    (``path:/a:b``, ``k``, ``k:``), shorten ``k:v:`` to ``k:v`` and take ``:v`` for a value without a key. Here each of
    these is an error. The last item may be followed by ``;``.

    >>> parse_external_options("precision:fp16;ops:add,conv")
    {'precision': 'fp16', 'ops': 'add,conv'}
    """
    options: dict[str, str] = {}
    items = text.split(";")
    if items[-1] == "":
        items.pop()
    for item in items:
        key, separator, value = item.partition(":")
        if not (key and separator and value) or ":" in value:
            raise UsageError(_dropped_item(item))
        if key in options:
            raise UsageError(f"--external_delegate_options: the key {key!r} is given twice; give it once")
        options[key] = value
    if len(options) > _MOST_OPTIONS:
        message = f"--external_delegate_options: {len(options)} options; an external delegate takes {_MOST_OPTIONS}"
        raise UsageError(message)
    return options


def _dropped_item(item: str) -> str:
    reason = "it has more than one ':'" if item.count(":") > 1 else "key and value must both be there"
    if "," in item and item.count(":") > 1:
        reason += "; options are separated by ';', not by ','"
    return (
        f"--external_delegate_options: the item {item!r} is no key:value pair ({reason}). "
        "The native tools drop or alter such an item without a word. Write key1:value1;key2:value2"
    )


def _check(values: Mapping[str, Value]) -> None:
    parse_external_options(str(values.get("external_delegate_options", "")))


EXTERNAL: Final = Delegate(
    name="EXTERNAL",
    key="",
    enabled_by="external_delegate_path",
    parameters=(
        Parameter("external_delegate_path", "string", "", "Shared library of the delegate; a path switches it on."),
        Parameter(
            "external_delegate_options",
            "string",
            "",
            "Options for it, key1:value1;key2:value2.",
        ),
        Parameter(
            "external_delegate_per_worker",
            "bool",
            False,
            "true: each worker may load it for itself. false: it owns its device, and all workers share one session.",
        ),
    ),
    works_in="tflite_runtime, ai-edge-litert and the native tools",
    runtimes={LITERT: {}, TFLITE_RUNTIME: {}},
    check=_check,
    per_worker_flag="external_delegate_per_worker",
)
