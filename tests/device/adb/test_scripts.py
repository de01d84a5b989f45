"""The scripts around a detached command, in the shells of this machine, without adb."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest
from msgspec import Struct

from evaltools.adb.detached import end_script, look_script, start_script
from evaltools.adb.store import release_script, take_script

SOON_S = 20.0
MARK = "evaltools-" + "0" * 32
A_MINUTE = 60


class Shell(Struct, frozen=True):
    """A shell, and the folder in which it and its tools are found."""

    path: str

    def run(self, script: str) -> bytes:
        done = subprocess.run(
            [shutil.which("sh", path=self.path) or "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": self.path},
            timeout=60,
        )
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture(params=["sh", "bash", "mksh", "busybox", "toybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """busybox brings its own tools; Android's are those of toybox, beside mksh."""
    name = request.param
    shell_name = "mksh" if name == "toybox" else name
    missing = [tool for tool in {name, shell_name} if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed here")
    tools = tmp_path / "tools"
    tools.mkdir()
    if name in ("busybox", "toybox"):
        listed = subprocess.run([name, *(["--list"] if name == "busybox" else [])], capture_output=True, text=True)
        for tool in set(listed.stdout.split()) - {"sh"}:
            (tools / tool).symlink_to(str(shutil.which(name)))
    target = Path(str(shutil.which(shell_name)))
    (tools / "sh").symlink_to(target.resolve() if name == "sh" else target)
    return Shell(str(tools) if name in ("busybox", "toybox") else f"{tools}:/usr/bin:/bin")


def wait_for(shell: Shell, folder: str, ending: bytes) -> None:
    limit = time.monotonic() + SOON_S
    while not (found := shell.run(look_script(folder, 0, 0, MARK))).endswith(ending):
        assert time.monotonic() < limit, found
        time.sleep(0.1)


def sleepers(seconds: str) -> int:
    """How many processes sleep for so long; toybox's setsid becomes the sleep without another command line."""
    commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    return sum(command[-2:] == ["sleep", seconds] for command in commands)


def test_a_command_runs_once_and_leaves_all_that_it_printed(shell: Shell, tmp_path: Path) -> None:
    folder = str(tmp_path / "it's a run")
    command = "printf 'it''s'; pwd; echo wrong >&2; read nothing || exit 7"
    for _ in range(2):
        assert shell.run(start_script(folder, command, A_MINUTE)) == b""
    wait_for(shell, folder, b"0 7\n")
    mark = MARK.encode()
    assert shell.run(look_script(folder, 0, 0, MARK)) == b"its%b\n%bwrong\n%b0 7\n" % (folder.encode(), mark, mark)
    assert shell.run(look_script(folder, len(folder) + 3, 5, MARK)) == b"\n%b\n%b0 7\n" % (mark, mark)
    assert sorted(os.listdir(folder)) == ["code", "command", "err", "out", "pid", "seen"]


def test_the_end_takes_all_with_it(shell: Shell, tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    seconds = f"700.{os.getpid()}"
    shell.run(start_script(folder, f"sleep {seconds} & (sleep {seconds} &) ; sleep {seconds}", A_MINUTE))
    limit = time.monotonic() + SOON_S
    while sleepers(seconds) < 3:
        assert time.monotonic() < limit
        time.sleep(0.1)
    shell.run(end_script(str(tmp_path / "ru")))
    assert sleepers(seconds) == 3
    shell.run(end_script(folder))
    assert sleepers(seconds) == 0
    assert shell.run(look_script(folder, 0, 0, MARK)).endswith(b"0\n")


def wait_until(is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + SOON_S
    while not is_so():
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_a_run_at_which_nobody_looks_ends_itself(shell: Shell, tmp_path: Path) -> None:
    folder, seconds = str(tmp_path / "run"), f"701.{os.getpid()}"
    shell.run(start_script(folder, f"sleep {seconds} & sleep {seconds}", 1))
    wait_until(lambda: sleepers(seconds) == 0)
    assert shell.run(look_script(folder, 0, 0, MARK)).endswith(b"0\n")


_SLEEP = """#!/bin/sh
[ "$1" = .1 ] && exec {sleep} "$1"
echo >>begun
until rm {passed} 2>/dev/null; do {sleep} .05; done
"""


def test_a_run_at_which_somebody_looks_goes_on(tmp_path: Path) -> None:
    """The time is that of the test: a sleep of the watch takes until there is a file."""
    tools, run, passed = tmp_path / "tools", tmp_path / "run", tmp_path / "passed"
    tools.mkdir()
    (tools / "sleep").write_text(_SLEEP.format(sleep=shutil.which("sleep"), passed=passed))
    (tools / "sleep").chmod(0o755)
    shell = Shell(f"{tools}:/usr/bin:/bin")
    shell.run(start_script(str(run), "tail -f /dev/null", A_MINUTE))

    def has_begun(times: int) -> bool:
        return (run / "begun").exists() and len((run / "begun").read_text()) == times

    for times in (1, 2, 3):
        wait_until(partial(has_begun, times))
        assert shell.run(look_script(str(run), 0, 0, MARK)).endswith(b"1\n")
        passed.touch()
    wait_until(partial(has_begun, 4))
    leader = int((run / "pid").read_text().split()[0])
    passed.touch()
    wait_until(lambda: not psutil.pid_exists(leader))


def test_what_was_ended_before_it_began_never_begins(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    shell.run(end_script(str(folder)))
    shell.run(start_script(str(folder), "touch begun", A_MINUTE))
    assert shell.run(look_script(str(folder), 0, 0, MARK)).endswith(b"0\n")
    assert not (folder / "begun").exists()


def test_a_stranger_with_the_number_of_a_run_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    folder, seconds = tmp_path / "run", f"702.{os.getpid()}"
    with subprocess.Popen(["sleep", seconds], start_new_session=True) as stranger:
        shell.run(start_script(str(folder), "exit 3", A_MINUTE))
        wait_for(shell, str(folder), b"0 3\n")
        began = Path(f"/proc/{stranger.pid}/stat").read_text().split()[21]
        (folder / "pid").write_text(f"{stranger.pid} {int(began) - 1}\n")
        (folder / "code").unlink()
        assert shell.run(look_script(str(folder), 0, 0, MARK)).endswith(b"0\n")
        shell.run(end_script(str(folder)))
        assert sleepers(seconds) == 1
        stranger.kill()


def test_a_lock_is_one_s_until_it_is_given_back(shell: Shell, tmp_path: Path) -> None:
    folder, first, second = tmp_path / "it's a folder", "a" * 32, "b" * 32
    for _ in range(2):
        assert shell.run(take_script(str(folder), first, "it's me since today")) == b""
    shown = shell.run(f"( {take_script(str(folder), second, 'another')} ) || true")
    assert shown.splitlines()[0] == b"it's me since today"
    shell.run(take_script(str(folder), second, "another", force=True))
    assert shell.run(f"( {take_script(str(folder), first, 'me')} ) || true").startswith(b"another\n")
    shell.run(release_script(str(folder), first))
    assert folder.exists()
    shell.run(release_script(str(folder), second))
    assert not folder.exists()
