"""Texts that are nested without end cost a sentence, whatever reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaltools.datasets.coco_instances import read_instances
from evaltools.documents import json_as, json_values, toml_values
from evaltools.engine.run_folder import decode
from evaltools.errors import EvaltoolsError
from evaltools.gates.gate_file import read_gate_file
from evaltools.request.yaml_file import read_yaml
from evaltools.result_file import read_result
from evaltools.tasks.inference_diff.saved_outputs import read_saved_reference
from tests.command import evaltools_here

DEEP = "[" * 100_000
CLOSED = DEEP + "]" * 100_000
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a result": (f'{{"schema_version": "6", "task": "imagenet", "x": {CLOSED}}}', read_result),
    "a result without its end": (f'{{"x": {DEEP}', read_result),
    "instances of COCO": (f'{{"info": {CLOSED}}}', lambda path: read_instances(path, "--ground_truth")),
    "configurations": (CLOSED, lambda path: read_yaml(path, "--configs")),
    "a file of gates": (f"x = {CLOSED}", read_gate_file),
    "a journal": (f'{{"x": {CLOSED}}}', lambda path: decode(path.read_text(), dict[str, Any], path.parent)),
    "saved outputs": (f'{{"x": {CLOSED}}}', lambda path: read_saved_reference(path.parent)),
}


@pytest.mark.parametrize("what", READERS)
def test_what_is_nested_without_end_is_refused_with_a_sentence(what: str, tmp_path: Path) -> None:
    text, read = READERS[what]
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(EvaltoolsError, match=f"{tmp_path}.* it is nested too deeply") as caught:
        read(path)
    assert caught.value.exit_code == 2


def test_a_key_of_many_parts_is_refused_before_it_takes_minutes(tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text(".".join("a" * 100_000) + " = 1")
    with pytest.raises(EvaltoolsError, match="is not TOML: it has a key of more than 64 parts"):
        read_gate_file(path)


def test_a_long_word_does_not_take_time_by_its_square() -> None:
    long = "x" * 1_000_000
    assert toml_values(f"a = '{long}'") == {"a": long}


@pytest.mark.parametrize(
    "text", ["a.b.c = 1", "a = '" + "a text. " * 200 + "'", "a = '" + "b/c.d " * 200 + "'", 'a."b.c".d = 2']
)
def test_other_texts_with_dots_are_read(text: str) -> None:
    assert "a" in toml_values(text)


def test_values_that_do_not_fit_are_named_and_names_without_unicode_are_kept() -> None:
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$\[1\]`"):
        json_as(b'[1, "2"]', list[int])
    assert json_values(b'"\\udc80"') == "\udc80"


def test_a_gate_on_a_result_that_is_nested_without_end_is_no_broken_limit(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(READERS["a result"][0])
    (tmp_path / "gates.toml").write_text('[[gates]]\nlimits = ["top1 >= 50 %"]\n')
    done = evaltools_here("gate", str(tmp_path / "result.json"), f"--gates={tmp_path / 'gates.toml'}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.endswith("result.json is not an evaltools result: it is nested too deeply\n")
