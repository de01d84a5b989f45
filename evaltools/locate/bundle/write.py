"""Writes a bundle, which others need to reproduce a finding, and tries its script before anything is called one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, OutputError
from evaltools.locate.bundle.script import FAILING, PASSING, PASSING_INPUT, NoScript, ScriptFacts, script
from evaltools.locate.bundle.trial import Trial, try_script
from evaltools.locate.parts.part import Case
from evaltools.model import read_model
from evaltools.model.contents import Graph, read_contents
from evaltools.report.files.output_file import require_new_folder
from evaltools.report.words.locate import of_culprit
from evaltools.result.json_file import encode_json
from evaltools.result.locate import FLOAT_LAYER, Bundle, Culprit, LocateResult, Operator
from evaltools.runtime.registry import find_runtime
from evaltools.runtime.session import Array

_TAP: Final = "/tap"
_NODE_DATA_NAME: Final = "error alone / tolerance"
_MOST: Final = 1e9
"""Instead of infinity, which JSON does not have."""
_GREEN, _YELLOW, _RED = "#c8e6c9", "#ffe082", "#ef9a9a"
_COLOURS: Final = ((1.0, _GREEN), (10.0, _YELLOW), (_MOST, _RED))
_SQNR_COLOURS: Final = ((15.0, _RED), (25.0, _YELLOW), (_MOST, _GREEN))
_GAIN_COLOURS: Final = ((0.5, _GREEN), (3.0, _YELLOW), (_MOST, _RED))
SCRIPT, INPUTS, NODE_DATA, RESULT, README = "reproduce.py", "inputs.npz", "node_data.json", "result.json", "README.md"
_RUNS: Final = 3
_RUNS_FOR_INTERMITTENT: Final = 50
_TIMEOUT_S: Final = 600.0


def node_data(operators: Iterable[Operator], graph: str) -> bytes:
    """The file's content: the error of each operator that was measured alone, as a share of its tolerance."""
    return _data({each.index: _share(each) for each in operators}, graph, _NODE_DATA_NAME, _COLOURS)


def _data(values: Mapping[int, float | None], graph: str, name: str, colours: Sequence[tuple[float, str]]) -> bytes:
    """A figure of some operators as Model Explorer reads it, with the colours up to some values."""
    results = {str(index): {"value": value} for index, value in values.items() if value is not None}
    thresholds = [{"value": value, "bgColor": colour} for value, colour in colours]
    content = {graph or "main": {"results": results, "name": name, "thresholds": thresholds}}
    return json.dumps(content, indent=1, ensure_ascii=True).encode() + b"\n"


def _share(operator: Operator) -> float | None:
    if operator.local is None or operator.tolerance is None:
        return None
    worst = operator.local.worst
    share = worst / operator.tolerance if operator.tolerance else (math.inf if worst else 0.0)
    return min(share, _MOST) if not math.isnan(share) else _MOST


def write_bundle(
    folder: Path,
    result: LocateResult,
    case: Case | None,
    neighbour: Case | None,
    timeout_s: float = _TIMEOUT_S,
) -> Bundle:
    """Write a bundle into a new folder, and run its script, which has ``timeout_s`` seconds.

    ``neighbour`` is a part that is right, with a run of its own. Without a ``case`` there is nothing to reproduce: then
    the result and Model Explorer's data are all. Raises :class:`~evaltools.errors.UsageError` for a folder that is not
    empty, and :class:`~evaltools.errors.OutputError`.
    """
    require_new_folder(folder, "bundle")
    try:
        if case is None:
            return _finished(folder, result, "", None)
        return _Writer(folder, result, case, neighbour).write(timeout_s)
    except OSError as error:
        raise OutputError(f"--bundle={folder}: {error.filename or 'a file'} cannot be written: {error}") from error


def write_comparison(folder: Path, result: LocateResult, graph: str, copy: bytes | None) -> Bundle:
    """Write what was found of two models into a new folder, and the ``copy`` with the best layer in float.

    Raises as :func:`write_bundle` does.
    """
    require_new_folder(folder, "bundle")
    try:
        for name, content in _comparison_data(result, graph).items():
            (folder / f"node_data_{name}.json").write_bytes(content)
        if copy is not None:
            (folder / FLOAT_LAYER).write_bytes(copy)
        return _with_result(folder, result, None)
    except OSError as error:
        raise OutputError(f"--bundle={folder}: {error.filename or 'a file'} cannot be written: {error}") from error


def _comparison_data(result: LocateResult, graph: str) -> Mapping[str, bytes]:
    """Model Explorer's data for each figure of two models, by a name of the figure."""
    found = result.operators
    in_model = {each.index: each.accumulated.sqnr_db for each in found if each.accumulated is not None}
    alone = {each.index: each.local.sqnr_db for each in found if each.local is not None}
    weights = {each.index: each.weights_sqnr_db for each in found}
    layers = result.keep_in_float.layers if result.keep_in_float is not None else ()
    gains = {layer.index: layer.gain_db for layer in layers}
    return {
        "in_model": _data(in_model, graph, "SQNR dB in the model", _SQNR_COLOURS),
        "alone": _data(alone, graph, "SQNR dB of the layer alone", _SQNR_COLOURS),
        "weights": _data(weights, graph, "SQNR dB of the weights", _SQNR_COLOURS),
        "in_float": _data(gains, graph, "dB gained at the outputs with the layer in float", _GAIN_COLOURS),
    }


def _finished(folder: Path, result: LocateResult, graph: str, trial: Trial | None) -> Bundle:
    """Write what there is of every result of a search."""
    (folder / NODE_DATA).write_bytes(node_data(result.operators, graph))
    return _with_result(folder, result, trial)


def _with_result(folder: Path, result: LocateResult, trial: Trial | None) -> Bundle:
    """Write the result, in which the bundle itself is told of."""
    files = tuple(sorted([*(path.name for path in folder.iterdir()), RESULT]))
    bundle = Bundle(str(folder), files, trial.reproduced if trial else False, trial.printed if trial else "")
    (folder / RESULT).write_bytes(encode_json(replace(result, bundle=bundle)))
    return bundle


class _Writer:
    """Writes the bundle of one case."""

    def __init__(self, folder: Path, result: LocateResult, case: Case, neighbour: Case | None) -> None:
        self._folder = folder
        self._result = result
        self._case = case
        self._neighbour = neighbour
        self._culprit = next((each for each in result.culprits if each.first <= case.index <= each.last), None)
        self._crashes = "given" not in case.loaded

    def write(self, timeout_s: float) -> Bundle:
        """All files; the script is tried before the result says what it shows."""
        (self._folder / FAILING).write_bytes(self._case.model.read_bytes())
        if self._neighbour is not None:
            (self._folder / PASSING).write_bytes(self._neighbour.model.read_bytes())
        self._write_inputs()
        trial = self._write_script(timeout_s)
        if self._culprit is not None:
            (self._folder / README).write_text(self._readme(self._culprit, trial), encoding="utf-8")
        return _finished(self._folder, self._result, self._graph(FAILING).name, trial)

    def _write_inputs(self) -> None:
        """The inputs of both models by their places, and what the CPU and the delegate gave."""
        case = self._case
        arrays: dict[str, Any] = {f"input_{place}": values for place, values in enumerate(case.inputs)}
        arrays |= {name: case.loaded[name] for name in ("expected", "given") if name in case.loaded}
        if self._neighbour is not None:
            arrays |= {f"{PASSING_INPUT}{place}": values for place, values in enumerate(self._neighbour.inputs)}
        np.savez(self._folder / INPUTS, **arrays)

    def _write_script(self, timeout_s: float) -> Trial:
        """The script as it reproduces the fault, with runs on zeros in between where only those show it."""
        try:
            facts = self._script_facts()
            trial = self._tried(facts, timeout_s)
        except (NoScript, ConfigurationUnavailable) as error:
            return Trial(False, False, str(error))
        if not (trial.reproduced or trial.crashed or self._crashes or self._stateful):
            another = self._tried(replace(facts, zeros_between=True), timeout_s)
            if another.reproduced:
                return another
            self._write_text(facts)
        return trial

    def _tried(self, facts: ScriptFacts, timeout_s: float) -> Trial:
        self._write_text(facts)
        trial = try_script(self._folder / SCRIPT, timeout_s)
        return replace(trial, reproduced=trial.crashed) if self._crashes else trial

    def _readme(self, culprit: Culprit, trial: Trial) -> str:
        """What can be pasted into an issue: what is wrong, where it was seen, how to see it."""
        used, environment = self._result.configuration.runtime, self._result.environment
        seen = f"{used.package} {used.version}, " if used is not None else ""
        lines = ["```text", *of_culprit(culprit), "```", ""]
        lines += [f"Seen with {seen}Python {environment.python}, {environment.machine}.", ""]
        lines += [
            f"`python {SCRIPT}` runs `{FAILING}`, the smallest model that shows it, on `{INPUTS}`. It printed:",
            "",
        ]
        title = headline(self._case, culprit, self._crashes)
        return "\n".join([f"# {title}", "", *lines, "```text", trial.printed, "```", ""])

    def _write_text(self, facts: ScriptFacts) -> None:
        (self._folder / SCRIPT).write_text(script(facts), encoding="utf-8")

    def _script_facts(self) -> ScriptFacts:
        case = self._case
        cases = {FAILING: case} | ({} if self._neighbour is None else {PASSING: self._neighbour})
        return ScriptFacts(
            headline=headline(case, self._culprit, self._crashes),
            configuration=case.configuration,
            runtime=find_runtime(case.configuration).name,
            tolerances={name: each.tolerance for name, each in cases.items()},
            unit=case.unit,
            runs=self._runs(),
            outputs={name: output_of(self._graph(name), each.tensor, each.expected) for name, each in cases.items()},
            on_average=case.on_average,
        )

    def _runs(self) -> int:
        """A part with a state starts as it should only once; a fault that is not seen in each run may need many."""
        if self._stateful:
            return 1
        evidence = self._culprit.evidence if self._culprit else ()
        always = bool(evidence) and all(each.beyond == each.runs for each in evidence if each.agrees)
        return _RUNS if always else _RUNS_FOR_INTERMITTENT

    @cached_property
    def _stateful(self) -> bool:
        return read_model(self._folder / FAILING).stateful

    def _graph(self, name: str) -> Graph:
        return read_contents(read_model(self._folder / name)).main


def output_of(graph: Graph, name: str, like: Array) -> int:
    """The place of an output by its name, of several by type and shape; the last where none has that name.

    A copy that a part gives beside its outputs (a tap) counts as the tensor itself.
    """
    outputs = [graph.tensors[index] for index in graph.outputs]
    wanted = (like.dtype.name, like.shape)
    places = [place for place, each in enumerate(outputs) if each.name in (name, name + _TAP)]
    alike = [place for place in places if (outputs[place].dtype, outputs[place].shape) == wanted]
    return next(iter([*alike, *places]), len(outputs) - 1)


def headline(case: Case, culprit: Culprit | None, crashes: bool) -> str:
    """What is wrong, in a few words."""
    operator = culprit.name if culprit and culprit.last > culprit.first else case.operator
    return f"{operator} {'crashes' if crashes else 'gives wrong values'} with {_delegates(case.configuration)}"


def _delegates(configuration: Configuration) -> str:
    """The delegates of a configuration in words: kinds, and the libraries of external ones."""
    libraries = [path.name for path in configuration.libraries]
    names = [each.name for each in configuration.delegates.requested if each.enabled_by != EXTERNAL.enabled_by]
    if not libraries and not names:
        return "XNNPACK" if configuration.kernel_set == "default" else f"the {configuration.kernel_set} kernels"
    half = " in fp16" if configuration.delegates.value("xnnpack_force_fp16") else ""
    words = [f"XNNPACK{half}" if name == XNNPACK.name else f"the {name} delegate" for name in names]
    return " and ".join([*libraries, *words])
