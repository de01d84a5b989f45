"""From flags to configurations: the command line's own, ``--config``, ``--configs`` and ``--reference``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.cli.shared.flags import GivenFlags
from evaltools.cli.shared.sweep import sweep_configurations
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration, configurations_from_yaml
from evaltools.errors import UsageError

REFERENCE_NAME: Final = "reference"
TEST_NAME: Final = "test"
REFERENCE_KERNELS: Final = "builtin"
_HERE: Final = Path()


def read_tests(flags: GivenFlags, native: bool, folder: Path) -> list[Configuration]:
    """All test configurations; raises :class:`UsageError` for wrong flags.

    The configuration flags on the command line describe the configuration ``test``, or all of a sweep. It exists where
    there is such a flag, or where no other configuration is given. Relative paths are meant from ``folder``.
    """
    others = configurations_of_files_and_texts(flags, native, folder)
    own_flags = flags.among(CONFIGURATION_PARAMETERS)
    if swept := sweep_configurations(flags.texts("sweep"), own_flags):
        return [*swept, *others]
    tests = [Configuration.from_flags(TEST_NAME, own_flags, native)] if own_flags or not others else []
    return [*tests, *others]


def configurations_of_files_and_texts(
    flags: GivenFlags, native: bool = False, folder: Path = _HERE
) -> list[Configuration]:
    """Those of ``--config`` and ``--configs``; raises :class:`UsageError` for wrong flags."""
    found = [_from_config_text(text, native) for text in flags.texts("config")]
    for file in flags.texts("configs"):
        found.extend(_from_yaml_file(folder / file, native))
    return found


def _from_config_text(text: str, native: bool) -> Configuration:
    name, colon, flags = text.partition(":")
    if not colon or not name.strip() or "=" in name:
        raise UsageError(f'--config={text!r}: expected "NAME: flag=value flag=value", as in "gpu: use_gpu=true"')
    return Configuration.from_text(name.strip(), flags, native)


def _from_yaml_file(path: Path, native: bool) -> list[Configuration]:
    from evaltools.cli.shared.yaml_file import read_yaml

    document = read_yaml(path, "--configs")
    return configurations_from_yaml(document, str(path), native)
