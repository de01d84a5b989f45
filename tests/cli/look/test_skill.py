"""What SKILL.md tells an agent is what evaltools has; tests/test_docs.py runs its commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from evaltools import exit_codes
from evaltools.commands.names import command_names
from evaltools.datasets import sample
from evaltools.gates.verdict import GRADES
from evaltools.result.verdict import GATE_VERDICTS, VerdictKind
from tests.command import evaltools_here

SKILL = evaltools_here("skill").out


def rows(heading: str) -> list[str]:
    """The first column of the table below a heading, as it stands in the text."""
    [section] = re.findall(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", SKILL, re.DOTALL | re.MULTILINE)
    return re.findall(r"^\| ([^|]+?) \|", section, re.MULTILINE)[1:]


def test_it_is_short_and_has_a_name_and_a_description() -> None:
    _, front, text = SKILL.split("---\n", 2)
    assert sorted(yaml.safe_load(front)) == ["description", "name"]
    assert text.strip()
    assert len(SKILL.splitlines()) <= 150


def test_every_verdict_is_explained_and_no_other() -> None:
    explained = [kind.strip("`") for kind in rows("How to read a verdict")]
    assert sorted(explained) == sorted({*GRADES, *get_args(VerdictKind)})
    assert [verdict for verdict in GATE_VERDICTS if f"`{verdict}`" not in SKILL] == []


def test_every_exit_code_is_explained_and_no_other() -> None:
    codes = {value for name, value in vars(exit_codes).items() if isinstance(value, int) and name[0] != "_"}
    assert sorted(map(int, rows("What to do on each exit code"))) == sorted(codes)


def test_it_names_commands_that_exist() -> None:
    named = set(re.findall(r"evaltools ([a-z][a-z-]*)", re.sub(r"^---.*?^---$", "", SKILL, flags=re.DOTALL | re.M)))
    assert named <= set(command_names())


@pytest.mark.once
def test_an_agent_finds_the_verdict_where_it_is_told_to_look(tmp_path: Path) -> None:
    configurations = ["--config=xnnpack: use_xnnpack=true", "--config=nnapi: use_nnapi=true"]
    evaltools_here("diff", str(sample.model_file("float32")), *configurations, "--output=diff.json", cwd=tmp_path)
    found = json.loads((tmp_path / "diff.json").read_text())["rows"]
    told = {
        entry["name"]: (entry["status"], [verdict["kind"] for verdict in entry.get("verdicts", [])]) for entry in found
    }
    assert told["xnnpack"] == ("measured", ["equivalent"])
    assert told["nnapi"] == ("not measured", ["not measured"])
    assert all(entry["reason"] for entry in found if entry["name"] == "nnapi")
