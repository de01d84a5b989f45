"""However a run is carried out, its figures are the same: by workers, in shards; what is no shard of it is refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.datasets import sample
from evaltools.result.result import INVOKE_US
from evaltools.result.section import Lines
from evaltools.result_file import read_result
from evaltools.runs.handing_over import to_bytes
from evaltools.runs.stored import stored_request
from tests import tiny_models
from tests.cli.evaluate.sample_runs import (
    XNNPACK,
    coco,
    figures,
    figures_here,
    imagenet,
    inference_diff,
    journal_rows,
)
from tests.command import Completed, evaltools_here

pytestmark = pytest.mark.once


COUNT = 3


PICTURES = 20


REFERENCE_KERNELS = "plain C++: kernels=reference"


def run_shards(command: list[str], folder: Path, *indices: int, count: int = COUNT) -> list[Path]:
    """Run shards one after the other; their folders."""
    places = [folder / f"shard{index}" for index in indices]
    for place, index in zip(places, indices, strict=True):
        done = evaltools_here(*command, f"--run_dir={place}", f"--shard_index={index}", f"--shard_count={count}")
        assert done.code == 0, done.err
    return places


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of three shards."""
    return run_shards(imagenet(XNNPACK, pictures=PICTURES), tmp_path_factory.mktemp("shards"), *range(COUNT))


def merge(*folders: Path, flags: tuple[str, ...] = ()) -> Completed:
    return evaltools_here("merge", *map(str, folders), *flags)


RECORD = "--record_examples=true"
COMMANDS = {
    "imagenet": imagenet(XNNPACK, RECORD, pictures=PICTURES),
    "coco": coco(XNNPACK, RECORD, "--bootstrap_resamples=100", pictures=7),
    "inference-diff": inference_diff("--config", REFERENCE_KERNELS),
}


@pytest.fixture(scope="module", params=COMMANDS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """A command, and its result with one worker."""
    command, output = COMMANDS[request.param], tmp_path_factory.mktemp("whole") / "whole.json"
    figures_here([*command, "--workers=1"], output)
    return command, output


def conditions_of(path: Path) -> str:
    """What a result says of how its times were measured."""
    (block,) = (
        section.blocks[0] for section in read_result(path).blocks if (section.title, section.place) == ("", "speed")
    )
    assert isinstance(block, Lines)
    return str(block.lines[0])


def test_the_number_of_workers_changes_no_figure(whole: tuple[list[str], Path], tmp_path: Path) -> None:
    command, one = whole
    assert figures_here([*command, "--workers=2"], tmp_path / "two.json") == figures(one)
    used = [conditions_of(path).partition(",")[0] for path in (one, tmp_path / "two.json")]
    assert used == ["1 worker", "2 workers"]


@pytest.mark.parametrize("whole", ["imagenet"], indirect=True)
def test_another_process_changes_no_figure_and_its_folder_is_no_result(
    whole: tuple[list[str], Path], tmp_path: Path
) -> None:
    """The way of a place, on this computer."""
    command, here = whole
    run_dir = tmp_path / "run"
    assert figures_here([*command, "--at=here", f"--run_dir={run_dir}"], tmp_path / "there.json") == figures(here)
    done = evaltools_here("report", str(run_dir), f"--output={tmp_path / 'page.html'}")
    assert (done.code, f"evaltools resume {run_dir} --output=FILE writes its result" in done.err) == (2, True)


def test_merged_shards_are_the_whole(whole: tuple[list[str], Path], tmp_path: Path) -> None:
    command, output = whole
    record = [RECORD] if RECORD in command else []
    folders = run_shards([word for word in command if word != RECORD], tmp_path, 0, 1, 2)
    parts = [{example for example, _ in journal_rows(folder)} for folder in folders]
    assert [part & other for part in parts for other in parts if part is not other] == [set()] * 6
    merged = tmp_path / "merged.json"
    assert figures_here(["merge", *map(str, reversed(folders)), *record], merged) == figures(output)
    if record:
        times = [read_result(path).rows[1].series.get(INVOKE_US) for path in (output, merged)]
        assert (len(times[0] or ()) > 0, times[1]) == (True, None), "times of shards have no common order"


def test_shards_whose_noise_overflows_take_the_same_range_as_the_whole(tmp_path: Path) -> None:
    model = tmp_path / "brighten.tflite"
    model.write_bytes(tiny_models.brighten())
    command = ["inference-diff", f"--model_file={model}", "--num_runs=7", "--noise_floor_runs=3", "--use_xnnpack=true"]
    whole = figures_here([*command, f"--run_dir={tmp_path / 'whole'}"], tmp_path / "whole.json")
    assert "because outputs overflow with -1..1" in read_result(tmp_path / "whole.json").given["input 0"]
    folders = run_shards(command, tmp_path, 0, 1, 2)
    assert figures_here(["merge", *map(str, folders)], tmp_path / "merged.json") == whole


def test_a_shard_that_is_missing_is_said(shards: list[Path]) -> None:
    completed = merge(shards[0], shards[2])
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == (
        "evaltools: 7 of 20 examples are in none of the 2 folders; give all shards, "
        "and finish those that were interrupted with evaltools resume\n"
    )


def test_the_same_shard_twice_is_refused(shards: list[Path], tmp_path: Path) -> None:
    copy = shutil.copytree(shards[1], tmp_path / "copy")
    completed = merge(*shards, copy)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == (
        f"evaltools: {shards[1]} holds shard 1/3, {copy} holds shard 1/3; give each shard of one run once\n"
    )
    completed = merge(*shards, shards[1])
    assert completed.code == 2
    assert completed.err == f"evaltools: {shards[1]} is given twice; give each shard of one run once\n"


def test_shards_are_merged_where_they_were_copied_to(shards: list[Path], tmp_path: Path) -> None:
    """As from other hosts: pictures and labels are here, times of change do not count."""
    copies = [shutil.copytree(folder, tmp_path / folder.name) for folder in shards]
    output = tmp_path / "result.json"
    completed = merge(*copies, flags=(f"--output_file_path={output}",))
    assert completed.code == 0, completed.err
    assert figures(output)["examples_done"] == PICTURES
    assert str(sample.images_dir()) in output.read_text()


_WITHOUT_SCIPY = """
import sys
from pathlib import Path
sys.modules["scipy"] = None
from evaltools.device.on_device import main
sys.exit(main(["--", sys.argv[1]]))
"""


def test_a_part_has_the_records_of_the_whole_command_without_scipy(tmp_path: Path) -> None:
    command = coco(XNNPACK, pictures=6)
    whole, part = tmp_path / "whole", tmp_path / "part"
    done = evaltools_here(*command, f"--run_dir={whole}", f"--output={tmp_path / 'whole.json'}")
    assert done.code == 0, done.err
    request = replace(stored_request(whole, {}).without("output_file_path"), folder=Path.cwd())
    (tmp_path / "request.json").write_bytes(to_bytes(request.stating(run_dir=part)))
    words = [sys.executable, "-c", _WITHOUT_SCIPY, str(tmp_path / "request.json")]
    recorded = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (recorded.returncode, recorded.stdout) == (0, ""), recorded.stderr
    assert "xnnpack" in recorded.stderr.lower()
    assert journal_rows(part).keys() == journal_rows(whole).keys()
    again = evaltools_here("resume", str(part), f"--output={tmp_path / 'part.json'}")
    assert again.code == 0, again.err
    assert figures(tmp_path / "part.json") == figures(tmp_path / "whole.json")


def test_the_parts_of_another_division_are_refused(shards: list[Path], tmp_path: Path) -> None:
    (other,) = run_shards(imagenet(XNNPACK, pictures=PICTURES), tmp_path, 1, count=2)
    completed = merge(shards[0], other)
    assert completed.code == 2
    assert f"{shards[0]} holds shard 0/3, {other} holds shard 1/2" in completed.err
