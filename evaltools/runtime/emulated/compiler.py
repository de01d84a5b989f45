"""Runs Qualcomm's compiler for NPUs, which the ai-edge-litert wheel has, and keeps what it compiled."""

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
from typing import Final

import msgspec
from msgspec import Struct

from evaltools.delegates.npu import NPU
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.model import ModelFile
from evaltools.model.contents import OPERATORS, read_contents
from evaltools.parameter import did_you_mean
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.emulated.compiler_log import CompilerReport, read_log, why_refused

MANUFACTURER: Final = "Qualcomm"
BACKEND: Final = "onnxruntime_qnn"
_EXTRA: Final = "pip install 'evaltools[npu-qualcomm]' (x86-64 Linux, Python 3.11 to 3.13)"
_NOT_NEEDED: Final = "libQnnLpai.so"
"""The plug-in is linked against it and calls nothing of it; any library of this name will do."""
_PROGRAM: Final = "tools/apply_plugin_main"
_SDK: Final = "ai_edge_litert_sdk_qualcomm"
"""The module that the wheel asks for the folder of the SDK's libraries."""
_CUSTOM: Final = "a custom operator, for which --qualcomm_custom_op_package may name a package"
_NOT_LOADED: Final = "Failed to load plugin at"
_TOOL: Final = "[LITERT_TOOLS"
"""Where its own words about what it does begin."""


class CompilerRefused(ConfigurationUnavailable):
    """The compiler cannot compile the model, for a ``reason`` of its own."""

    reason = ""

    @classmethod
    def because(cls, message: str, reason: str) -> CompilerRefused:
        """The error with its reason behind the message."""
        refused = cls(f"{message}: {reason}", NPU.name)
        refused.reason = reason
        return refused


class Backend(Struct, frozen=True):
    """The package with the libraries that the plug-in calls, its version, and the folders of the libraries."""

    version: str
    folders: tuple[Path, ...]


class Compiled(Struct, frozen=True):
    """A model that was compiled for a chip: the content of the new file, and what the compiler reported.

    Where the compiler took no node there is no file, and ``content`` is empty.
    """

    content: bytes
    report: CompilerReport


def known_chips() -> list[str]:
    """The chips that the wheel's compiler knows.

    Raises :class:`ConfigurationUnavailable` where the wheel has no compiler.
    """
    try:
        target = importlib.import_module("ai_edge_litert.aot.vendors.qualcomm.target")
    except ImportError as error:
        raise _no_compiler(str(error)) from error
    return [chip.value for chip in target.SocModel if chip.value != "ALL"]


def require_chip(chip: str) -> None:
    """Raise :class:`UsageError` for a chip that the wheel's compiler does not know."""
    known = known_chips()
    if chip not in known:
        hint = did_you_mean(chip.upper(), known)
        listed = ", ".join(known)
        raise UsageError(f"--npu_soc={chip}: ai-edge-litert compiles for no such chip.{hint} Use one of {listed}")


def compile_for(
    model: ModelFile, chip: str, flags: Sequence[str] = (), folder: str = "", timeout_s: float | None = None
) -> Compiled:
    """Compile a model for a chip, or take what an earlier run compiled with the same versions and ``flags``.

    ``folder`` has the compiler's plug-in, empty for that of the wheel. Raises :class:`CompilerRefused`, and
    :class:`ConfigurationUnavailable` where there is no compiler, ``crashed`` where it died, or took longer than
    ``timeout_s`` and was ended.
    """
    program, plugin, backend = _program(), _plugin(folder), backend_here()
    content = model.read()
    versions = f"qualcomm {chip} {backend.version} {CompilerReport.__struct_fields__}"
    parts = [content, plugin.read_bytes(), versions.encode()]
    digest = hashlib.sha256()
    for part in (*parts, *(flag.encode() for flag in flags)):
        digest.update(hashlib.sha256(part).digest())
    place = cache() / digest.hexdigest()
    found = None if any("_dir=" in flag for flag in flags) else _kept(place)  # folders get files of the compiler
    if found is not None:
        return found
    command = [
        *(str(program), "--cmd=apply", "--err=--", f"--soc_manufacturer={MANUFACTURER}", f"--soc_model={chip}"),
        *flags,
    ]
    try:
        done, compiled = _run(command, plugin.parent, content, backend, timeout_s)
    except subprocess.TimeoutExpired as error:
        late = f"{MANUFACTURER}'s compiler was not done with the model for {chip} within {timeout_s:g} s"
        raise ConfigurationUnavailable(f"{late}; it was ended", NPU.name, crashed=True) from error
    except OSError as error:
        where = f"{tempfile.gettempdir()} ({error.strerror}); make room, or set TMPDIR"
        raise ConfigurationUnavailable(
            f"the model cannot be compiled: no files can be written in {where}", NPU.name
        ) from error
    report = read_log(done.stderr, done.stdout)
    if report is None or (report.taken and (done.returncode or not compiled)):
        raise _failure(model, chip, backend, done)
    found = Compiled(compiled if report.taken else b"", report)
    if model.content is None:
        _keep(place, found)
    return found


def _run(
    command: list[str], plugins: Path, content: bytes, backend: Backend, timeout_s: float | None
) -> tuple[subprocess.CompletedProcess[str], bytes]:
    """Run the compiler; returns what it printed and compiled. The two models have no names that could stay behind.

    The folder of plug-ins is named by a link, since the compiler takes a comma in a path for the end of it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="evaltools-npu-") as scratch,
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as target,
    ):
        source.write(content)
        source.flush()
        numbers = source.fileno(), target.fileno()
        libraries = Path(scratch, "plug-ins")
        libraries.symlink_to(plugins.absolute())
        done = subprocess.run(
            [
                *command,
                f"--libs={libraries}",
                *(f"--{flag}=/proc/self/fd/{number}" for flag, number in zip(("model", "o"), numbers, strict=True)),
            ],
            env=_environment(backend, Path(scratch)),
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


def _plugin(folder: str) -> Path:
    own = _program().parent.parent / "vendors" / "qualcomm" / "compiler"
    found = sorted(Path(folder or own).glob("libLiteRtCompilerPlugin_*.so"))
    if not found:
        where = f"--compiler_plugin_library_path={folder}" if folder else "the ai-edge-litert wheel"
        raise ConfigurationUnavailable(f"{where} has no libLiteRtCompilerPlugin_*.so of qualcomm", NPU.name)
    return found[0]


def backend_here() -> Backend:
    """The libraries that the plug-in calls; raises :class:`ConfigurationUnavailable` where they are not installed."""
    if (sdk := _sdk_folder()) is not None:
        return Backend(_version(_SDK), (sdk,))
    if found := _package_folders(BACKEND):
        folder = found[0]
        return Backend(_version(BACKEND), (folder, folder.with_name(f"{folder.name}.libs")))
    raise ConfigurationUnavailable(f"the SDK of qualcomm is not installed: {_EXTRA}", NPU.name)


def _sdk_folder() -> Path | None:
    """Where the SDK's package has its libraries; None where there is no package, or its download failed."""
    try:
        found = importlib.import_module(_SDK).path_to_sdk_libs()
    except (ImportError, NotImplementedError):
        return None
    return None if found is None else Path(str(found))


def _package_folders(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(spec.origin).parent] if spec and spec.origin else []


@functools.cache
def _version(module: str) -> str:
    """A module with the version of its package, ``onnxruntime_qnn 2.7.0``."""
    packages = importlib.metadata.packages_distributions().get(module, [])
    return f"{module} {importlib.metadata.version(packages[0])}" if packages else module


def _environment(backend: Backend, scratch: Path) -> Mapping[str, str]:
    """Where the loader finds the libraries, which the plug-in looks for by name."""
    folders = [str(path) for path in backend.folders]
    some = next((path for folder in folders for path in Path(folder).glob("libQnnSystem.so")), None)
    if some is not None and not any(Path(folder, _NOT_NEEDED).exists() for folder in folders):
        (scratch / _NOT_NEEDED).symlink_to(some)
        folders.append(str(scratch))
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join([*folders, *([before] if before else [])])}


def _failure(
    model: ModelFile, chip: str, backend: Backend, done: subprocess.CompletedProcess[str]
) -> ConfigurationUnavailable:
    compiler = f"{MANUFACTURER}'s compiler ({backend.version})"
    if done.returncode < 0:
        died = f"{compiler} died ({signal.Signals(-done.returncode).name}) while it compiled the model for {chip}"
        return ConfigurationUnavailable(died, NPU.name, crashed=True)
    reason = first_error(done.stderr).partition(_TOOL)[0].strip(" .")
    if _NOT_LOADED in done.stderr:
        needed = f"{_EXTRA}, with --upgrade where it is there"
        return ConfigurationUnavailable(f"{compiler} cannot be loaded: {reason}; {needed}", NPU.name)
    named = why_refused(read_contents(model).main, done.stderr, done.stdout)
    return CompilerRefused.because(
        f"{compiler} refuses the model for {chip}", named or reason or f"exit code {done.returncode}"
    )


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
