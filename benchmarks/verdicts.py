"""Which faults a verdict of the inference diff notices: faulty outputs of real models, judged by whole commands.

``python -m benchmarks verdicts --models=FOLDER [--inputs=noise] [--input_images=FOLDER] [--delegate=FAULTY.so]``

With ``--delegate`` the faults are those of ``examples/external_delegate/faulty_delegate.so``. Else a model's outputs
are saved (``--save_outputs``); then each fault is put into a copy of them, and the same configuration is compared with
that copy (``--load_reference``). A row per fault says for how many models the verdict was ``diverged``, what it was
where it was not, and for how many the fault changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.model import read_model
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.result.result import Result
from evaltools.result.verdict import Verdict
from evaltools.result_file import read_result

Array = npt.NDArray[Any]
Fault = Callable[[list[Array], int], None]
"""Changes one output of all runs; told the number that stands for its 0."""

PARAMETERS = (
    Parameter("models", "Folder with .tflite models.", default=""),
    Parameter("inputs", "Kind of inputs: noise, photos or both; as a model needs them if empty.", default=""),
    Parameter("input_images", "Folder of pictures for models that take some; the embedded ones if empty.", default=""),
    Parameter("runs", "Runs of each model.", default=20),
    Parameter("at_once", "Models at once.", default=1),
    Parameter("delegate", "The faulty delegate; saved outputs are edited if empty.", default=""),
)
Verdicts = dict[str, Verdict]
"""By the name of the fault."""
Run = Callable[[Sequence[str]], str]
"""Runs ``evaltools`` with these words; returns what it says on stderr."""
NO_CHANGE: Final = Verdict("not judged", "outputs")
"""Of a fault that changes nothing, or that the delegate cannot put into such outputs."""
_WIDEST_QUANTUM: Final = 2
"""Bytes of a number that stands for a real one; wider whole numbers are classes."""
_SEEN: Final = ("diverged", NO_CHANGE.kind)


def one_run_zero(runs: list[Array], zero: int) -> None:
    """The seventh of twenty runs gives nothing."""
    runs[len(runs) // 3] = np.full_like(runs[0], zero)


def flattest_zero(runs: list[Array], zero: int) -> None:
    """The run with the smallest numbers gives nothing."""
    sizes = [float(np.square(run.astype(float) - zero).sum()) for run in runs]
    runs[int(np.argmin(sizes))] = np.full_like(runs[0], zero)


def frozen(runs: list[Array], _zero: int) -> None:
    """The outputs of the first run for ever."""
    runs[:] = [runs[0]] * len(runs)


def stale(runs: list[Array], _zero: int) -> None:
    """Each run gives the outputs of the run before."""
    runs[1:] = runs[:-1]


def all_zero(runs: list[Array], zero: int) -> None:
    """Nothing is ever given."""
    runs[:] = [np.full_like(run, zero) for run in runs]


def sign_flipped(runs: list[Array], zero: int) -> None:
    """Numbers on the other side of 0."""
    runs[:] = [_as(run, 2.0 * zero - run.astype(float)) for run in runs]


def rolled(runs: list[Array], _zero: int) -> None:
    """Each element stands one further."""
    runs[:] = [np.roll(run, 1) for run in runs]


def corner_zero(runs: list[Array], zero: int) -> None:
    """The first 1/64 of the elements is never written."""
    for place, run in enumerate(runs):
        changed = run.ravel().copy()
        changed[: max(1, changed.size // 64)] = zero
        runs[place] = changed.reshape(run.shape)


def best_swapped(runs: list[Array], _zero: int) -> None:
    """The best and the second change places in every run; in maps of classes, the two that most pixels have."""
    for place, run in enumerate(runs):
        if run.dtype.kind in "iu" and run.dtype.itemsize > _WIDEST_QUANTUM:
            runs[place] = _most_frequent_swapped(run)
        elif run.ndim and run.shape[-1] > 1:
            changed = np.sort(run, axis=-1)
            order = np.argsort(run, axis=-1, kind="stable")
            order[..., [-1, -2]] = order[..., [-2, -1]]
            found = np.empty_like(run)
            np.put_along_axis(found, order, changed, axis=-1)
            runs[place] = found


def _most_frequent_swapped(run: Array) -> Array:
    values, counts = np.unique(run, return_counts=True)
    if len(values) == 1:
        return run
    first, second = values[np.argsort(counts)[-2:]]
    return np.where(run == first, second, np.where(run == second, first, run))


def saturated(runs: list[Array], zero: int) -> None:
    """Nothing beyond 100/127 of the largest value."""
    most = max(float(np.abs(run.astype(float) - zero).max()) for run in runs) * 100 / 127
    runs[:] = [_as(run, np.clip(run.astype(float), zero - most, zero + most)) for run in runs]


def channel_larger(runs: list[Array], zero: int) -> None:
    """The middle one of the last axis is half as large again."""
    for place, run in enumerate(runs):
        if run.ndim and run.shape[-1] > 1:
            values = run.astype(float)
            values[..., run.shape[-1] // 2] = (values[..., run.shape[-1] // 2] - zero) * 1.5 + zero
            runs[place] = _as(run, values)


def noise(runs: list[Array], zero: int) -> None:
    """Normal noise as large as the output itself."""
    random = np.random.default_rng(3)
    spread = float(np.sqrt(np.mean([np.mean((run.astype(float) - zero) ** 2) for run in runs])))
    runs[:] = [_as(run, run + spread * random.standard_normal(run.shape)) for run in runs]


def offset(runs: list[Array], _zero: int) -> None:
    """A fifth of the range is added."""
    span = max(float(run.max()) for run in runs) - min(float(run.min()) for run in runs)
    runs[:] = [_as(run, run.astype(float) + span / 5) for run in runs]


def scaled(runs: list[Array], zero: int) -> None:
    """All is twice as large."""
    runs[:] = [_as(run, (run.astype(float) - zero) * 2 + zero) for run in runs]


def one_stale(runs: list[Array], _zero: int) -> None:
    """One run gives the outputs of the run before."""
    runs[len(runs) // 2] = runs[len(runs) // 2 - 1]


def one_nan(runs: list[Array], _zero: int) -> None:
    """One number of one run is NaN; whole numbers have none."""
    if runs[0].dtype.kind == "f":
        changed = runs[-1].copy()
        changed.flat[0] = np.nan
        runs[-1] = changed


_DELEGATE_FAULTS: Final = {
    "scaled": "fault:scale",
    "offset": "fault:offset",
    "saturated": "fault:saturate",
    "stale": "fault:stale",
    "frozen": "fault:frozen",
    "one_nan": "fault:nan;channel:0;every:{last}",
    "one_zero": "fault:zero;every:{last}",
    "one_stale": "fault:stale;every:{last}",
    "channel_larger": "fault:scale;amount:1.5;channel:{middle}",
    "channel_zero": "fault:zero;channel:{middle}",
}
"""Options by fault; ``{last}`` is the run before the last alone, since the warm-up counts."""
FAULTS: Final[tuple[Fault, ...]] = (
    one_run_zero, flattest_zero, frozen, stale, one_stale, best_swapped, sign_flipped, rolled, corner_zero, saturated,
    all_zero, noise, offset, scaled, channel_larger, one_nan,
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("verdicts", "", "", {"flags": PARAMETERS}, arguments)
    models = sorted(Path(flags.text("models") or ".").glob("*.tflite"))
    if not models:
        print("--models=FOLDER: no .tflite file there")
        return 2
    options = [f"--num_runs={flags.number('runs')}"]
    options += [f"--{name}={flags.text(name)}" for name in ("inputs", "input_images") if flags.text(name)]
    library, runs = flags.text("delegate"), flags.number("runs")

    def measure(model: Path) -> Verdicts | None:
        return delegate_verdicts(model, options, library, runs) if library else verdicts_of(model, options)

    found = []
    with ThreadPoolExecutor(flags.number("at_once")) as pool:
        for model, entry in zip(models, pool.map(measure, models), strict=True):
            found.append(entry)
            missed = [(name, verdict) for name, verdict in (entry or {}).items() if verdict.kind not in _SEEN]
            print(f"{model.name}: {len(missed)} missed" if entry else f"{model.name}: cannot be run", flush=True)
            for name, verdict in missed:
                print(f"    {name}: {verdict.sentence}", flush=True)
    print_table(
        [entry for entry in found if entry], _DELEGATE_FAULTS if library else [each.__name__ for each in FAULTS]
    )
    return 0


def print_table(found: Sequence[Verdicts], faults: Iterable[str]) -> None:
    """A row per fault over all models that could be run."""
    print(f"{len(found)} models")
    print("fault             noticed  no change  not noticed")
    for fault in faults:
        kinds = Counter(entry[fault].kind for entry in found)
        told = ", ".join(f"{kind} {count}" for kind, count in kinds.items() if kind not in _SEEN)
        changed = len(found) - kinds[NO_CHANGE.kind]
        print(f"{fault:16} {kinds['diverged']:3} of {changed:3}  {kinds[NO_CHANGE.kind]:9}  {told}")


class _Saved(Struct, frozen=True):
    """Saved outputs of one configuration: a list of runs for each output, and the number that stands for its 0."""

    files: list[dict[str, Any]]
    outputs: list[list[Array]]
    zeros: list[int]


def in_a_process(words: Sequence[str]) -> str:
    """A process of its own, beside which others may run."""
    command = [sys.executable, "-m", "evaltools.cli.main", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True).stderr


def verdicts_of(
    model: Path, options: Sequence[str], faults: Sequence[Fault] = FAULTS, run: Run = in_a_process
) -> Verdicts | None:
    """The verdict by fault; None for a model that cannot be run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "saved"
        if _diff(model, [*options, f"--save_outputs={folder}"], Path(temporary), run) is None:
            return None
        manifest = json.loads((folder / "manifest.json").read_text())
        saved = _read(folder, manifest)
        found = {}
        for fault in faults:
            changed = [list(runs) for runs in saved.outputs]
            for runs, zero in zip(changed, saved.zeros, strict=True):
                if runs[0].size and runs[0].dtype.kind in "fiu":
                    fault(runs, zero)
            same = all(
                np.array_equal(now, before)
                for values, runs in zip(changed, saved.outputs, strict=True)
                for now, before in zip(values, runs, strict=True)
            )
            if same:
                found[fault.__name__] = NO_CHANGE
                continue
            _write(folder, manifest, saved, changed)
            verdict = _diff(model, [f"--load_reference={folder}"], Path(temporary), run)
            found[fault.__name__] = verdict or Verdict("not measured", "outputs")
        return found


def _diff(model: Path, options: Sequence[str], folder: Path, run: Run) -> Verdict | None:
    """The verdict on builtin kernels against builtin kernels, None where there is none."""
    path = folder / "result.json"
    path.unlink(missing_ok=True)
    result = _result(path, [f"--model_file={model}", "--config=test: use_xnnpack=false", *options], run)
    if result is None:
        return None
    verdict = next(entry.verdict for entry in result.rows if entry.role == "test")
    return None if verdict is None or verdict.kind == "not measured" else verdict


def _result(path: Path, words: Sequence[str], run: Run = in_a_process) -> Result | None:
    """The result of the command; where there is none, what it said goes to stderr."""
    said = run(["diff", f"--output_file_path={path}", *words])
    if path.exists():
        return read_result(path)
    print(said.strip(), file=sys.stderr)
    return None


def delegate_verdicts(
    model: Path, options: Sequence[str], library: str, runs: int, run: Run = in_a_process
) -> Verdicts | None:
    """The verdict by fault of the delegate, in one command; None for a model of which it can take nothing.

    A fault that gives the outputs of the configuration without a fault, bit for bit, changes nothing.
    """
    shape = next((output.shape for output in read_model(model).outputs), ())
    values = {"last": runs, "middle": shape[-1] // 2 if shape else 0}
    faults = {"none": "fault:none"} | _DELEGATE_FAULTS
    configurations = [
        f"--config={name}: external_delegate_path={library} external_delegate_options={text.format(**values)} "
        "use_xnnpack=false"
        for name, text in faults.items()
    ]
    with tempfile.TemporaryDirectory() as temporary:
        result = _result(Path(temporary) / "result.json", [f"--model_file={model}", *options, *configurations], run)
    if result is None:
        return None
    found = {entry.name: entry.verdict for entry in result.rows if entry.verdict is not None}
    if "none" not in found or found["none"].kind == "not measured":
        return None
    same = [
        entry.name
        for entry in result.rows
        if entry.role == "test" and all(part.value("differing") == 0 for part in entry.parts)
    ]
    cannot = [name for name, verdict in found.items() if verdict.kind == "not measured"]
    return found | dict.fromkeys([*same, *cannot], NO_CHANGE)


def _read(folder: Path, manifest: dict[str, Any]) -> _Saved:
    entry = next(entry for entry in manifest["configurations"] if entry["role"] == "reference")
    runs = []
    for file in entry["outputs"]:
        with np.load(folder / file["file"]) as arrays:
            runs.append([arrays[name] for name in arrays.files])
    zeros = [tensor.get("zero_point") or 0 for tensor in entry["tensors"]]
    return _Saved(entry["outputs"], [list(values) for values in zip(*runs, strict=True)], zeros)


def _write(folder: Path, manifest: dict[str, Any], saved: _Saved, outputs: list[list[Array]]) -> None:
    for run, file in enumerate(saved.files):
        np.savez(folder / file["file"], *[values[run] for values in outputs])
        file["sha256"] = hashlib.sha256((folder / file["file"]).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _as(like: Array, values: Array) -> Array:
    """Values of the type of an output, within its limits."""
    if like.dtype.kind in "iu":
        limits = np.iinfo(like.dtype.name)
        values = np.clip(np.rint(values), limits.min, limits.max)
    changed: Array = np.asarray(values).astype(like.dtype)
    return changed
