"""Options of a delegate as one text, ``key1:value1;key2:value2``."""

from __future__ import annotations

import re
from typing import Final

from evaltools.errors import UsageError

_ITEM: Final = re.compile(r'(?P<key>[^:;"]+):(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^:;"][^:;]*))(?:;|$)')


def parse_options(flag: str, text: str) -> dict[str, str]:
    """Read ``key1:value1;key2:value2``, in order; the last item may be followed by ``;``.

    A value in double quotes may contain ``:`` and ``;``, and ``""`` for a quote.

    Raises :class:`UsageError`, which names ``flag``, for an item that is no pair and for a key that is given twice.

    >>> parse_options("external_delegate_options", 'precision:fp16;cache:"/tmp/a:b"')
    {'precision': 'fp16', 'cache': '/tmp/a:b'}
    """
    options: dict[str, str] = {}
    position = 0
    while position < len(text):
        item = _ITEM.match(text, position)
        if item is None:
            raise UsageError(_no_pair(flag, text[position:]))
        key, quoted = item["key"], item["quoted"]
        if key in options:
            raise UsageError(f"--{flag}: the key {key!r} is given twice; give it once")
        options[key] = item["plain"] if quoted is None else quoted.replace('""', '"')
        position = item.end()
    return options


def _no_pair(flag: str, rest: str) -> str:
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
    native = "The native tools drop or alter such an item without a word. " if flag.startswith("external") else ""
    return f"--{flag}: the item {item!r} is no key:value pair ({reason}). {native}Write key1:value1;key2:value2"
