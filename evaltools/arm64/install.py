"""``evaltools doctor --install=arm64``: an ARM64 Python with the runtimes, made in a folder; nothing is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from evaltools.arm64.box import ANY_CORE, Box, installed_qemu, is_arm64, version_of
from evaltools.arm64.debian_packages import (
    Repository,
    configured_repositories,
    download_and_unpack,
    last_output,
    of_suite,
    run,
)
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.file_content import content_of

_DOWNLOAD_MB: Final = 130
_SIZE_MB: Final = 440
PACKAGES: Final = (
    "msgspec",
    "numpy<2",
    "pillow",
    "protobuf",
    "psutil",
    "pycocotools",
    "pyyaml",
    "rich",
    "scipy",
    "simplejpeg",
)
"""What evaltools needs on ARM64 beside the runtimes."""
_MADE_OF: Final = "made-of.txt"
_RUNTIMES: Final = ("ai-edge-litert", "tflite-runtime")
_PYTHON: Final = "3.11"
"""The newest Python that both runtimes have wheels for; that of ``_PYTHON_SUITE``."""
_PYTHON_SUITE: Final = "bookworm"
_PYTHON_PACKAGES: Final = (f"python{_PYTHON}-minimal", f"libpython{_PYTHON}-stdlib", "libstdc++6")
_QEMU_SUITE: Final = "trixie"
"""The first Debian release with a QEMU that runs the runtimes."""
_QEMU_PACKAGE: Final = "qemu-user"
_GLIBC: Final = ("2014", *(f"_2_{minor}" for minor in (17, 26, 27, 28, 31, 34, 35, 36)))
"""The C libraries whose wheels run in that release of Python."""
_LONGEST_REASON: Final = 600
_TRY: Final = "from evaltools.runtime.registry import installed_version as v; print(v('litert'), v('tflite-runtime'))"
Say = Callable[[str], object]


def install(box: Box, say: Say) -> None:
    """Make the folder of the box, anew where it has other runtimes; ``say`` gets a line before each step.

    Raises :class:`UsageError` on a machine where this cannot work, :class:`ConfigurationUnavailable` for what cannot be
    had.
    """
    if _made_of(box) == _wanted():
        say("it is there already, with the runtimes that are installed here")
        return
    _require_able()
    say(f"ARM64: about {_DOWNLOAD_MB} MB to download, {_SIZE_MB} MB in {box.folder}, a minute")
    draft = Box(box.folder.with_suffix(".part"))
    try:
        shutil.rmtree(draft.folder, ignore_errors=True)
        (draft.folder / "site").mkdir(parents=True)
        _fill(draft, say)
        shutil.rmtree(box.folder, ignore_errors=True)
        draft.folder.rename(box.folder)
    except (subprocess.CalledProcessError, OSError) as error:
        text = f"{error}; {last_output(error)[-_LONGEST_REASON:]}".strip("; ")
        raise ConfigurationUnavailable(f"an ARM64 Python cannot be made in {box.folder}: {text}") from error
    finally:
        shutil.rmtree(draft.folder, ignore_errors=True)


def wanted_runtimes() -> list[str]:
    """The runtimes that are installed here, with their versions."""
    return [f"{name}=={version}" for name in _RUNTIMES if (version := _installed(name))]


def _wanted() -> bytes:
    """What a box is made of, as it stands in a file there."""
    return "\n".join([_PYTHON, *PACKAGES, *wanted_runtimes()]).encode()


def _made_of(box: Box) -> bytes:
    """The same of a box that is there and runs, empty for any other."""
    file = box.folder / _MADE_OF
    return content_of(file) if box.is_complete and file.is_file() and version_of(box.qemu) else b""


def _require_able() -> None:
    if is_arm64():
        raise UsageError("this machine is ARM64 itself: leave --install and --at out")
    missing = [tool for tool in ("apt-get", "dpkg") if shutil.which(tool) is None]
    if missing:
        raise UsageError(
            f"--install=arm64 takes Python for ARM64 from Debian's packages, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not here: do it in a container of Debian (docker run -it debian), "
            "or run evaltools on a board with ARM64"
        )
    if find_spec("pip") is None:
        raise UsageError(
            "--install=arm64 takes wheels by pip, which this Python lacks: python -m ensurepip, or uv pip install pip"
        )


def _fill(box: Box, say: Say) -> None:
    """Do every step."""
    debian = configured_repositories()
    say(f"1 of 4: Python {_PYTHON} for ARM64, from Debian's packages")
    download_and_unpack(box.folder, [of_suite(debian, _PYTHON_SUITE)], *_PYTHON_PACKAGES, architecture="arm64")
    qemu = next((found for found in installed_qemu() if found.is_new_enough), None)
    say(f"2 of 4: QEMU {qemu.version}, {qemu.program}" if qemu else "2 of 4: QEMU, from Debian's packages")
    if qemu:
        box.qemu.symlink_to(qemu.program)
    else:
        _unpack_qemu(box, of_suite(debian, _QEMU_SUITE))
    runtimes = wanted_runtimes()
    say(f"3 of 4: wheels for ARM64: {', '.join(runtimes)}, and what evaltools needs")
    _install_wheels(box.folder / "site", runtimes)
    box.write_launcher(f"python{_PYTHON}")
    say("4 of 4: the runtimes are loaded once")
    run_python(box, _TRY)
    (box.folder / _MADE_OF).write_bytes(_wanted())


def _unpack_qemu(box: Box, repository: Repository) -> None:
    """Unpack QEMU, one program that needs nothing else."""
    scratch = box.folder / "debian"
    download_and_unpack(scratch, [repository], _QEMU_PACKAGE)
    (scratch / "root/usr/bin/qemu-aarch64").rename(box.qemu)
    shutil.rmtree(scratch)


def _install_wheels(site: Path, runtimes: Sequence[str]) -> None:
    """The wheels; where a runtime has none for ARM64 of the version that is here, its newest."""
    try:
        _pip(site, [*PACKAGES, *runtimes])
    except subprocess.CalledProcessError:
        _pip(site, [*PACKAGES, *(each.partition("==")[0] for each in runtimes)])


def _pip(site: Path, requirements: Sequence[str]) -> None:
    platforms = [f"--platform=manylinux{glibc}_aarch64" for glibc in _GLIBC]
    python = [f"--python-version={_PYTHON}", "--implementation=cp", "--only-binary=:all:", *platforms]
    run(sys.executable, "-m", "pip", "install", "--quiet", f"--target={site}", "--upgrade", *python, *requirements)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def run_python(box: Box, code: str, core: str = ANY_CORE) -> str:
    """What a program prints below QEMU; raises :class:`subprocess.CalledProcessError` where it fails."""
    command = [str(box.python), "-c", code]
    return subprocess.run(command, env=box.environment(core), check=True, capture_output=True, text=True).stdout
