"""A configuration: a runtime, its kernels, its threads and its delegates."""

from __future__ import annotations

import reprlib
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.delegates import (
    COMPILED,
    DELEGATES,
    EMULATED,
    LITERT,
    PARAMETERS,
    TFLITE_RUNTIME,
    Delegate,
    DelegateSettings,
)
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.provider import library_file
from evaltools.delegates.registry import OURS
from evaltools.errors import UsageError
from evaltools.extensions import RUNTIMES as OTHER_RUNTIMES
from evaltools.extensions import entries
from evaltools.parameter import Parameter, Value, did_you_mean, format_value, split_flag

AUTO: Final = "auto"
OUR_RUNTIMES: Final = {
    LITERT: "ai_edge_litert",
    TFLITE_RUNTIME: "tflite_runtime",
    COMPILED: "ai_edge_litert",
    EMULATED: "onnxruntime_qnn",
}
"""The runtimes and the package that each needs, best first; ``evaltools.runtime.NAME`` holds the runtime.

A new runtime is one file there plus one line here, and a word in the file of each delegate that it can create.
"""
RUNTIMES: Final = {entry.name: entry.module for entry in entries(OTHER_RUNTIMES)} | OUR_RUNTIMES
"""With those of other packages, and the module that each is in."""
NATIVE: Final = "native"
"""What runs a model where a configuration has a ``native_binary``: that program, in the place of a Python runtime."""
NATIVE_BINARY: Final = "native_binary"
DEVICE: Final = "device"
DEVICE_LIBRARIES: Final = "device_libraries"
KERNELS: Final = ("default", "builtin", "reference")
_LONGEST_NAME: Final = 60
_VERSION: Final = "=="
_MOST_THREADS: Final = 1024
_DELEGATE_KEYS: Final = {delegate.key: delegate for delegate in DELEGATES if delegate.key}

OWN_PARAMETERS: Final = (
    Parameter(
        "runtime",
        "Python runtime: the interpreters of ai-edge-litert (litert) and tflite-runtime, or ai-edge-litert's "
        "CompiledModel (compiled), which has GPU and NPU; emulated runs the NPU of a phone's chip (--npu_soc); auto "
        "takes the first that can do what the delegates ask for. "
        "litert==2.1.3 is that version of its package, which pip installs into a cache of its own.",
        default=AUTO,
        has_versions=True,
        choices=(AUTO, *OUR_RUNTIMES, *(name for name in RUNTIMES if name not in OUR_RUNTIMES)),
    ),
    Parameter(
        "kernels",
        "CPU kernels: default (the runtime adds XNNPACK), builtin (no XNNPACK), reference (plain C++, slow).",
        default="default",
        choices=KERNELS,
    ),
    Parameter(
        "num_interpreter_threads",
        "CPU threads of the interpreter; -1: the runtime decides.",
        default=1,
        short="threads",
    ),
    Parameter("num_threads", "Another name for num_interpreter_threads, which the native tools ignore.", default=-1),
    Parameter("delegate", "Switch one delegate on, before those of --use_* flags.", choices=("", *_DELEGATE_KEYS)),
    Parameter(
        NATIVE_BINARY,
        "TensorFlow's benchmark_model, a file here, runs the model instead of a Python runtime: on this computer, or "
        "with --at=adb:SERIAL on a phone. LiteRT's own program of that name reads no inputs, so it cannot.",
        role="input_file",
    ),
    Parameter(
        DEVICE,
        "The adb serial number of the device that --native_binary is sent to; --at=adb:SERIAL says it for all.",
    ),
    Parameter(
        DEVICE_LIBRARIES,
        "A folder here with libraries that --native_binary needs on the device, as those of a vendor: it is sent, and "
        "LD_LIBRARY_PATH and ADSP_LIBRARY_PATH name it there.",
        role="input_folder",
    ),
)
CONFIGURATION_PARAMETERS: Final = {parameter.name: parameter for parameter in OWN_PARAMETERS} | dict(PARAMETERS)
"""Every flag that describes a configuration, by name."""
CONFIGURATION_NAMES: Final = {name: each.name for each in CONFIGURATION_PARAMETERS.values() for name in each.names}
"""The names of these flags by every name that they go by."""


class Configuration(Struct, frozen=True):
    """What a model runs with. ``num_threads`` is 1 or more, or -1, which leaves the number to the runtime.

    ``runtime_version`` is that of the runtime's package, empty for the one that is installed. ``keeps_tensors``: no
    buffer is used for two tensors, which is slower and no flag asks for; it shows a runtime that reuses one too early.
    ``native_binary`` is a program that runs the model, on the ``device`` with that serial number, empty for this
    computer; the libraries in the folder ``device_libraries`` go with it.

    >>> configuration = Configuration.from_text("one", "runtime=litert use_xnnpack=false")
    >>> configuration.runtime, configuration.num_threads, configuration.to_flags()
    ('litert', 1, ['--runtime=litert', '--use_xnnpack=false'])
    """

    name: str
    runtime: str = AUTO
    kernels: str = "default"
    num_threads: int = 1
    delegates: DelegateSettings = field(default_factory=DelegateSettings)
    runtime_version: str = ""
    keeps_tensors: bool = False
    native_binary: str = ""
    device: str = ""
    device_libraries: str = ""

    @classmethod
    def from_flags(
        cls, name: str, flags: Iterable[tuple[str, str]], native: bool = False, kernels: str = "default"
    ) -> Configuration:
        """Build from ``(flag name, text)`` pairs in the order given.

        ``num_interpreter_threads=0`` means 1, as in the native tools. ``native`` restores what the native tools do with
        ``--num_threads`` (nothing) and ``--delegate=xnnpack`` (which forces fp16 as well). ``kernels`` is the kernel
        set where no flag states one. Raises :class:`UsageError` for unknown flags, bad values and flags without effect.
        """
        own: dict[str, str] = {}
        defaults = {parameter.name: format_value(parameter.default) for parameter in OWN_PARAMETERS}
        defaults["kernels"] = kernels
        delegate_flags: list[tuple[str, str]] = []
        for given, text in flags:
            if given not in CONFIGURATION_NAMES:
                hint = did_you_mean(given, CONFIGURATION_NAMES)
                raise UsageError(f"--{given}: no such flag in a configuration.{hint}")
            flag = CONFIGURATION_NAMES[given]
            if flag in PARAMETERS:
                delegate_flags.append((flag, text))
            elif own.setdefault(flag, text) != text:
                raise UsageError(f"--{flag} is given twice, as {own[flag]!r} and {text!r}; keep one")
        if own.get("delegate") == "":
            raise UsageError(f"--delegate is empty; use one of {', '.join(_DELEGATE_KEYS)}, or leave the flag out")
        if native and sum(flag == EXTERNAL.enabled_by for flag, _ in delegate_flags) > 1:
            message = f"the native tools load only the first --{EXTERNAL.enabled_by}; give one, or drop --compat=native"
            raise UsageError(message)
        texts = defaults | own
        values = {parameter.name: parameter.parse(texts[parameter.name]) for parameter in OWN_PARAMETERS}
        runtime, _, version = str(values["runtime"]).partition(_VERSION)
        return cls(
            name=name,
            runtime=runtime,
            runtime_version=version,
            kernels=str(values["kernels"]),
            num_threads=_threads(own, values, native) or 1,
            delegates=DelegateSettings.from_flags(_named_delegate(str(values["delegate"]), native) + delegate_flags),
            native_binary=str(values[NATIVE_BINARY]),
            device=str(values[DEVICE]),
            device_libraries=str(values[DEVICE_LIBRARIES]),
        )

    @classmethod
    def from_text(cls, name: str, text: str, native: bool = False, kernels: str = "default") -> Configuration:
        """Build from a text such as ``runtime=litert --use_xnnpack=true``; quotes work as in a shell."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"configuration {name!r}: {text!r} cannot be split into flags: {error}") from None
        try:
            return cls.from_flags(name, [split_flag(word, CONFIGURATION_PARAMETERS) for word in words], native, kernels)
        except UsageError as error:
            raise UsageError(f"configuration {name!r}: {error}") from None

    @property
    def xnnpack(self) -> bool | None:
        """The value of ``use_xnnpack``: True: it must run; False: it must not; None: the runtime decides."""
        return bool(self.delegates.value("use_xnnpack")) if self.delegates.is_given("use_xnnpack") else None

    @property
    def flags_from_outside(self) -> list[str]:
        """The flags that belong to delegates or runtimes of other packages."""
        ours = {delegate.enabled_by for delegate in OURS}
        others = [f"--{each.enabled_by}" for each in self.delegates.requested if each.enabled_by not in ours]
        return others if self.runtime in (AUTO, *OUR_RUNTIMES) else [*others, f"--runtime={self.runtime}"]

    @property
    def kernel_set(self) -> str:
        """The kernels in force: ``default`` is builtin kernels with XNNPACK, as ``use_xnnpack=true`` asks for too."""
        if self.xnnpack is None:
            return self.kernels
        if self.xnnpack:
            return "default"
        return "builtin" if self.kernels == "default" else self.kernels

    def to_flags(self) -> list[str]:
        """The flags that give this configuration again, ``--name=value``; defaults are left out."""
        own: dict[str, Value] = {
            "runtime": f"{self.runtime}{_VERSION}{self.runtime_version}" if self.runtime_version else self.runtime,
            "kernels": self.kernels,
            "num_interpreter_threads": self.num_threads,
            NATIVE_BINARY: self.native_binary,
            DEVICE: self.device,
            DEVICE_LIBRARIES: self.device_libraries,
        }
        stated = [CONFIGURATION_PARAMETERS[name].format(value) for name, value in own.items()
                  if value != CONFIGURATION_PARAMETERS[name].default]  # fmt: skip
        return stated + self.delegates.to_flags()

    @property
    def files(self) -> list[Path]:
        """The files and folders that the delegates' flags name."""
        given = self.delegates.given
        own = [Path(path) for path in (self.native_binary, self.device_libraries) if path]
        return own + [Path(str(value)) for name, value in given if PARAMETERS[name].is_path and value]

    def with_paths(self, rewrite: Callable[[Parameter, Value], Value]) -> Configuration:
        """The same with what ``rewrite`` makes of the value of each flag that names a path."""
        given = tuple((name, rewrite(PARAMETERS[name], value)) for name, value in self.delegates.given)
        own = {
            name: str(rewrite(CONFIGURATION_PARAMETERS[name], getattr(self, name)))
            for name in (NATIVE_BINARY, DEVICE_LIBRARIES)
        }
        return replace(self, delegates=replace(self.delegates, given=given), **own)

    @property
    def libraries(self) -> list[Path]:
        """The files that code is loaded from: external delegates, and the program in the place of a runtime."""
        program = [Path(self.native_binary)] if self.native_binary else []
        return program + [Path(library_file(str(path))) for path in self.delegates.values(EXTERNAL.enabled_by)]

    def without(self, delegate: Delegate) -> Configuration:
        """The same configuration without one of its delegates."""
        return replace(self, delegates=self.delegates.without(delegate))

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > _LONGEST_NAME:
            shown = repr(self.name[:_LONGEST_NAME])
            raise UsageError(
                f"{shown} is not a name for a configuration: use 1 to {_LONGEST_NAME} printable characters"
            )
        if self.num_threads < -1 or self.num_threads == 0 or self.num_threads > _MOST_THREADS:
            message = f"{self.num_threads} interpreter threads: use 1 to {_MOST_THREADS}, or -1: the runtime decides"
            raise UsageError(message)
        if self.runtime_version and self.runtime not in OUR_RUNTIMES:
            message = (
                f"--runtime={self.runtime}{_VERSION}{self.runtime_version}: only {', '.join(OUR_RUNTIMES)} can have a "
                f"version, as in --runtime={LITERT}{_VERSION}{self.runtime_version}"
            )
            raise UsageError(message)
        for flag in (DEVICE, DEVICE_LIBRARIES):
            if getattr(self, flag) and not self.native_binary:
                raise UsageError(f"--{flag} has no effect without --{NATIVE_BINARY}; add that, or leave it out")
        if self.native_binary and self.runtime != AUTO:
            raise UsageError(
                f"--runtime={self.runtime} is a runtime for Python, which --{NATIVE_BINARY} takes the place of; drop "
                "one of the two"
            )
        if self.xnnpack and self.kernels == "reference":
            message = (
                "--kernels=reference with --use_xnnpack=true contradict each other: the reference kernels "
                "come without XNNPACK. Drop one of the two"
            )
            raise UsageError(message)


def configurations_from_yaml(document: Any, source: str, native: bool = False) -> list[Configuration]:
    """Read the content of a ``--configs`` file: a mapping of names to flags.

    Flags are one text as in ``--config``, or a mapping of flag to value. Raises :class:`UsageError` naming the place.
    """
    if not isinstance(document, Mapping) or not document:
        message = f'{source}: expected a mapping of names to flags, as in "gpu: use_gpu=true"; got {_kind(document)}'
        raise UsageError(message)
    return [_from_yaml_entry(name, flags, source, native) for name, flags in document.items()]


def _from_yaml_entry(name: Any, flags: Any, source: str, native: bool) -> Configuration:
    place = f"{source}: {name}"
    if not isinstance(name, str):
        raise UsageError(f"{place}: a configuration's name must be text, got {_kind(name)}; put it in quotes")
    try:
        if isinstance(flags, str) or flags is None:
            return Configuration.from_text(name, flags or "", native)
        if isinstance(flags, Mapping):
            return Configuration.from_flags(name, [_yaml_flag(flag, value) for flag, value in flags.items()], native)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    raise UsageError(f"{place}: expected flags as a text or a mapping, got {_kind(flags)}")


def _yaml_flag(flag: Any, value: Any) -> tuple[str, str]:
    if not isinstance(value, (bool, int, float, str)):
        raise UsageError(f"{flag}: expected true, false, a number or a text, got {_kind(value)}")
    return str(flag).removeprefix("--").replace("-", "_"), format_value(value)


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {reprlib.repr(value)}"


def _named_delegate(key: str, native: bool) -> list[tuple[str, str]]:
    """The flags that ``--delegate=KEY`` stands for; they come before every ``--use_*``."""
    if not key:
        return []
    flags = [(_DELEGATE_KEYS[key].enabled_by, "true")]
    if native and key == "xnnpack":
        flags.append(("xnnpack_force_fp16", "true"))
    return flags


def _threads(own: Mapping[str, str], values: Mapping[str, object], native: bool) -> int:
    threads = values["num_interpreter_threads"]
    other = values["num_threads"]
    assert isinstance(threads, int)
    assert isinstance(other, int)
    if native or "num_threads" not in own:
        return threads
    if "num_interpreter_threads" in own and other != threads:
        message = (
            f"--num_threads={other} and --num_interpreter_threads={threads} contradict each other; keep the second"
        )
        raise UsageError(message)
    return other
