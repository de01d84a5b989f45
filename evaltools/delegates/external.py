"""External delegate: a shared library that exports ``tflite_plugin_create_delegate``."""

import re
from collections.abc import Mapping
from typing import Final

from evaltools.delegates.provider import LITERT, TFLITE_RUNTIME, Delegate, Library, library_file
from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter, Value

_OPTIONS: Final = "external_delegate_options"
_MOST_OPTIONS: Final = 256
_ITEM: Final = re.compile(r'(?P<key>[^:;"]+):(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^:;"][^:;]*))(?:;|$)')


def parse_external_options(text: str) -> dict[str, str]:
    """Read ``key1:value1;key2:value2``, in order.

    The native tools split at ``;`` and then at ``:``. They silently drop an item that does not give exactly two pieces
    (``path:/a:b``, ``k``, ``k:``), shorten ``k:v:`` to ``k:v`` and take ``:v`` for a value without a key. Here each of
    these is an error, and so is a key that is given twice. A value in double quotes may contain ``:`` and ``;``, and
    ``""`` for a quote. The last item may be followed by ``;``.

    >>> parse_external_options('precision:fp16;ops:add,conv;cache:"/tmp/a:b"')
    {'precision': 'fp16', 'ops': 'add,conv', 'cache': '/tmp/a:b'}
    """
    options: dict[str, str] = {}
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise UsageError(_no_pair(text[position:]))
        key, quoted = item["key"], item["quoted"]
        if key in options:
            raise UsageError(f"--{_OPTIONS}: the key {key!r} is given twice; give it once")
        options[key] = item["plain"] if quoted is None else quoted.replace('""', '"')
        position = item.end()
    if len(options) > _MOST_OPTIONS:
        raise UsageError(f"--{_OPTIONS}: {len(options)} options; an external delegate takes {_MOST_OPTIONS}")
    return options


def _no_pair(rest: str) -> str:
    item = rest.partition(";")[0]
    reason = "key and value must both be there"
    if '"' in item:
        reason = 'a value in quotes ends with a quote, then comes ";" or nothing'
    elif item.count(":") > 1 and "," in item:
        reason = "it has more than one ':'; options are separated by ';', not by ','"
    elif item.count(":") > 1:
        reason = (
            "it has more than one ':'; put a value that contains one in double quotes, "
            "and in --config single quotes around the flag"
        )
    return (
        f"--{_OPTIONS}: the item {item!r} is not a key:value pair ({reason}). The native tools drop or alter such an "
        "item "
        "without a word. Write key1:value1;key2:value2"
    )


def _check(values: Mapping[str, Value]) -> None:
    parse_external_options(str(values.get(_OPTIONS, "")))


def _library(values: Mapping[str, Value]) -> Library:
    options = parse_external_options(str(values[_OPTIONS]))
    return Library(library_file(str(values["external_delegate_path"])), options)


EXTERNAL: Final = Delegate(
    name="EXTERNAL",
    key="",
    enabled_by="external_delegate_path",
    parameters=(
        Parameter(
            "external_delegate_path",
            "Shared library of the delegate, its path or the name of an installed one; it switches the delegate on. "
            "Given again, it adds another delegate, which takes what those before it left; the external_delegate_* "
            "flags behind a path belong to that one.",
            repeatable=True,
            log="External delegate path",
            role="library",
        ),
        Parameter(
            _OPTIONS,
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
