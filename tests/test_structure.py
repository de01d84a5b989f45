"""The arrows between the rooms point as drawn in CONTRIBUTING.md."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOR_ALL = ("documents", "errors", "exit_codes", "extensions", "gone", "lazy_sequence", "text")
"""What every room may import; they import each other only."""
MAY_IMPORT = {
    **dict.fromkeys(FOR_ALL, ""),
    "parameter": "",
    "delegates": "parameter",
    "configuration": "delegates parameter",
    "model": "parameter",
    "preprocess": "",
    "metrics": "stats",
    "stats": "",
    "proto": "",
    "result": "metrics model parameter runtime stats",
    "task_kind": "metrics parameter result",
    "result_file": "result task_kind",
    "gates": "metrics parameter result stats task_kind",
    "runtime": "configuration delegates metrics model",
    "datasets": "preprocess proto",
    "engine": "configuration delegates model result runtime",
    "request": "configuration delegates parameter task_kind",
    "native": "configuration delegates metrics parameter proto result runtime stats task_kind",
    "report": "engine gates metrics model native request result result_file runtime stats task_kind",
    "benchmark": (
        "configuration datasets delegates engine metrics model native parameter report request result "
        "result_file runtime stats task_kind tasks"
    ),
    "tasks": (
        "configuration datasets delegates engine gates metrics model native parameter preprocess report "
        "request result runtime stats task_kind"
    ),
    "locate": (
        "configuration datasets delegates engine metrics model parameter report request result result_file "
        "runtime task_kind tasks"
    ),
    "runs": "configuration delegates engine gates parameter request result result_file runtime task_kind tasks",
    "device": "benchmark engine locate native parameter report request result result_file runs task_kind tasks",
    "device/adb": "device result",
    "device/files": "device",
    "device/programs": "device result",
    "capture": "device engine report request result runs runtime",
    "commands": "benchmark device gates locate parameter request runs task_kind tasks",
    "suite": (
        "benchmark commands configuration engine gates locate model parameter report request result result_file runs "
        "runtime stats task_kind tasks"
    ),
    "api": (
        "benchmark configuration datasets engine gates locate metrics model parameter preprocess report "
        "request result result_file runs runtime suite task_kind tasks"
    ),
    "cli": (
        "benchmark capture commands configuration datasets delegates device engine gates locate metrics "
        "native parameter report request result result_file runs runtime stats suite task_kind tasks"
    ),
    "pytest_plugin": "commands engine gates parameter preprocess report request result result_file runs tasks",
}


def sources(room: str) -> list[Path]:
    folder = ROOT / room if room in ("tasks", "datasets") else ROOT / "evaltools" / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported_rooms(source: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evaltools."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("evaltools.")}
    return rooms


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = sources(room)
    assert files
    for source in files:
        assert imported_rooms(source) <= {room, *FOR_ALL, *MAY_IMPORT[room].split()}, source


def all_rooms() -> set[str]:
    inside = (ROOT / "evaltools").iterdir()
    modules = [path for path in inside if path.suffix in ("", ".py") and path.name[0] not in "_."]
    return {*(path.stem for path in modules), "tasks", "datasets"}


def test_what_it_may_import_is_said_of_every_room() -> None:
    assert all_rooms() <= set(MAY_IMPORT)


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms = all_rooms()
    graph = {room: {other for source in sources(room) for other in imported_rooms(source)} - {room} for room in rooms}
    require_no_circle(graph)


def require_no_circle(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def module_of(source: Path) -> str:
    parts = source.relative_to(ROOT).with_suffix("").parts
    inside = parts if parts[0] == "evaltools" else ("evaltools", *parts)
    return ".".join(inside[:-1] if inside[-1] == "__init__" else inside)


def imported_modules(source: Path, known: set[str]) -> set[str]:
    """The files that a file imports, at its top, in functions and for types."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom):
            package = str(node.module)
            found |= {f"{package}.{alias.name}" for alias in node.names} & known
            found |= {package} if any(f"{package}.{alias.name}" not in known for alias in node.names) else set()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def imports() -> dict[str, set[str]]:
    """What each file imports, by their modules."""
    files = {
        module_of(path): path for room in ("evaltools", "tasks", "datasets") for path in (ROOT / room).rglob("*.py")
    }
    return {name: imported_modules(path, set(files)) - {name} for name, path in files.items()}


def test_no_files_import_each_other_in_a_circle() -> None:
    require_no_circle(imports())


def folder_of(module: str) -> str:
    """The folder that a file lies in; a file beside the rooms stands for itself."""
    path = ROOT / module.replace("evaltools.tasks", "tasks").replace("evaltools.datasets", "datasets").replace(".", "/")
    folder = module if path.is_dir() else module.rpartition(".")[0]
    return module if folder == "evaltools" else folder


def test_no_folders_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for module, imported in imports().items():
        folder = folder_of(module)
        graph.setdefault(folder, set()).update({folder_of(other) for other in imported} - {folder})
    require_no_circle(graph)


PARSERS = {"json.loads", "json.load", "msgspec.json.decode", "tomllib.loads", "yaml.load", "ElementTree.XMLParser"}


def test_texts_from_elsewhere_are_parsed_in_one_place() -> None:
    """That place has the guard against texts that are nested without end."""
    found = {
        path.name
        for room in ("evaltools", "tasks", "datasets")
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PARSERS
    }
    assert found == {"documents.py"}
