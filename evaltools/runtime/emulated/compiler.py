"""Runs the compiler of an NPU's vendor, which the ai-edge-litert wheel has, and keeps what it compiled."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from evaltools.delegates.npu import NPU
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.model import ModelFile
from evaltools.model.contents import OPERATORS, read_contents
from evaltools.parameter import did_you_mean
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.emulated.compiler_log import CompilerReport, read_log

BACKEND: Final = "onnxruntime_qnn"
_EXTRA: Final = "pip install 'evaltools[npu-qualcomm]' (x86-64 Linux, Python 3.11 to 3.13)"
_NOT_NEEDED: Final = "libQnnLpai.so"
"""The plug-in is linked against it and calls nothing of it; any library of this name will do."""
_PROGRAM: Final = "tools/apply_plugin_main"
_GOOGLE_FOLDER: Final = "GOOGLE_TENSOR_COMPILER_LIB"
_INTEL_COMPILER: Final = "libopenvino_intel_npu_compiler*"
_NEW_MEDIATEK: Final = ("v9", "--mediatek_sdk_version_type=version9")
_CUSTOM: Final = "a custom operator, for which --qualcomm_custom_op_package may name a package"
_NOT_LOADED: Final = "Failed to load plugin at"
_TOOL: Final = "[LITERT_TOOLS"
"""Where its own words about what it does begin."""


class Vendor(Struct, frozen=True):
    """A vendor of NPUs: its name in flags and folders, its name for LiteRT's compiler, and what brings its SDK.

    ``sdk_module`` is the module that the wheel asks for the folder of the SDK's libraries.
    """

    name: str
    manufacturer: str
    sdk_module: str
    sdk: str


class CompilerRefused(ConfigurationUnavailable):
    """The vendor's compiler cannot compile the model, for a ``reason`` of its own."""

    reason = ""

    @classmethod
    def because(cls, message: str, reason: str) -> CompilerRefused:
        """The error with its reason behind the message."""
        refused = cls(f"{message}: {reason}", NPU.name)
        refused.reason = reason
        return refused


class Backend(Struct, frozen=True):
    """The package with the libraries that the vendor's plug-in calls, its version, and the folders of the libraries."""

    version: str
    folders: tuple[Path, ...]


VENDORS: Final = {
    vendor.name: vendor
    for vendor in (
        Vendor("qualcomm", "Qualcomm", "ai_edge_litert_sdk_qualcomm", _EXTRA),
        Vendor(
            "mediatek",
            "MediaTek",
            "ai_edge_litert_sdk_mediatek",
            "pip install --no-cache-dir ai-edge-litert-sdk-mediatek, which downloads it",
        ),
        Vendor(
            "google_tensor",
            "Google",
            "ai_edge_litert_sdk_google_tensor",
            "see https://developers.google.com/edge/litert/next/tensor-sdk; the environment variable "
            f"{_GOOGLE_FOLDER} names the folder of its library",
        ),
        Vendor(
            "samsung",
            "Samsung",
            "ai_edge_litert_sdk_samsung",
            "ai-edge-litert finds it by the Python module ai_edge_litert_sdk_samsung, which is Samsung's",
        ),
        Vendor(
            "intel_openvino",
            "IntelOpenVINO",
            "ai_edge_litert_sdk_intel",
            "OpenVINO's package is without its compiler for NPUs, which pip install --no-cache-dir "
            "'ai-edge-litert[npu-intel]' downloads",
        ),
    )
}
"""The names for LiteRT's compiler are those of ``SocManufacturer`` in the wheel's targets."""


class Compiled(Struct, frozen=True):
    """A model that was compiled for a chip: the content of the new file, and what the compiler reported.

    Where the compiler took no node there is no file, and ``content`` is empty.
    """

    content: bytes
    report: CompilerReport


def chips_of(vendor: Vendor) -> list[str]:
    """The chips that the wheel's compiler knows.

    Raises :class:`ConfigurationUnavailable` where the wheel has no compiler.
    """
    return [chip.value for chip in _target(vendor).SocModel if chip.value != "ALL"]


def require_chip(vendor: Vendor, chip: str) -> None:
    """Raise :class:`UsageError` for a chip that the wheel's compiler does not know."""
    known = chips_of(vendor)
    if chip not in known:
        hint = did_you_mean(chip.upper(), known)
        listed = ", ".join(known)
        raise UsageError(f"--npu_soc={chip}: ai-edge-litert compiles for no such chip.{hint} Use one of {listed}")


def _target(vendor: Vendor) -> Any:
    try:
        return importlib.import_module(f"ai_edge_litert.aot.vendors.{vendor.name}.target")
    except ImportError as error:
        raise _no_compiler(str(error)) from error


def compile_for(
    model: ModelFile,
    vendor: Vendor,
    chip: str,
    flags: Sequence[str] = (),
    folder: str = "",
    timeout_s: float | None = None,
) -> Compiled:
    """Compile a model for a chip, or take what an earlier run compiled with the same versions and ``flags``.

    ``folder`` has the compiler's plug-in, empty for that of the wheel. Raises :class:`CompilerRefused`, and
    :class:`ConfigurationUnavailable` where there is no compiler, ``crashed`` where it died, or took longer than
    ``timeout_s`` and was ended.
    """
    program, plugin, backend = _program(), _plugin(vendor, folder), backend_of(vendor, chip)
    content = model.read()
    versions = f"{vendor.name} {chip} {backend.version} {CompilerReport.__struct_fields__}"
    parts = [content, plugin.read_bytes(), versions.encode()]
    digest = hashlib.sha256()
    for part in (*parts, *(flag.encode() for flag in flags)):
        digest.update(hashlib.sha256(part).digest())
    place = cache() / digest.hexdigest()
    found = None if any("_dir=" in flag for flag in flags) else _kept(place)  # folders get files of the compiler
    if found is not None:
        return found
    command = [
        *(str(program), "--cmd=apply", "--err=--", f"--soc_manufacturer={vendor.manufacturer}", f"--soc_model={chip}"),
        *(f"--libs={plugin.parent}", *_flags_of_chip(vendor, chip), *flags),
    ]
    try:
        done, compiled = _run(command, content, vendor, backend, timeout_s)
    except subprocess.TimeoutExpired as error:
        late = f"{vendor.manufacturer}'s compiler was not done with the model for {chip} within {timeout_s:g} s"
        raise ConfigurationUnavailable(f"{late}; it was ended", NPU.name, crashed=True) from error
    except OSError as error:
        where = f"{tempfile.gettempdir()} ({error.strerror}); make room, or set TMPDIR"
        raise ConfigurationUnavailable(
            f"the model cannot be compiled: no files can be written in {where}", NPU.name
        ) from error
    report = read_log(done.stderr, done.stdout)
    if report is None or (report.taken and (done.returncode or not compiled)):
        raise _failure(vendor, chip, done)
    found = Compiled(compiled if report.taken else b"", report)
    if model.content is None:
        _keep(place, found)
    return found


def _run(
    command: list[str], content: bytes, vendor: Vendor, backend: Backend, timeout_s: float | None
) -> tuple[subprocess.CompletedProcess[str], bytes]:
    """Run the compiler; returns what it printed and compiled. The two models have no names that could stay behind."""
    with (
        tempfile.TemporaryDirectory(prefix="evaltools-npu-") as scratch,
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as target,
    ):
        source.write(content)
        source.flush()
        numbers = source.fileno(), target.fileno()
        done = subprocess.run(
            [
                *command,
                *(f"--{flag}=/proc/self/fd/{number}" for flag, number in zip(("model", "o"), numbers, strict=True)),
            ],
            env=_environment(vendor, backend, Path(scratch)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=timeout_s,
            pass_fds=numbers,
        )
        target.seek(0)
        return done, target.read()


def reasons_by_operator(model: ModelFile, report: CompilerReport) -> dict[str, str]:
    """The first reason for each kind of operator that the compiler refused; of custom ones it says nothing."""
    nodes = read_contents(model).main.nodes
    reasons = {node.operator: _CUSTOM for node in nodes if node.operator not in OPERATORS}
    return reasons | {nodes[left.place].operator: left.reason for left in reversed(report.left)}


def _program() -> Path:
    spec = importlib.util.find_spec("ai_edge_litert")
    program = Path(str(spec.origin)).parent / _PROGRAM if spec and spec.origin else None
    if program is None or not os.access(program, os.X_OK):
        raise _no_compiler("" if program is None else f"there is no {program}")
    return program


def _no_compiler(problem: str) -> ConfigurationUnavailable:
    detail = f": {problem}" if problem else ""
    message = f"no compiler for NPUs is installed here, which ai-edge-litert 2.3 has on x86-64 Linux{detail}; {_EXTRA}"
    return ConfigurationUnavailable(message, NPU.name)


def _plugin(vendor: Vendor, folder: str) -> Path:
    own = _program().parent.parent / "vendors" / vendor.name / "compiler"
    found = sorted(Path(folder or own).glob("libLiteRtCompilerPlugin_*.so"))
    if not found:
        where = f"--compiler_plugin_library_path={folder}" if folder else "the ai-edge-litert wheel"
        raise ConfigurationUnavailable(f"{where} has no libLiteRtCompilerPlugin_*.so of {vendor.name}", NPU.name)
    return found[0]


def backend_of(vendor: Vendor, chip: str = "") -> Backend:
    """The libraries that the vendor's plug-in calls for a chip; without one, for any.

    Raises :class:`ConfigurationUnavailable` where they are not installed.
    """
    if vendor.name == "intel_openvino":
        _sdk_folder(vendor, chip)  # which puts its libraries beside OpenVINO's
        folders = [folder / "libs" for folder in _package_folders("openvino")]
        if any(any(folder.glob(_INTEL_COMPILER)) for folder in folders):
            return Backend(_version("openvino"), tuple(folders))
    elif (sdk := _sdk_folder(vendor, chip)) is not None:
        return Backend(_version(vendor.sdk_module), (sdk,))
    elif vendor.name == "qualcomm" and (found := _package_folders(BACKEND)):
        folder = found[0]
        return Backend(_version(BACKEND), (folder, folder.with_name(f"{folder.name}.libs")))
    elif vendor.name == "google_tensor" and (named := os.environ.get(_GOOGLE_FOLDER)):
        return Backend(f"{_GOOGLE_FOLDER}={named}", (Path(named),))
    raise ConfigurationUnavailable(f"the SDK of {vendor.name} is not installed: {vendor.sdk}", NPU.name)


def _sdk_folder(vendor: Vendor, chip: str) -> Path | None:
    """Where the SDK's package has its libraries; None where there is no package, or its download failed."""
    try:
        sdk = importlib.import_module(vendor.sdk_module)
        found = sdk.path_to_sdk_libs(*_mediatek_version(vendor, chip))
    except (ImportError, NotImplementedError):
        return None
    return None if found is None else Path(str(found))


def _mediatek_version(vendor: Vendor, chip: str) -> list[str]:
    """MediaTek's SDK comes in versions, one for each generation of chips."""
    if vendor.name != "mediatek" or not chip:
        return []
    target = _target(vendor)
    return [target.map_soc_to_np_version(target.SocModel(chip))]


def _flags_of_chip(vendor: Vendor, chip: str) -> list[str]:
    """The flag by which the wheel, too, has MediaTek's plug-in take the newer SDK."""
    version, flag = _NEW_MEDIATEK
    return [flag] if _mediatek_version(vendor, chip) == [version] else []


def _package_folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(spec.origin).parent] if spec and spec.origin else []


@functools.cache
def _version(module: str) -> str:
    """A module with the version of its package, ``onnxruntime_qnn 2.7.0``."""
    packages = importlib.metadata.packages_distributions().get(module, [])
    return f"{module} {importlib.metadata.version(packages[0])}" if packages else module


def _environment(vendor: Vendor, backend: Backend, scratch: Path) -> Mapping[str, str]:
    """Where the loader finds the vendor's libraries, which the plug-in looks for by name."""
    folders = [str(path) for path in backend.folders]
    if vendor.name == "qualcomm":
        some = next((path for folder in folders for path in Path(folder).glob("libQnnSystem.so")), None)
        if some is not None and not any(Path(folder, _NOT_NEEDED).exists() for folder in folders):
            (scratch / _NOT_NEEDED).symlink_to(some)
            folders.append(str(scratch))
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*folders, *([before] if before else [])])}


def _failure(vendor: Vendor, chip: str, done: subprocess.CompletedProcess[str]) -> ConfigurationUnavailable:
    compiler = f"{vendor.manufacturer}'s compiler ({backend_of(vendor, chip).version})"
    if done.returncode < 0:
        died = f"{compiler} died ({signal.Signals(-done.returncode).name}) while it compiled the model for {chip}"
        return ConfigurationUnavailable(died, NPU.name, crashed=True)
    reason = first_error(done.stderr).partition(_TOOL)[0].strip(" .")
    if _NOT_LOADED in done.stderr:
        needed = f"{vendor.sdk}, with --upgrade where it is there"
        return ConfigurationUnavailable(f"{compiler} cannot be loaded: {reason}; {needed}", NPU.name)
    return CompilerRefused.because(f"{compiler} refuses the model for {chip}", reason or f"exit code {done.returncode}")


def cache() -> Path:
    """The folder of compiled models, in the user's cache; what is deleted there is compiled again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "compiled-for-npu"


def _kept(place: Path) -> Compiled | None:
    try:
        return msgspec.msgpack.decode(place.read_bytes(), type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def _keep(place: Path, found: Compiled) -> None:
    """Keep it for later runs; where that is impossible, they compile again."""
    draft = place.with_name(f".{os.getpid()}")
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.msgpack.encode(found))
        os.replace(draft, place)
    draft.unlink(missing_ok=True)
