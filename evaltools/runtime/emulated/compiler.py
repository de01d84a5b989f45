"""Runs the compiler of an NPU's vendor, which the ai-edge-litert wheel has, and keeps what it compiled."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from evaltools.delegates.npu import NPU
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile
from evaltools.model.contents import OPERATORS, read_contents
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.emulated.compiler_log import CompilerReport, read_log

BACKEND: Final = "onnxruntime_qnn"
_EXTRA: Final = "pip install 'evaltools[npu-qualcomm]' (x86-64 Linux, Python 3.11 to 3.13)"
_NOT_NEEDED: Final = "libQnnLpai.so"
"""The plug-in is linked against it and calls nothing of it; any library of this name will do."""
_PROGRAM: Final = "tools/apply_plugin_main"
_CUSTOM: Final = "a custom operator, for which --qualcomm_custom_op_package may name a package"
_KEPT_S: Final = 30 * 24 * 3600.0
"""What nobody has used for a month is compiled again."""
_NOT_LOADED: Final = "Failed to load plugin at"
_TOOL: Final = "[LITERT_TOOLS"
"""Where its own words about what it does begin."""


class Vendor(Struct, frozen=True):
    """A vendor of NPUs: its name in flags and folders, its name for LiteRT's compiler, and what brings its SDK."""

    name: str
    manufacturer: str
    sdk: str

    @property
    def sdk_module(self) -> str:
        """The module that ``pip install`` of the SDK's package brings."""
        return f"ai_edge_litert_sdk_{self.name}"


VENDORS: Final = {
    vendor.name: vendor
    for vendor in (
        Vendor("qualcomm", "Qualcomm", _EXTRA),
        Vendor("mediatek", "MediaTek", "pip install ai-edge-litert-sdk-mediatek"),
        Vendor("google_tensor", "Google", "the Google Tensor SDK, from Google's early access programme"),
        Vendor("samsung", "Samsung", "pip install ai-edge-litert-sdk-samsung"),
        Vendor("intel_openvino", "IntelOpenVINO", "pip install 'evaltools[npu-intel]'"),
    )
}


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
    try:
        target = importlib.import_module(f"ai_edge_litert.aot.vendors.{vendor.name}.target")
    except ImportError as error:
        raise _no_compiler(str(error)) from error
    return [chip.value for chip in target.SocModel if chip.value != "ALL"]


def compile_for(model: ModelFile, vendor: Vendor, chip: str, flags: Sequence[str] = (), folder: str = "") -> Compiled:
    """Compile a model for a chip, or take what an earlier run compiled with the same versions and ``flags``.

    ``folder`` has the compiler's plug-in, empty for that of the wheel. Raises :class:`ConfigurationUnavailable`, with
    the vendor's reason where the compiler refuses the model.
    """
    program, plugin = _program(), _plugin(vendor, folder)
    content = model.read()
    versions = f"{vendor.name} {chip} {backend_version(vendor)} {CompilerReport.__struct_fields__}"
    parts = [content, plugin.read_bytes(), versions.encode()]
    digest = hashlib.sha256()
    for part in (*parts, *(flag.encode() for flag in flags)):
        digest.update(hashlib.sha256(part).digest())
    place = cache() / digest.hexdigest()
    found = _kept(place)
    if found is not None:
        return found
    with tempfile.TemporaryDirectory(prefix="evaltools-npu-") as scratch:
        source, target = Path(scratch, "model.tflite"), Path(scratch, "compiled.tflite")
        source.write_bytes(content)
        command = [
            *(str(program), "--cmd=apply", f"--model={source}", f"--o={target}", "--err=--"),
            *(f"--soc_manufacturer={vendor.manufacturer}", f"--soc_model={chip}", f"--libs={plugin.parent}", *flags),
        ]
        done = subprocess.run(
            command,
            env=_environment(vendor, Path(scratch)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        compiled = target.read_bytes() if target.exists() else b""
    report = read_log(done.stderr, done.stdout)
    if report is None or (report.taken and (done.returncode or not compiled)):
        raise ConfigurationUnavailable(_refusal(vendor, chip, done), NPU.name)
    found = Compiled(compiled if report.taken else b"", report)
    if model.content is None:
        _keep(place, found)
    return found


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


def backend_version(vendor: Vendor) -> str:
    """The package with the libraries that the vendor's plug-in calls, and its version.

    Raises :class:`ConfigurationUnavailable` where none is installed.
    """
    for package in (vendor.sdk_module, BACKEND) if vendor.name == "qualcomm" else (vendor.sdk_module,):
        try:
            return f"{package} {importlib.metadata.version(package)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    raise ConfigurationUnavailable(f"the SDK of {vendor.name} is not installed: {vendor.sdk}", NPU.name)


def _environment(vendor: Vendor, scratch: Path) -> Mapping[str, str]:
    """Where the loader finds the vendor's libraries, which the plug-in looks for by name."""
    folders = [str(path) for path in _library_folders(vendor)]
    if vendor.name == "qualcomm":
        some = next((path for folder in folders for path in Path(folder).glob("libQnnSystem.so")), None)
        if some is not None and not any(Path(folder, _NOT_NEEDED).exists() for folder in folders):
            (scratch / _NOT_NEEDED).symlink_to(some)
            folders.append(str(scratch))
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*folders, *([before] if before else [])])}


def _library_folders(vendor: Vendor) -> list[Path]:
    """The folders of the SDK's libraries; of Qualcomm's without an SDK, those of ONNX Runtime's package."""
    if importlib.util.find_spec(vendor.sdk_module) is not None:
        sdk = importlib.import_module(vendor.sdk_module)
        return [Path(str(sdk.path_to_sdk_libs()))]
    spec = importlib.util.find_spec(BACKEND)
    if spec is None or not spec.origin:
        return []
    folder = Path(spec.origin).parent
    return [folder, folder.with_name(f"{folder.name}.libs")]


def _refusal(vendor: Vendor, chip: str, done: subprocess.CompletedProcess[str]) -> str:
    compiler = f"{vendor.manufacturer}'s compiler ({backend_version(vendor)})"
    if done.returncode < 0:
        return f"{compiler} died ({signal.Signals(-done.returncode).name}) while it compiled the model for {chip}"
    reason = first_error(done.stderr).partition(_TOOL)[0].strip(" .")
    if _NOT_LOADED in done.stderr:
        return f"{compiler} cannot be loaded: {reason}; {vendor.sdk}, with --upgrade where it is there"
    return f"{compiler} refuses the model for {chip}: {reason or f'exit code {done.returncode}, without a reason'}"


def cache() -> Path:
    """The folder of compiled models, in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "compiled-for-npu"


def _kept(place: Path) -> Compiled | None:
    try:
        os.utime(place)
        return msgspec.msgpack.decode(place.read_bytes(), type=Compiled)
    except (OSError, msgspec.MsgspecError):
        return None


def _keep(place: Path, found: Compiled) -> None:
    """Keep it for later runs; where that is impossible, they compile again."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".", delete=False) as file:
            file.write(msgspec.msgpack.encode(found))
        os.replace(file.name, place)
        for other in place.parent.iterdir():
            if time.time() - other.stat().st_mtime > _KEPT_S:
                other.unlink(missing_ok=True)
    except OSError:
        return
