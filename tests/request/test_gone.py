"""Flags of earlier versions are refused by name, with what to do instead."""

from __future__ import annotations

import pytest

import evaltools
from evaltools.errors import UsageError
from evaltools.gone import GONE, GONE_OF, NAMES_GONE
from evaltools.request.flags import parse_flags
from tests.command import evaltools_here


@pytest.mark.parametrize(("name", "instead"), GONE.items())
def test_a_flag_that_is_gone_is_refused_with_what_to_do_instead(name: str, instead: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_flags("imagenet", "", "", {"flags": ()}, [f"--{name}=x"])
    assert f"--{name} is gone: {instead}" in str(refused.value)


@pytest.mark.parametrize("command", GONE_OF)
def test_a_flag_that_is_gone_from_one_command_is_refused_there_alone(command: str) -> None:
    for name, instead in GONE_OF[command].items():
        with pytest.raises(UsageError, match="is gone") as refused:
            parse_flags(f"{command} X", "", "", {"flags": ()}, [f"--{name}=x"])
        assert instead in str(refused.value)
        with pytest.raises(UsageError, match="no such flag"):
            parse_flags("imagenet", "", "", {"flags": ()}, [f"--{name}=x"])


@pytest.mark.parametrize(("name", "instead"), NAMES_GONE.items())
def test_what_is_gone_from_python_says_what_to_do_instead(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"evaltools.{name} is gone: ") as refused:
        getattr(evaltools, name)
    assert instead in str(refused.value)


def test_they_are_sorted() -> None:
    assert list(GONE) == sorted(GONE)


@pytest.mark.parametrize("words", [["run", "shapes.yaml", "m.tflite"], ["device", "run", "shapes.yml", "m.tflite"]])
def test_a_task_in_yaml_is_refused_with_what_to_write_instead(words: list[str]) -> None:
    done = evaltools_here(*words)
    assert (done.code, done.out) == (2, "")
    assert "It is gone: a task is a function with @evaltools.task" in done.err
