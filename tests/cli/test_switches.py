"""Switches of all commands: each may have a value, as all flags have."""

from __future__ import annotations

import re

import pytest

from evaltools.cli.device import ACTIONS
from evaltools.cli.main import main
from evaltools.commands.names import command_names
from evaltools.request import flags

FORMATS = ("coco", "yolo", "imagenet", "ios-log")
COMMANDS = [
    *(name for name in command_names() if name not in ("run", "device", "convert")),
    *(f"device {action}{' diff' if action == 'run' else ''}" for action in ACTIONS),
    *(f"convert {name}" for name in FORMATS),
]
KNOWN = {"imagenet": "use_gpu", "inspect": "run"}
A_FLAG = re.compile(r"^  --(\w+)(?=$|[ ,])", re.MULTILINE)
MOST_LINES = 70
A_SWITCH = re.compile(r"^  --(\w+)(?=$| \[BOOL\]|,| {2})", re.MULTILINE)


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is printed; raises :class:`AssertionError` where a word is refused."""
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--help=all"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_switch_takes_a_value_or_none(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    switches = A_SWITCH.findall(help_of(capsys, *command.split()))
    assert KNOWN.get(command) in (None, *switches)
    for value in ("", "=true", "=1", "=false"):
        help_of(capsys, *command.split(), *(f"--{name}{value}" for name in switches))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_short_and_says_how_many_flags_it_leaves_out(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "columns_of", lambda _stream: 80)
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), "--help"])
    short = capsys.readouterr().out
    assert stopped.value.code == 0
    assert len(short.splitlines()) <= MOST_LINES
    whole = help_of(capsys, *command.split())
    listed, every = set(A_FLAG.findall(short)), set(A_FLAG.findall(whole))
    assert listed <= every
    left_out = re.search(r"^--help=all lists (\d+) more flags: of ", short, re.MULTILINE)
    assert len(every - listed) == (int(left_out[1]) if left_out else 0)


@pytest.mark.parametrize("words", [["--help=true"], ["--help=all"], ["--version=1"], ["--debug=false", "--help"]])
def test_switches_of_every_command_take_a_value_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert re.match(r"usage: evaltools|evaltools \d", capsys.readouterr().out)
