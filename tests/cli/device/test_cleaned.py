"""What ``evaltools device clean`` of another desk takes away while a run needs it is sent again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.device import runs as device_runs
from tests.cli.device.test_benchmark import BENCHMARK
from tests.cli.evaluate.sample_runs import imagenet
from tests.device.fixtures import Devices
from tests.device.real_device import Network

pytestmark = pytest.mark.once
_CLEANED = """#!/bin/sh
# As Python, before whose first real work another desk cleans the device.
if [ "$2" = evaltools.device.programs.on_device ] && [ "$3" != --check ] && [ ! -e {done} ]; then
  touch {done}
  rm -rf /data/local/tmp/evaltools/store
fi
exec {python} "$@"
"""


@pytest.mark.parametrize("arguments", [imagenet(pictures=4), list(BENCHMARK)], ids=["imagenet", "benchmark"])
def test_a_part_whose_files_were_deleted_is_lost_and_done_again(
    arguments: list[str], network: Network, devices: Devices, tmp_path: Path
) -> None:
    python, output = tmp_path / "python", tmp_path / "result.json"
    python.write_text(_CLEANED.format(python=sys.executable, done=tmp_path / "done"))
    python.chmod(0o755)
    command = device_runs.on_devices(network, [devices[0].serial], arguments, python=python)
    done = device_runs.run([*command, f"--output_file_path={output}"])
    assert done.code == 0, done.err
    (part,) = json.loads(output.read_text())["device_run"]["parts"]
    (lost,) = part["lost"]
    assert "was deleted there, as device clean does, while it was needed" in lost["reason"]
