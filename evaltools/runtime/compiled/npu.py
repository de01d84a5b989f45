"""The NPU of LiteRT's ``CompiledModel``, through the libraries of Qualcomm's SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.delegates.npu import EMULATED_VENDORS, NPU
from evaltools.delegates.npu_settings import Field, fields
from evaltools.errors import ConfigurationUnavailable
from evaltools.runtime.compiled.messages import first_error


def environment(settings: DelegateSettings) -> Mapping[str, str]:
    """Where the dispatch library and the compiler plug-in are; raises :class:`ConfigurationUnavailable`."""
    vendor = str(settings.value("npu_vendor"))
    if vendor not in EMULATED_VENDORS:
        message = (
            f"NPUs of {vendor} are not run here; LiteRT's benchmark_model measures them on a device: evaltools device "
            "run benchmark --native_binary=benchmark_model"
        )
        raise ConfigurationUnavailable(message, NPU.name)
    package = importlib.util.find_spec("ai_edge_litert")
    folder = Path(str(package.origin)).parent if package else Path()
    own = folder / "vendors" / vendor
    dispatch = Path(str(settings.value("dispatch_library_path")) or own / "dispatch")
    compiler = Path(str(settings.value("compiler_plugin_library_path")) or own / "compiler")
    for flag, path, pattern in (
        ("dispatch_library_path", dispatch, "libLiteRtDispatch_*"),
        ("compiler_plugin_library_path", compiler, "libLiteRtCompilerPlugin_*"),
    ):
        if not any(path.glob(pattern)):
            message = f"there is no {pattern} of {vendor} in the ai-edge-litert wheel"
            if settings.value(flag):
                message = f"--{flag}={path} has no {pattern}"
            step = f"give --{flag} from the vendor's SDK, or --npu_soc=SM8750 to emulate that chip here"
            raise ConfigurationUnavailable(f"{message}; {step}", NPU.name)
    return {"runtime_path": str(folder), "dispatch_library_path": str(dispatch), "compiler_plugin_path": str(compiler)}


def set_options(options: Any, configuration: Configuration) -> None:
    """Set what was given; raises :class:`ConfigurationUnavailable` for what would have no effect."""
    settings = configuration.delegates
    for field in fields(settings):
        _set_field(options.qualcomm_options, field)


def _set_field(options: Any, field: Field) -> None:
    if not field.member:
        setattr(options, field.name, field.value)
        return
    members = getattr(options, field.name.upper())
    if field.member not in members.__members__:
        known = ", ".join(name.lower() for name in members.__members__)
        message = f"{field.given} cannot be honoured by the Python runtime compiled: ai-edge-litert knows {known}"
        raise ConfigurationUnavailable(message, NPU.name)
    setattr(options, field.name, members[field.member])


def explain(messages: str) -> str:
    """What is missing and what to do, from what was printed; empty where that says nothing."""
    if "Failed to apply compiler plugins" in messages:
        return f"its compiler plug-in could not be used: {first_error(messages) or 'no compiler plug-in was found'}"
    return first_error(messages)
