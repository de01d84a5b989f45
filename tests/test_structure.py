"""Rooms know only the layers below them, nothing imports in a circle, and texts of others are parsed in one place."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = {
    "for all": "documents errors exit_codes extensions file_content gone lazy_sequence own_package signals text",
    "facts and numbers": (
        "command configuration datasets delegates known_tasks metrics model parameter preprocess proto request result "
        "result_file"
    ),
    "running models": "adb arm64 candidates engine native runtime",
    "judging and saying": "gates operators report",
    "doing": "benchmark commands device inspection locate runs suite tasks",
    "doors": "api cli pytest_plugin",
}
"""The layers from below; docs/rooms.md is made of them."""
LEVEL = {room: level for level, rooms in enumerate(LAYERS.values()) for room in rooms.split()}
PARSERS = {"json.loads", "json.load", "msgspec.json.decode", "tomllib.loads", "yaml.load", "ElementTree.XMLParser"}


@cache
def sources() -> dict[str, Path]:
    """The files of the product, by their modules."""
    found = {}
    for folder in ("evaltools", "tasks", "datasets"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            inside = parts if folder == "evaltools" else ("evaltools", *parts)
            found[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = path
    return found


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a file, which is parsed once for all questions."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imports() -> dict[str, set[str]]:
    """The files that a file imports, at its top, in functions and for types, by their modules."""
    return {module: imported_modules(path) - {module} for module, path in sources().items()}


def imported_modules(source: Path) -> set[str]:
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.ImportFrom):
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= within | ({str(node.module)} if not within <= set(sources()) else set())
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(sources())


def itself(module: str) -> str:
    return module


def folder_of(module: str) -> str:
    """The folder that a file lies in; a file beside the rooms stands for itself."""
    folder = module if sources()[module].name == "__init__.py" else module.rpartition(".")[0]
    return module if folder == "evaltools" else folder


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def graph_of(part_of: Callable[[str], str]) -> dict[str, set[str]]:
    """Which parts import which other parts."""
    graph: dict[str, set[str]] = {}
    for module, imported in imports().items():
        part = part_of(module)
        graph.setdefault(part, set()).update({part_of(other) for other in imported} - {part})
    return graph


def test_a_room_imports_only_rooms_of_its_layer_and_of_those_below() -> None:
    rooms = {room: others for room, others in graph_of(room_of).items() if room}
    assert set(rooms) == set(LEVEL)
    wrong = {f"{room} imports {other}" for room, others in rooms.items() for other in others if is_above(other, room)}
    assert wrong == set()


def is_above(other: str, room: str) -> bool:
    """Whether a room is above another one, or a door beside it: none of these asks another."""
    return other != "" and LEVEL[other] + (other in LAYERS["doors"].split()) > LEVEL[room]


@pytest.mark.parametrize("part_of", [itself, folder_of, room_of])
def test_nothing_imports_in_a_circle(part_of: Callable[[str], str]) -> None:
    try:
        TopologicalSorter(graph_of(part_of)).prepare()
    except CycleError as error:
        pytest.fail(f"these import each other: {' -> '.join(error.args[1])}")


def test_texts_from_elsewhere_are_parsed_in_one_place() -> None:
    """That place has the guard against texts that are nested without end."""
    found = {
        path.name
        for path in sources().values()
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PARSERS
    }
    assert found == {"documents.py"}


READERS = {
    *("open", "io.open", "os.open", "os.fdopen", "sqlite3.connect", "zipfile.ZipFile", "tarfile.open", "Image.open"),
    *("np.load", "np.memmap", "np.fromfile"),
}
NOT_FROM_ELSEWHERE = {
    "the door": "file_content",
    "content that came through the door": "datasets.input_files preprocess.decode report.page.rendering.other_files",
    "a door for journals": "engine.journal",
    "what evaltools brings along": "arm64.box cli.skill own_package locate.bundle preprocess.resize proto",
    "what the system says": (
        "benchmark.conditions benchmark.self_measuring engine.sampling result.environment "
        "runtime.memory runtime.process.server runs.one_pass"
    ),
    "installed packages, drivers and compilers, which are code": (
        "extensions runtime.compiled.gpu runtime.emulated.compiler"
    ),
    "code that the user names": "tasks.framework.loading",
    "what this run, or its own process, has written": (
        "device.native_program device.on_device locate.by_name "
        "locate.run locate.sides operators.child operators.measurement operators.part "
        "pytest_plugin.session_runs runs.evaluate runs.handing_over "
        "runtime.native.machines runtime.process.shared_arrays"
    ),
    "standard streams": "cli.main cli.shared.streams",
    "a file that was looked at, and whose first bytes say whether it may be replaced": "report.files.output_file",
}
"""The files that read others without the door, and why."""


def test_files_from_elsewhere_come_through_one_door() -> None:
    """Whoever opens a file beside :mod:`evaltools.file_content` says here why it is not from elsewhere."""
    found = {
        module.removeprefix("evaltools.")
        for module, path in sources().items()
        for node in nodes(path)
        if isinstance(node, ast.Call) and reads_a_file(node)
    }
    assert found == {module for modules in NOT_FROM_ELSEWHERE.values() for module in modules.split()}


def reads_a_file(call: ast.Call) -> bool:
    """Whether a call opens or reads a file; one that says that it writes does not."""
    stated = [
        value for value in (*call.args, *(each.value for each in call.keywords)) if isinstance(value, ast.Constant)
    ]
    if any(isinstance(value.value, str) and value.value in ("w", "wb", "xb", "ab", "a", "x") for value in stated):
        return False
    if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func) in READERS:
        return ast.unparse(call.func) in READERS
    opens = call.func.attr == "open" and all(isinstance(value, ast.Constant) for value in call.args)
    return opens or call.func.attr in ("read_text", "read_bytes")
