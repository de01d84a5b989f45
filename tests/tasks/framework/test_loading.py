"""A task is found by its name, and a file that cannot be used costs one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.tasks.framework.definition import Task, name_of, task
from evaltools.tasks.framework.loading import Origin, load_task, located
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task


def message_of(text: str) -> str:
    with pytest.raises(UsageError) as error:
        load_task(text)
    return str(error.value)


def install(folder: Path, entry: str) -> None:
    """A package that has this task."""
    facts = folder / "some_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[evaltools.tasks]\n{entry}\n")


def test_an_installed_task_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed_task.py").write_text(task_files.BRIGHTNESS)
    install(tmp_path, "glow = installed_task:brightness")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = load_task("glow")
    assert loaded.origin == Origin(tmp_path / "installed_task.py", "brightness", "installed_task")
    assert "there is no task 'glov'. Did you mean glow?" in message_of("glov")


def test_a_function_of_a_module_can_be_found_again(tmp_path: Path) -> None:
    file = write_task(tmp_path)
    found = located(load_task(f"{file}:brightness").function)
    assert found.origin is not None
    assert name_of(found.origin.load()) == "brightness"


def empty_task(**facts: str) -> Task:
    return Task(examples=[], prepare=lambda _value, _tensors: [], facts=facts)


def test_a_lambda_is_known_to_this_process_alone() -> None:
    assert located(lambda: empty_task()).origin is None


def test_a_function_stays_what_it_is_when_it_becomes_a_task() -> None:
    def rooms(count: int) -> Task:
        return empty_task(rooms=str(count))

    assert task(rooms) is rooms
    assert rooms(3).facts == {"rooms": "3"}


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("x = 1\n\ndef f(:\n", "a", "line 3: the file of the task cannot be loaded: SyntaxError"),
        ("def f():\n    raise RuntimeError('out of order')\n\nf()\n", "a", "line 2: the file of the task cannot be "),
        ("import sys\nsys.exit(3)\n", "a", "line 2: the file of the task cannot be loaded: SystemExit: 3"),
        ("def f():\n    pass\n", "f", "f is not a task but a function; put @evaltools.task above it"),
        ("x = 1\n", "a", "has no task 'a'. As a task it has none; put @evaltools.task above a function"),
        (task_files.BRIGHTNESS, "brightnes", "has no task 'brightnes'. Did you mean brightness? As a task it has br"),
    ],
)
def test_a_file_without_that_task_costs_one_sentence(tmp_path: Path, content: str, name: str, message: str) -> None:
    file = write_task(tmp_path, content)
    said = message_of(f"{file}:{name}")
    assert said.startswith(str(file))
    assert message in said
    assert "\n" not in said


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    expected = f"{tmp_path / 'no.py'}: the file of the task cannot be read: No such file or directory"
    assert message_of(f"{tmp_path / 'no.py'}:a") == expected


def test_each_task_has_the_modules_beside_it_also_after_they_changed(tmp_path: Path) -> None:
    content = task_files.BRIGHTNESS.replace("import numpy as np", "import numpy as np\nfrom steps import SCALE")
    files = []
    for folder, scale in (("a", 1), ("b", 7)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "steps.py").write_text(f"SCALE = {scale}\n")
        files.append(write_task(tmp_path / folder, content))

    def scale_of(file: Path) -> int:
        found: int = load_task(f"{file}:brightness").function.__globals__["SCALE"]
        return found

    assert [scale_of(file) for file in (*files, files[0])] == [1, 7, 1]
    assert not {str(file.parent) for file in files} & set(sys.path)
    origin = load_task(f"{files[0]}:brightness").origin
    assert origin is not None
    before = origin.sha256
    (tmp_path / "a" / "steps.py").write_text("SCALE = 30\n")
    assert origin.sha256 != before, "a run with the module as it was does not go on"
    assert scale_of(files[0]) == 30
    files[0].write_text(content.replace("def brightness", "def warmth"))
    assert name_of(load_task(f"{files[0]}:warmth").function) == "warmth"


def test_a_package_beside_the_file_that_has_no_init_is_loaded_again(tmp_path: Path) -> None:
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "deep" / "numbers.py").write_text("SCALE = 1\n")
    file = write_task(tmp_path, "from parts.deep.numbers import SCALE\n" + task_files.BRIGHTNESS)
    for scale in (1, 2):
        (tmp_path / "parts" / "deep" / "numbers.py").write_text(f"SCALE = {scale}\n# {'x' * scale}\n")
        assert load_task(f"{file}:brightness").function.__globals__["SCALE"] == scale
    beside = {path.relative_to(tmp_path).as_posix() for path in Origin(file, "brightness").beside}
    assert beside == {"parts/__init__.py", "parts/deep/numbers.py"}
