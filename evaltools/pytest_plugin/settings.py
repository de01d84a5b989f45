"""What a user may set, and which files of gates that gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

MARKER: Final = "accuracy_gate: an accuracy limit of evaltools; those of --evaltools-gates have it, others may"
INCONCLUSIVE: Final = ("fail", "skip", "xfail")
REPORT: Final = "evaltools_report"
_FILES: Final = "evaltools_gates"
_INCONCLUSIVE: Final = "evaltools_inconclusive"
_SETTINGS: Final = (_FILES, _INCONCLUSIVE)


@dataclass(frozen=True)
class Settings:
    """``inconclusive`` is what becomes of a limit that too few examples leave open; see the options."""

    inconclusive: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, and the same as settings of the ini file."""
    group = parser.getgroup("evaltools", "accuracy gates of evaltools")
    group.addoption(
        "--evaltools-gates",
        action="append",
        default=[],
        metavar="FILE",
        dest=_FILES,
        help="gates.toml, or pyproject.toml with a table tool.evaltools: its limits are tests. May be repeated.",
    )
    group.addoption(
        "--evaltools-inconclusive",
        choices=INCONCLUSIVE,
        default=None,
        dest=_INCONCLUSIVE,
        help="What becomes of a limit that too few examples leave open: fail (the default), skip or xfail.",
    )
    group.addoption(
        "--evaltools-report",
        default=None,
        metavar="FILE",
        dest=REPORT,
        help="One page about all evaluations and limits of the session: FILE.html, or FILE.md for its first screen.",
    )
    parser.addini(_FILES, "Files of gates, collected unless single tests are named.", type="args", default=[])
    parser.addini(_INCONCLUSIVE, "As --evaltools-inconclusive.", default=INCONCLUSIVE[0])


def read_settings(config: pytest.Config) -> Settings:
    """The settings in force; the command line comes first."""
    inconclusive = config.getoption(_INCONCLUSIVE) or config.getini(_INCONCLUSIVE)
    if inconclusive not in INCONCLUSIVE:
        raise pytest.UsageError(f"{_INCONCLUSIVE} = {inconclusive}: use {', '.join(INCONCLUSIVE)}")
    return Settings(str(inconclusive))


def refuse_unknown_settings(config: pytest.Config) -> None:
    """Raise for a setting of the ini file that looks like one of ours: it would silently leave its gates out."""
    unknown: set[str] = config._get_unknown_ini_keys()
    for key in sorted(unknown):
        if key.startswith("evaltools"):
            from evaltools.parameter import did_you_mean

            hint = did_you_mean(key, _SETTINGS)
            raise pytest.UsageError(f"{config.inipath}: there is no setting {key}; use {', '.join(_SETTINGS)}.{hint}")


def find_gate_files(config: pytest.Config) -> frozenset[Path]:
    """The files to collect as gates; those that are not among pytest's paths are added to these.

    Files of the ini file are added unless the user named single tests, ``FILE::TEST``.
    """
    given = [config.invocation_params.dir / name for name in config.getoption(_FILES)]
    ini_folder = config.inipath.parent if config.inipath is not None else config.invocation_params.dir
    stated = [ini_folder / name for name in config.getini(_FILES)]
    named = {(config.invocation_params.dir / word.partition("::")[0]).resolve() for word in config.args}
    for file in given + ([] if any("::" in word for word in config.args) else stated):
        if not file.is_file():
            raise pytest.UsageError(f"there is no file of gates {file}; correct --evaltools-gates or {_FILES}")
        if file.resolve() not in named:
            config.args.append(str(file))
    return frozenset(file.resolve() for file in given + stated)
