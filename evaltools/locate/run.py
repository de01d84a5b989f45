"""A search from its request to its result: captures the reference, searches, names causes, writes the bundle."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.adb.watch import watch
from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.opening import NotMeasured, Opened, describe_model, describe_row
from evaltools.engine.run_folder import (
    IDENTITY,
    REQUEST,
    RunIdentity,
    request_facts,
    run_folder,
    run_journal,
)
from evaltools.errors import (
    ConfigurationUnavailable,
    DelegateTookNothing,
    InferenceError,
    MachineAway,
    MachineLost,
    UsageError,
)
from evaltools.locate.bundle import write_bundle
from evaltools.locate.by_name import compare
from evaltools.locate.conclude import conclude, found, with_part
from evaltools.locate.explain import explain
from evaltools.locate.layers import copy_in_float, write_float_layer
from evaltools.locate.operator_rows import assumed, operators, outputs
from evaltools.locate.request import LocateRequest
from evaltools.locate.rows import index_of
from evaltools.locate.sides import Side
from evaltools.locate.words import best_in_float
from evaltools.model.contents import read_contents
from evaltools.operators.answer import Answer, answer, not_decided
from evaltools.operators.bench import Bench
from evaltools.operators.child import UNSEEN
from evaltools.operators.part import Part
from evaltools.operators.search import search
from evaltools.operators.state import Subject, subject_of
from evaltools.report.files.output_file import require_new_folder
from evaltools.report.words.next_steps import fixed_reshape
from evaltools.request.plain import to_plain
from evaltools.result.environment import describe_environment
from evaltools.result.result import Result, Row
from evaltools.runs.identity import libraries_of
from evaltools.runtime.delegation import require_delegates_ran
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.registry import installed_version, require_memory, runtime_name
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.value_ranges import are_sane

_INSPECT: Final = "(evaltools inspect says what is in it, and what runs it)"
_OTHER_SIDE: Final = "the other side"
"""What only the identity of a search has."""
OnPart = Callable[[int, int], object]
"""Called after each part: how many were measured of how many that are known; what confirms a suspect comes on top."""


def locate(request: LocateRequest, on_part: OnPart = lambda _done, _total: None) -> Result:
    """Search; where the delegate can never run here, the result says so, and has no figures.

    Where it does not run this model, each operator is tried by itself: perhaps one of them is the reason. With
    ``bundle`` among the options, a reproduction is written and tried. Raises :class:`UsageError` for folders that
    cannot be used.
    """
    if request.options.texts("at"):
        from evaltools.locate.at_place import locate_at

        return locate_at(request.asked, on_part, request.expected_parts)
    bundle = request.options.path("bundle")
    if bundle is not None:
        require_new_folder(bundle, "bundle")
    require_memory(request.model)
    started_at, start = datetime.now(timezone.utc), time.monotonic()
    with _place(request) as (folder, journal):
        facts, devices = _new_facts(journal, request), watch([request.reference, request.tested])
        assembly = _Assembly(request, _described(request), started_at, start)
        if assembly.described.cannot_exist:
            return conclude(assembly.result(not_decided(assembly.described.reason), 0), request.inputs.described)
        journal.state(facts)
        bench = _bench(request, folder, journal, on_part)
        try:
            if request.side is not None:
                result = _compared(request, request.side, bench, assembly, journal, bundle)
            else:
                result = _searched(request, bench, assembly, bundle)
            return replace(conclude(result, request.inputs.described), device_run=devices.ended())
        finally:
            bench.close()


class _Assembly(Struct, frozen=True):
    """What is known whatever the search finds."""

    request: LocateRequest
    described: Row
    started_at: datetime
    start: float

    def result(
        self,
        decided: Answer,
        compiles: int,
        looked_at: Sequence[Row] = (),
        parts: Sequence[Row] = (),
        stopped: str = "",
        warnings: Sequence[str] = (),
        **texts: str,
    ) -> Result:
        """All that was found; ``parts`` and ``texts`` are about the configuration."""
        request, elapsed = self.request, time.monotonic() - self.start
        command, started_at = list(request.asked.command), self.started_at.isoformat(timespec="seconds")
        counts = {"inputs": request.num_inputs, "compiles": compiles}
        return found(
            replace(self.described, counts=counts, texts=texts, rows=list(parts)),
            describe_model(request.model),
            describe_environment(command, started_at, elapsed),
            decided,
            looked_at,
            request.inputs.described,
            stopped,
            warnings,
        )


def _described(request: LocateRequest) -> Row:
    """The configuration with the proof that its delegates take something of the whole model."""
    timeout = request.options.real("example_timeout")
    entry: Opened | NotMeasured
    try:
        session = open_isolated(request.model, request.tested, timeout, timeout_flag="--example_timeout")
        entry = Opened(request.model, request.tested, session, request.tested)
        require_delegates_ran(session.delegation)
    except MachineAway as error:
        raise MachineLost(str(error)) from error
    except ConfigurationUnavailable as error:
        entry = NotMeasured(request.tested, str(error), error.cannot_exist)
    except DelegateTookNothing as error:
        session.close()
        entry = NotMeasured(request.tested, str(error))
    described = describe_row(entry)
    if not isinstance(entry, NotMeasured):
        entry.session.close()
    return described


def _bench(request: LocateRequest, folder: Path, journal: Journal, on_part: OnPart) -> Bench:
    options = request.options
    done, known = itertools.count(1), request.expected_parts

    def count(_part: Part) -> None:
        number = next(done)
        if number <= known:
            on_part(number, known)

    return Bench(
        request.model,
        request.reference,
        folder,
        journal,
        timeout_s=options.real("example_timeout"),
        max_compiles=options.number("max_compiles"),
        max_secs=options.real("max_secs"),
        on_part=count,
    )


def _compared(
    request: LocateRequest, side: Side, bench: Bench, assembly: _Assembly, journal: Journal, bundle: Path | None
) -> Result:
    """The tensors of two models compared by name."""

    def other_bench(folder: Path) -> Bench:
        assert side.model is not None
        timeout = request.options.real("example_timeout")
        return Bench(side.model.pair.reference, request.reference, folder, journal, timeout_s=timeout)

    compared = compare(request, side, bench, other_bench)
    result = assembly.result(
        compared.answer,
        bench.compiles,
        compared.operators,
        [*([] if compared.in_float is None else [compared.in_float]), *compared.causes],
        compared.stopped,
        (*request.warnings, *compared.warnings),
    )
    if bundle is None or side.model is None:
        return result
    best, graph = best_in_float(compared.operators), read_contents(request.model).main
    copy = None if best is None else copy_in_float(request.model.read(), graph, side, index_of(best))
    return with_part(result, write_float_layer(bundle, copy).row)


def _searched(request: LocateRequest, bench: Bench, assembly: _Assembly, bundle: Path | None) -> Result:
    try:
        _capture(request, bench)
    except (ConfigurationUnavailable, InferenceError) as error:
        what_to_do = f"({fixed_reshape(str(error))})" if fixed_reshape(str(error)) else _INSPECT
        return assembly.result(not_decided(f"the reference cannot run the model: {error} {what_to_do}"), 0)
    subject = _subject(request, bench)
    state = subject.state
    search(subject)
    if assembly.described.status != "measured":
        state.does_not_run = assembly.described.reason or "the configuration could not be measured"
    explained = explain(subject)
    warnings = ("looking at its tensors changes what the model gives on the CPU",) if bench.changes_outputs else ()
    result = assembly.result(
        answer(state, request.parts),
        bench.compiles,
        operators(state, request.parts, request.places, explained),
        outputs(state, request.parts),
        state.stopped,
        warnings,
        precision=state.precision,
        assumed=assumed(state),
    )
    return result if bundle is None else with_part(result, write_bundle(bundle, result, explained.case).row)


def _subject(request: LocateRequest, bench: Bench) -> Subject:
    """What is searched; the precision of floats is the one that the user states, else what the flags say."""
    options = request.options
    return subject_of(
        bench,
        request.model,
        request.parts,
        request.tested,
        places=request.places,
        precision=options.text("delegate_precision"),
        runs=options.number("num_runs"),
        seconds=options.real("part_secs"),
    )


def _capture(request: LocateRequest, bench: Bench) -> None:
    """Run the reference on the inputs of diff, which are of a narrower range where the model overflows with the first.

    Raises what the reference raises.
    """
    plan, tensors = request.inputs, request.parts.graph_inputs
    bench.capture(request.drawn(), tensors)
    narrowed = {} if request.model.stateful or are_sane(_first_outputs(request, bench)) else plan.narrowed()
    if not narrowed:
        return
    ranges = plan.ranges
    for tried in (narrowed, ranges):
        plan.source.draw_from(tried)
        bench.close()  # its process may hold the files that are written again
        bench.capture(request.drawn(), tensors)
        if are_sane(_first_outputs(request, bench)):
            return


def _first_outputs(request: LocateRequest, bench: Bench) -> list[Array]:
    folder = bench.folder / UNSEEN / "0"
    return [np.load(folder / f"{tensor}.npy", allow_pickle=False) for tensor in request.parts.graph_outputs]


@contextmanager
def _place(request: LocateRequest) -> Iterator[tuple[Path, Journal]]:
    """Where tensors and the journal lie: the run folder, or one that goes away."""
    run_dir = request.options.path("run_dir")
    with run_journal(run_dir) as journal, run_folder(run_dir and run_dir / "tensors") as folder:
        _make(folder)
        yield folder, journal


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}; give another --run_dir") from error


def _new_facts(journal: Journal, request: LocateRequest) -> dict[str, str]:
    """What the journal of a new run is to state; raises :class:`UsageError` where it holds another run."""
    if journal.folder is None:
        return {}
    known, own = IDENTITY.read(journal), _identity(request)
    if known is None and REQUEST.read(journal) is None:
        return request_facts(to_plain(request.asked), own)
    is_search = known is not None and _OTHER_SIDE in known.inputs
    changes = known.changes(own) if known is not None and is_search else ["it is not a search"]
    if changes:
        raise UsageError(f"--run_dir={journal.folder} holds another run: {'; '.join(changes)}; give a new folder")
    return {} if REQUEST.read(journal) else request_facts(to_plain(request.asked), own)


def _identity(request: LocateRequest) -> RunIdentity:
    """What two searches must have alike so that one can go on where the other ended."""
    drawn = hashlib.sha256()
    for inputs in request.drawn():
        for values in inputs:
            drawn.update(values.tobytes())
    configurations = {"of the reference": request.reference, "that is tested": request.tested}
    return RunIdentity(
        {
            "the model": request.model.sha256,
            "its signature": request.model.signature,
            _OTHER_SIDE: "" if request.side is None else request.side.sha256,
            "the inputs": drawn.hexdigest(),
        },
        libraries=libraries_of(configurations.values()),
        configurations={name: _facts_of(configuration) for name, configuration in configurations.items()},
    )


def _facts_of(configuration: Configuration) -> dict[str, str]:
    runtime = runtime_name(configuration)
    return {
        "its setting": " ".join(configuration.to_flags()),
        "its runtime": f"{runtime} {installed_version(runtime)}",
    }
