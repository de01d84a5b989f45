"""Every flag of every command answers what is asked of flags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from evaltools.benchmark import command as benchmark
from evaltools.cli import convert, delegates, demo, doctor, inspect
from evaltools.cli.device import CLEAN_PARAMETERS, LIST_PARAMETERS
from evaltools.cli.judge import gate, power
from evaltools.cli.runs import capture
from evaltools.cli.runs.folders import RUN_DIR, RUN_DIRS
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.device import flags as device_run_flags
from evaltools.errors import DataError, UsageError
from evaltools.known_tasks import task_command, task_names
from evaltools.locate import command as locate
from evaltools.parameter import Parameter, Role, Value, format_value
from evaltools.request import Options, Request
from evaltools.suite import command as suite

OF_TASKS: Final = {
    **{name: list(task_command(name).parameters.values()) for name in task_names()},
    "benchmark": list(benchmark.COMMAND.parameters.values()),
}
COMMANDS: Final[dict[str, Sequence[Parameter]]] = {
    **OF_TASKS,
    **{f"convert {name}": entry.parameters for name, entry in convert.FORMATS.items()},
    "capture": capture.PARAMETERS,
    "delegates": delegates.PARAMETERS,
    "demo": demo.PARAMETERS,
    "device clean": CLEAN_PARAMETERS,
    "device list": LIST_PARAMETERS,
    "device run": device_run_flags.PARAMETERS,
    "doctor": doctor.PARAMETERS,
    "gate": gate.PARAMETERS,
    "inspect": inspect.PARAMETERS,
    "locate": list(locate.COMMAND.parameters.values()),
    "merge": (RUN_DIRS,),
    "power": power.PARAMETERS,
    "resume": (RUN_DIR,),
    "skill": (),
    "suite": list(suite.COMMAND.parameters.values()),
}
KNOWN: Final = {parameter.name: parameter for own in COMMANDS.values() for parameter in own}
NAMES_A_PATH: Final = re.compile(
    r"(_|^)(file|files|path|filepath|dir|folder|apk|binary|images|labels|output|outputs|graph|gates|junit|markdown|trace"
    r"|plot|accuracy|wheels|adb)$"
)
every_command = pytest.mark.parametrize("command", COMMANDS)
every_task = pytest.mark.parametrize("task", OF_TASKS)


def reads_again(parameter: Parameter, value: Value) -> bool:
    return parameter.parse(format_value(value)) == value


@every_command
def test_a_flag_that_is_called_like_a_path_says_what_it_names(command: str) -> None:
    """Those that begin with num_ are numbers; the folder on the device is none of this computer's."""
    called = {each.name for each in COMMANDS[command] if each.type == "string" and NAMES_A_PATH.search(each.name)}
    assert called - {each.name for each in COMMANDS[command] if each.is_path} <= {"device_folder"}
    assert {each.type for each in COMMANDS[command] if each.is_path} <= {"string"}


@every_command
def test_the_values_that_a_flag_names_are_its_own(command: str) -> None:
    for each in COMMANDS[command]:
        parts = () if each.for_records is None else (each.for_records,)
        harmless = each.not_native.harmless if each.not_native else ()
        assert [
            value for value in (each.default, *each.choices, *parts, *harmless) if not reads_again(each, value)
        ] == []


@every_command
def test_a_flag_is_required_where_its_help_says_so(command: str) -> None:
    """``graph`` and the flags of ``power`` are asked for in words of their own."""
    said = {each.name for each in COMMANDS[command] if each.help.endswith("Required.")}
    assert {each.name for each in COMMANDS[command] if each.required} == (set() if command == "power" else said)


@every_command
def test_what_a_flag_needs_beside_it_is_there_to_be_given(command: str) -> None:
    for each in COMMANDS[command]:
        for condition in each.only_with:
            name, has_values, texts = condition.partition("=")
            assert name != each.name
            assert not KNOWN[name].repeatable
            for text in texts.split("|") if has_values else ():
                KNOWN[name].parse(text)


@every_task
def test_devices_are_told_of_a_flag_or_it_says_why_not(task: str) -> None:
    for each in OF_TASKS[task]:
        if each.role in ("output_file", "output_folder"):
            assert not each.is_sent, f"{each.name}: a file is written here"
        elif each.is_path:
            is_for_none = each.refused_on_devices or each.for_records is not None
            is_for_none = is_for_none or each.about in ("result", "configurations")
            assert each.is_sent or is_for_none, f"{each.name}: devices read it"
        assert re.match("[a-z].{15}|$", each.refused_on_devices), each.name


@every_task
def test_what_a_run_is_of_stays_what_it_is_when_it_goes_on(task: str) -> None:
    for each in OF_TASKS[task]:
        if each.name in CONFIGURATION_PARAMETERS or (each.is_content and each.about != "result"):
            assert each.must_agree, each.name
        if each.role == "output_file":
            assert each.may_differ, each.name
        assert [each.must_agree, each.may_differ, each.about == "run"].count(True) == 1


@every_task
def test_native_tools_have_a_flag_or_it_says_why_not(task: str) -> None:
    reasons = [each.not_native.reason for each in OF_TASKS[task] if each.not_native]
    assert [reason for reason in reasons if not re.match("[a-z-].{10}", reason)] == []


@every_task
def test_a_flag_that_is_no_option_in_python_says_what_there_is_instead(task: str) -> None:
    instead = {each.name: each.instead_in_python for each in OF_TASKS[task] if each.instead_in_python}
    if task != "benchmark":
        assert instead["config"] == "give tests="
        assert {"output_file_path", "plot", "quiet", "verbose"} <= set(instead)
    assert [text for text in instead.values() if not re.match("[a-z]", text)] == []


def test_without_its_run_a_request_has_nothing_that_needs_one() -> None:
    parameters = {each.name: each for each in OF_TASKS["imagenet"]}
    stated = {"executor": "ray", "ray_tasks": 2, "ray_address": "x:1", "run_dir": "r", "num_images": 3, "workers": "1"}
    request = Request("imagenet", Options.of(stated, parameters), None, ())
    assert dict(request.without_run_options().options.stated) == {"num_images": 3, "workers": "1"}


# ----- values


@pytest.mark.parametrize(
    ("default", "texts", "canonical"),
    [
        (False, ("1", "true"), "true"),
        (0, ("7", "+7", "007"), "7"),
        (0.0, ("0.5", ".5", "5e-1"), "0.5"),
        (0.0, ("0", "-0", "0.0"), "0.0"),
        ("", (" a",), " a"),
    ],
)
def test_texts_that_mean_the_same_have_one_canonical_text(default: Value, texts: Sequence[str], canonical: str) -> None:
    parameter = Parameter("x", "", default=default)
    assert {parameter.canonical(text) for text in texts} == {canonical}


def test_a_default_is_as_left_out_unless_giving_it_counts() -> None:
    assert Parameter("x", "", default=1).is_as_left_out(1)
    assert not Parameter("x", "", default=1).is_as_left_out(2)
    assert not Parameter("x", "", default=1, given_counts=True).is_as_left_out(1)


# ----- paths


def rewritten(role: Role, text: str) -> object:
    return Parameter("x", "", role=role).rewrite(text, lambda path: f"<{path}>")


@pytest.mark.parametrize("role", ["input_file", "pictures", "settings_file", "machine_path", "output_folder"])
def test_a_path_is_rewritten_as_a_whole(role: Role) -> None:
    assert rewritten(role, "a=b:c,d") == "<a=b:c,d>"
    assert rewritten(role, "") == ""


def test_what_is_no_path_stays() -> None:
    assert rewritten("plain", "a/b") == "a/b"
    assert rewritten("program", "adb") == "adb"
    assert rewritten("program", "./adb") == "<adb>"
    assert rewritten("library", "libx.so.1") == "libx.so.1", "no such file here: the loader looks it up"
    assert rewritten("library", "./x.so") == "<x.so>"
    assert Parameter("x", "", default=0).rewrite(7, str) == 7


def test_a_named_file_keeps_its_name_and_a_file_that_is_there_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x=y.npy", "y.npy"):
        Path(name).touch()
    texts = ("y.npy", "a=y.npy", "a=b=y.npy", "x=y.npy", "=y.npy")
    expected = ["<y.npy>", "a=<y.npy>", "a=b=<y.npy>", "<x=y.npy>", "=<y.npy>"]
    assert [rewritten("named_files", text) for text in texts] == expected
    for text in ("none.npy", "a=", "="):
        with pytest.raises(DataError, match=f"^--x={text}: no such file or folder$"):
            rewritten("named_files", text)


def test_files_of_layers_are_pairs_with_colons_written_twice() -> None:
    assert rewritten("layer_files", "a:b.bin,in::0:c::d") == "a:<b.bin>,in::0:<c::d>"
    assert rewritten("layer_files", "ids,::") == "ids,::"


# ----- flags without effect

SIDE_BY_SIDE = {
    "mode": Parameter("mode", "", default="plain", choices=("plain", "fast", "faster")),
    "limit": Parameter("limit", "", default=0.0),
    "speed": Parameter("speed", "", default=1, only_with=("mode=fast|faster",)),
    "care": Parameter("care", "", default=1, only_with=("mode=plain", "not_here=1")),
    "rest": Parameter("rest", "", default=1, only_with=("limit",)),
}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("speed", "1")], "--speed has no effect without --mode=fast|faster; add that, or leave it out"),
        ([("care", "1"), ("mode", "fast")], "--care has no effect with --mode=fast; leave one of the two out"),
        ([("rest", "1")], "--rest has no effect without --limit; add that, or leave it out"),
        ([("rest", "1"), ("limit", "0")], "--rest has no effect without --limit; add that, or leave it out"),
    ],
)
def test_a_flag_without_effect_is_refused_with_a_way_out(given: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        Options.of(dict(given), SIDE_BY_SIDE).refuse_without_effect()


@pytest.mark.parametrize(
    "given", [[("speed", "1"), ("mode", "faster")], [("care", "1")], [("rest", "1"), ("limit", "2")]]
)
def test_a_flag_beside_what_it_needs_is_taken(given: list[tuple[str, str]]) -> None:
    Options.of(dict(given), SIDE_BY_SIDE).refuse_without_effect()
