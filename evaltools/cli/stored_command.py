"""The command of a run, as its journal tells it."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.cli.exit_codes import EXIT_CODE_HELP
from evaltools.errors import UsageError
from evaltools.parameter import About, Parameter, did_you_mean, split_flag

if TYPE_CHECKING:
    from evaltools.cli.finished_shards import FinishedShards

ON_DEVICES: Final = "device run "


@dataclass(frozen=True)
class StoredCommand:
    """A command with its arguments as they were typed, and the folder it was given in.

    On devices the name of a task stands behind ``ON_DEVICES``.
    """

    folder: Path
    name: str
    arguments: tuple[str, ...]

    @classmethod
    def of(cls, run_dir: Path) -> StoredCommand:
        """Read it from a run folder; raises :class:`UsageError` where there is none."""
        from evaltools.cli.main import COMMANDS
        from evaltools.tasks.shared.run_identity import command_in

        outer = _run_on_devices_around(run_dir)
        if outer is not None:
            raise UsageError(f"{run_dir} is a part of the run on devices in {outer}; give evaltools resume that folder")
        working_folder, _, name, *arguments = command_in(run_dir)
        if name.removeprefix(ON_DEVICES) not in COMMANDS:
            raise UsageError(f"the run in {run_dir} was of {name!r}, which is no command; start it anew")
        return cls(Path(working_folder), name, tuple(arguments)).in_folder(run_dir)

    def in_folder(self, run_dir: Path) -> StoredCommand:
        """The same, with the run folder where it lies now."""
        stated = [word.partition("=")[2] for word in self.arguments if _name(word) == "run_dir"]
        if len(stated) == 1 and (self.folder / stated[0]).resolve() == run_dir.resolve():
            return self
        moved = self.without("run_dir")
        return replace(moved, arguments=(*moved.arguments, f"--run_dir={run_dir.resolve()}"))

    def without(self, *names: str) -> StoredCommand:
        """The same without some flags."""
        kept: list[str] = []
        value_follows = False
        for word in self.arguments:
            if value_follows and not word.startswith("--"):
                value_follows = False
                continue
            switched_off = "=" not in word and _name(word).removeprefix("no") in names
            value_follows = _name(word) in names and "=" not in word
            if _name(word) not in names and not switched_off:
                kept.append(word)
        return replace(self, arguments=tuple(kept))

    def with_flags(self, given: Sequence[str], about: Collection[About] = ("execution", "result")) -> StoredCommand:
        """The same with flags put in the place of those that it had, which change no figure.

        Raises :class:`UsageError` for flags that are about something else.
        """
        parameters = {each.name: each for each in self.parameters}
        allowed = [name for name, each in parameters.items() if each.about in about]
        stated = [self._stated(word) for word in given]
        for word in stated:
            if _name(word) not in allowed:
                hint = did_you_mean(_name(word), allowed)
                raise UsageError(
                    f"{word}: a run goes on with the flags that it began with; only flags that change no figure may "
                    f"be given anew: {', '.join(sorted(allowed))}.{hint}"
                )
        changed = self.without(*map(_name, stated))
        words = [_absolute(word, parameters[_name(word)]) for word in stated]
        return replace(changed, arguments=(*changed.arguments, *words))

    def _stated(self, word: str) -> str:
        """A flag with its value, which those that are true or false may leave out, as in the command itself."""
        if not word.startswith("--"):
            raise UsageError(f"{word!r}: give flags as --name=value")
        if "=" in word:
            return word
        try:
            name, text = split_flag(word, {parameter.name: parameter for parameter in self.parameters})
        except UsageError:
            raise UsageError(f"{word!r}: give flags as --name=value") from None
        return f"--{name}={text}"

    @property
    def _is_on_devices(self) -> bool:
        return self.name.startswith(ON_DEVICES)

    @property
    def _task(self) -> str:
        return self.name.removeprefix(ON_DEVICES)

    @property
    def parameters(self) -> list[Parameter]:
        """The flags that the command has."""
        groups: Mapping[str, Sequence[Parameter]] = self._module().GROUPS
        found = [parameter for group in groups.values() for parameter in group]
        if self._is_on_devices:
            from evaltools.cli import device_run_flags

            found += device_run_flags.PARAMETERS
        return found

    def _module(self) -> Any:
        from evaltools.cli.main import COMMANDS

        return importlib.import_module(COMMANDS[self._task].module)

    def run(self, shards: FinishedShards | None = None) -> int:
        """Run it in the folder that it was given in; with ``shards`` it takes its records from those.

        Raises :class:`UsageError` for shards of a run on devices, which makes one result of its parts itself.
        """
        if self._is_on_devices and shards is not None:
            raise UsageError(
                "a run on devices makes one result of its parts itself: give evaltools resume its folder alone"
            )
        try:
            os.chdir(self.folder)
        except OSError as error:
            raise UsageError(
                f"the run was started in {self.folder}, which cannot be entered: {error.strerror}; "
                "paths in its command are relative to that"
            ) from error
        if self._is_on_devices:
            from evaltools.cli import device_run

            return device_run.run([self._task, *self.arguments])
        command: Callable[..., int] = self._module().run
        return command(list(self.arguments), shards=shards)


def _run_on_devices_around(run_dir: Path) -> Path | None:
    """The folder of the run on devices of which a folder holds a part: FOLDER/PLACE/PART/run."""
    part = run_dir.resolve().parent
    return part.parents[1] if (part / "part.json").exists() else None


def run_folder_parser(usage: str, description: str, exit_codes: str) -> argparse.ArgumentParser:
    """A parser for a command about run folders, ``COMMAND RUN_DIR... [--flag=value ...]``."""
    return argparse.ArgumentParser(
        prog=f"evaltools {usage.split()[0]}",
        usage=f"evaltools {usage} [--flag=value ...]",
        description=description,
        epilog=f"exit codes: {exit_codes}\n{EXIT_CODE_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _name(word: str) -> str:
    """The name of a flag, empty for a word that is the value of one."""
    return word.removeprefix("--").partition("=")[0].replace("-", "_") if word.startswith("--") else ""


def _absolute(word: str, parameter: Parameter) -> str:
    """A flag that names a file, as seen from here."""
    name, _, text = word.partition("=")
    return f"{name}={parameter.rewrite(text, lambda path: str(path.resolve()))}"
