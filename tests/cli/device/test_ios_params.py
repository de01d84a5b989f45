"""``evaltools device ios-params`` writes the file, and says what to do with it."""

from __future__ import annotations

import json
from pathlib import Path

from tests import tiny_models
from tests.command import evaltools_here


def test_the_file_is_written_under_the_name_that_the_app_looks_for(tmp_path: Path) -> None:
    (tmp_path / "a.tflite").write_bytes(tiny_models.vector_input(length=4))
    done = evaltools_here("device", "ios-params", "a.tflite", "--use_gpu", "--num_threads=2", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    content = json.loads((tmp_path / "benchmark_params.json").read_text())
    assert content == {"graph": "a.tflite", "num_threads": "2", "use_gpu": "1"}
    assert done.err.startswith("benchmark_params.json: 3 flags. Put it and a.tflite into benchmark_data")
    assert "next: evaltools convert ios-log FILE --graph=a.tflite --output=result.json" in done.err
