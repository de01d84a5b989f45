"""Children start whatever the program is that starts them, and take nothing from the folder that it works in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import tiny_models


def test_a_program_without_a_guard_runs_once(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    program = tmp_path / "program.py"
    program.write_text(
        "from pathlib import Path\n"
        "from evaltools.configuration import Configuration\n"
        "from evaltools.model import read_model\n"
        "from evaltools.runtime.process.isolated import open_isolated\n"
        "print('runs')\n"
        f"open_isolated(read_model(Path({str(model)!r})), Configuration('one')).close()\n"
        "print(Path(__file__).name)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("runs\nprogram.py\n", "")


def test_no_process_imports_modules_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    for name in ("json", "numpy", "selectors", "socket", "psutil", "tempfile"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'a').write(__name__)")
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from evaltools.configuration import Configuration\n"
        "from evaltools.model import read_model\n"
        "from evaltools.runtime.process.isolated import open_isolated\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "open_isolated(read_model(Path('model.tflite')), Configuration('one')).close()\n"
    )
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)
    assert not (tmp_path / "imported").exists()


def run_program(folder: Path, lines: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(lines)
    return subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_where_descriptors_run_out_no_process_prints_a_traceback(tmp_path: Path) -> None:
    """Whatever they run out at."""
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    done = run_program(
        tmp_path,
        "import resource\n"
        "from contextlib import ExitStack\n"
        "from pathlib import Path\n"
        "from evaltools.configuration import Configuration\n"
        "from evaltools.errors import ConfigurationUnavailable\n"
        "from evaltools.model import read_model\n"
        "from evaltools.runtime.process.isolated import open_isolated\n"
        "model = read_model(Path('model.tflite'))\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "open_isolated(model, Configuration('one')).close()\n"
        "for limit in range(28, 38, 2):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))\n"
        "    with ExitStack() as opened:\n"
        "        try:\n"
        "            while True:\n"
        "                opened.callback(open_isolated(model, Configuration('one')).close)\n"
        "        except ConfigurationUnavailable as error:\n"
        "            print(error)\n",
    )
    said = "no process of its own could be started for it: [Errno 24] Too many open files"
    assert (done.stdout.splitlines(), done.stderr) == ([said] * 5, "")
