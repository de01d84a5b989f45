"""From flags to configurations: the command line's own, ``--config``, ``--configs`` and ``--reference``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaltools.cli.flags import GivenFlags
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration, configurations_from_yaml
from evaltools.errors import UsageError
from evaltools.parameter import Parameter

REFERENCE_NAME: Final = "reference"
TEST_NAME: Final = "test"
REFERENCE_KERNELS: Final = "builtin"

CANDIDATES: Final = (
    Parameter(
        "config",
        "string",
        "",
        'One more configuration, "NAME: flag=value flag=value". May be repeated.',
        repeatable=True,
        about="candidates",
    ),
    Parameter(
        "configs",
        "string",
        "",
        "YAML file that maps names to flags. May be repeated.",
        repeatable=True,
        role="input_file",
        about="candidates",
    ),
)
ALLOW_FALLBACK: Final = Parameter(
    "allow_fallback",
    "bool",
    False,
    "Measure a configuration on the CPU where its delegate cannot be created or takes nothing; the result says so.",
)
PARAMETERS: Final = (
    *CANDIDATES,
    Parameter(
        "reference",
        "string",
        "",
        "Flags of the configuration that the others are held against; builtin kernels and one thread unless stated. "
        "none: no reference.",
        only_with=("load_reference=",),
    ),
    ALLOW_FALLBACK,
    Parameter(
        "compat",
        "string",
        "",
        "native: do what the native tool does also where that is a trap (docs/native-differences.md).",
        choices=("", "native"),
    ),
)


@dataclass(frozen=True)
class Configurations:
    """The reference, if any, and the test configurations in the order given."""

    reference: Configuration | None
    tests: tuple[Configuration, ...]

    @property
    def all(self) -> tuple[Configuration, ...]:
        """Reference first."""
        return ((self.reference,) if self.reference else ()) + self.tests


def read_configurations(flags: GivenFlags, reference_kernels: str = REFERENCE_KERNELS) -> Configurations:
    """Collect all configurations; raises :class:`UsageError` for wrong flags or names used twice.

    The configuration flags on the command line describe the configuration ``test``. It exists where there is such a
    flag, or where no other configuration is given. The reference has ``reference_kernels`` unless it states others.
    """
    native = flags.text("compat") == "native"
    others = configurations_of_files_and_texts(flags, native)
    own_flags = flags.among(CONFIGURATION_PARAMETERS)
    tests = [Configuration.from_flags(TEST_NAME, own_flags, native)] if own_flags or not others else []
    tests.extend(others)
    reference_text = flags.text("reference")
    reference = None
    if reference_text.strip() != "none":
        reference = Configuration.from_text(REFERENCE_NAME, reference_text, native, reference_kernels)
    found = Configurations(reference, tuple(tests))
    require_unique_names(found.all)
    return found


def configurations_of_files_and_texts(flags: GivenFlags, native: bool = False) -> list[Configuration]:
    """Those of ``--config`` and ``--configs``; raises :class:`UsageError` for wrong flags."""
    found = [_from_config_text(text, native) for text in flags.texts("config")]
    for file in flags.texts("configs"):
        found.extend(_from_yaml_file(Path(file), native))
    return found


def _from_config_text(text: str, native: bool) -> Configuration:
    name, colon, flags = text.partition(":")
    if not colon or not name.strip() or "=" in name:
        raise UsageError(f'--config={text!r}: expected "NAME: flag=value flag=value", as in "gpu: use_gpu=true"')
    return Configuration.from_text(name.strip(), flags, native)


def _from_yaml_file(path: Path, native: bool) -> list[Configuration]:
    from evaltools.cli.yaml_file import read_yaml

    document = read_yaml(path, "--configs")
    return configurations_from_yaml(document, str(path), native)


def require_unique_names(configurations: Sequence[Configuration]) -> None:
    """Raise :class:`UsageError` where two have the same name."""
    names = [configuration.name for configuration in configurations]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two configurations are named {name!r}; give each its own name")
