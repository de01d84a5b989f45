"""NPUs of LiteRT's ``CompiledModel``, each through the libraries of its vendor in the ai-edge-litert wheel."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.delegates.npu import EMULATED_VENDORS, NPU
from evaltools.delegates.npu_flags import properties
from evaltools.delegates.npu_settings import Field, fields
from evaltools.errors import ConfigurationUnavailable
from evaltools.runtime.compiled.messages import first_error

_INTEL: Final = "intel_openvino"
_BACKENDS: Final = "intel_openvino_graph_backends"
_PROPERTIES: Final = "intel_openvino_configs_map"
_EFFECTIVE_ON_CPU: Final = "CACHE_DIR"
"""The property of OpenVINO that has an effect on its CPU."""
_MISSING: Final = re.compile(r"(libopenvino\S*\.so\.(\d{2})(\d)(\d)): cannot open shared object file")
_OPENVINO_LIBRARIES: Final = ("libopenvino.so.", "libopenvino_tensorflow_lite_frontend.so.")


def _load_openvino(settings: DelegateSettings) -> None:
    """Load OpenVINO's libraries, which are in no folder that the loader looks in, before they are needed.

    Raises :class:`ConfigurationUnavailable` for libraries that are damaged or lack others.
    """
    if settings.value("npu_vendor") != _INTEL:
        return
    spec = importlib.util.find_spec("openvino")
    if spec is None or spec.origin is None:
        return
    folder = Path(spec.origin).parent / "libs"
    for start in _OPENVINO_LIBRARIES:
        for path in sorted(folder.glob(f"{start}*")):
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError as error:
                found = _installed_openvino()
                package = f"openvino=={found}" if found else "openvino"
                message = f"{path} cannot be loaded: {error}; install it anew: pip install --force-reinstall {package}"
                raise ConfigurationUnavailable(message, NPU.name) from error


def environment(settings: DelegateSettings) -> Mapping[str, str]:
    """Where the vendor's dispatch library and compiler plug-in are."""
    package = importlib.util.find_spec("ai_edge_litert")
    folder = Path(str(package.origin)).parent if package else Path()
    vendor = folder / "vendors" / str(settings.value("npu_vendor"))
    dispatch = Path(str(settings.value("dispatch_library_path")) or vendor / "dispatch")
    compiler = Path(str(settings.value("compiler_plugin_library_path")) or vendor / "compiler")
    for flag, path, pattern in (
        ("dispatch_library_path", dispatch, "libLiteRtDispatch_*"),
        ("compiler_plugin_library_path", compiler, "libLiteRtCompilerPlugin_*"),
    ):
        if not any(path.glob(pattern)):
            message = f"there is no {pattern} of {settings.value('npu_vendor')} in the ai-edge-litert wheel"
            if settings.value(flag):
                message = f"--{flag}={path} has no {pattern}"
            is_emulated = settings.value("npu_vendor") in EMULATED_VENDORS
            emulated = ", or --npu_soc=SM8750 to emulate that chip here" if is_emulated else ""
            raise ConfigurationUnavailable(f"{message}; give --{flag} from the vendor's SDK{emulated}", NPU.name)
    return {"runtime_path": str(folder), "dispatch_library_path": str(dispatch), "compiler_plugin_path": str(compiler)}


def set_options(options: Any, configuration: Configuration) -> None:
    """Set what was given; raises :class:`ConfigurationUnavailable` for what would have no effect."""
    settings = configuration.delegates
    _load_openvino(settings)
    backends = str(settings.value(_BACKENDS))
    if ":" in backends:
        message = (
            f"--{_BACKENDS}={backends} cannot be honoured by the Python runtime compiled: ai-edge-litert takes one "
            "device for all graphs there, as cpu"
        )
        raise ConfigurationUnavailable(message, NPU.name)
    if backends == "cpu":
        _require_effect(settings, configuration.num_threads)
    for field in fields(settings):
        _set_field(getattr(options, f"{settings.value('npu_vendor')}_options"), field)


def _require_effect(settings: DelegateSettings, threads: int) -> None:
    """OpenVINO's CPU runs what was compiled with settings of its own: what is given here ends with the compilation."""
    idle = [field.given for field in fields(settings) if field.name not in ("graph_backend", "configs_map")]
    stated = properties(str(settings.value(_PROPERTIES)))
    idle += [f"--{_PROPERTIES}={key}={text}" for key, text in stated.items() if key != _EFFECTIVE_ON_CPU]
    if threads > 1:
        idle.append(f"--num_interpreter_threads={threads}")
    if idle:
        message = (
            f"{' and '.join(idle)} cannot be honoured with --{_BACKENDS}=cpu: ai-edge-litert passes options on to the "
            "compilation only, and OpenVINO's CPU then runs with a precision and a number of threads of its own; leave "
            "it out"
        )
        raise ConfigurationUnavailable(message, NPU.name)


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
    missing = _MISSING.search(messages)
    if missing is not None:
        version = f"20{missing[2]}.{missing[3]}.{missing[4]}"
        found = _installed_openvino()
        if found.startswith(version):
            return (
                f"it needs {missing[1]}, which openvino {found} has and which is gone; install it anew: "
                f"pip install --force-reinstall openvino=={found}"
            )
        have = f"openvino {found} is installed, which has another" if found else "openvino is not installed"
        return f"it needs {missing[1]}, and {have}: pip install openvino=={version}"
    if "Compiling partition 1 for device NPU" in messages and "VCL compiler loading failed" in messages:
        return (
            "the model falls into several partitions, and ai-edge-litert passes the device on to the first one "
            "only; the others are compiled for the NPU, whose compiler is not here"
        )
    if "VCL compiler loading failed" in messages:
        return (
            "OpenVINO is here, but its compiler for the NPU is not: install Intel's NPU driver, or try what OpenVINO "
            "computes with --intel_openvino_graph_backends=cpu"
        )
    if "Failed to apply compiler plugins" in messages:
        return f"its compiler plug-in could not be used: {first_error(messages) or 'no compiler plug-in was found'}"
    return first_error(messages)


def _installed_openvino() -> str:
    try:
        return importlib.metadata.version("openvino")
    except importlib.metadata.PackageNotFoundError:
        return ""
