"""The flags of configurations as TensorFlow's programs read them.

These take a flag that they do not know for a misspelt word, warn and go on without it; so none is printed that they
lack: what they cannot do is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.configuration import AUTO, Configuration
from evaltools.delegates import PARAMETERS, parse_external_options
from evaltools.delegates.npu import NPU
from evaltools.errors import UsageError
from evaltools.parameter import Value

_ELSEWHERE: Final = "leave it out, or run evaltools itself there"
_VENDOR: Final = "npu_vendor"
"""It says which flags there may be; the programs know vendors by their libraries."""
_OF_NPUS: Final = frozenset(parameter.name for parameter in NPU.parameters) - {"npu_soc"}


def configuration_flags(configuration: Configuration, files: Mapping[str, str], with_npu: bool = False) -> list[str]:
    """The flags of a configuration as the native tools read them, not quoted for any shell.

    ``files`` maps files that delegate flags name here to their paths on the device; others stay as they are.
    ``with_npu``: the program may be LiteRT's, which has NPUs; another one says that it does not know their flags.
    Raises :class:`UsageError` for a configuration that the native tools cannot have.

    >>> configuration_flags(Configuration.from_text("gpu", "use_gpu=true kernels=builtin"), {})
    ['--num_interpreter_threads=1', '--use_gpu=true', '--use_xnnpack=false']
    """
    where = f"configuration {configuration.name!r}"
    if configuration.runtime != AUTO:
        raise UsageError(
            f"{where}: --runtime={configuration.runtime} is a runtime for Python, which a native tool is not; "
            f"{_ELSEWHERE}"
        )
    if configuration.kernels == "reference":
        raise UsageError(
            f"{where}: --kernels=reference: the native tools have no such kernels; use --kernels=builtin, or run "
            "evaltools itself there"
        )
    settings = configuration.delegates
    for name, _ in settings.given:
        refused = None if with_npu and name in _OF_NPUS else PARAMETERS[name].not_native
        if refused is not None:
            raise UsageError(f"{where}: --{name}: {refused.reason}; {_ELSEWHERE}")
        if PARAMETERS[name].repeatable and len(settings.values(name)) > 1:
            raise UsageError(
                f"{where}: --{name} is given {len(settings.values(name))} times; the native tools take the first and "
                "ignore the others. Give one"
            )
    words = [f"--num_interpreter_threads={configuration.num_threads}"]
    given = [(name, value) for name, value in settings.given if name != _VENDOR]
    words += [PARAMETERS[name].format(_value(where, name, value, files)) for name, value in given]
    if configuration.kernels == "builtin" and configuration.xnnpack is None:
        words.append("--use_xnnpack=false")
    return words


def _value(where: str, name: str, value: Value, files: Mapping[str, str]) -> Value:
    if PARAMETERS[name].is_path or name in _OF_NPUS:
        return files.get(str(value), value)
    if name != "external_delegate_options":
        return value
    options = parse_external_options(str(value))
    odd = [key for key, text in options.items() if ":" in text or ";" in text or not text]
    if odd:
        raise UsageError(
            f"{where}: --{name}: the value of {odd[0]!r} holds ':' or ';', or nothing; the native tools drop such an "
            "option without a word. Give it another value, or run evaltools itself there"
        )
    return ";".join(f"{key}:{text}" for key, text in options.items())
