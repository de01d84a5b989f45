"""The identity of a run: it is resumed only as the same run, and only shards of one run are merged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.engine.execution import Shard
from evaltools.engine.journal import JOURNAL_NAME, Journal, read_journal
from evaltools.engine.ledger import Stop
from evaltools.engine.quiet_latency import QuietTime, QuietTimes, pooled
from evaltools.engine.records import Records
from evaltools.engine.run import PassOptions, settle
from evaltools.engine.run_folder import (
    RunIdentity,
    decode,
    encode,
    has_request,
    identity_of,
    request_facts,
    require_same_files,
    require_same_run,
)
from evaltools.engine.steps import Observation, Record, Steps
from evaltools.errors import UsageError
from evaltools.file_content import Unreadable, sha256_of
from evaltools.metrics.latency import summarise_latency
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.evaluation import ConfigurationResult
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.sound_reference import UNSOUND
from evaltools.tasks.framework.sums import MeasuredPass, nothing_measured

DESCRIBED: Final = "configurations"
QUIET: Final = "latency in quiet"
CRASHES: Final = "crashes"
NOT_CLEAN: Final = "not clean"
"""The fact of a run that says by configuration what else than crashes makes its figures no clean pass."""
TASK: Final = "the task"
"""The input of an identity that names what the run does."""
_WHOLE: Final = "0/1"


def begin_run(
    journal: Journal,
    described: Sequence[ConfigurationResult],
    identity: RunIdentity,
    shard: Shard,
    request: Request | None,
) -> None:
    """Write the identity of a run to its journal; raises :class:`UsageError` where the journal is another run's."""
    configurations = {entry.name: _fingerprints(entry) for entry in described}
    identity = replace(_of_shard(identity, shard), configurations=configurations)
    require_same_run(journal, identity)
    journal.state({DESCRIBED: encode(described)})
    if request is None or journal.folder is None:
        return
    if not (journal.examples() and has_request(journal)):
        journal.state(request_facts(to_plain(request), identity))


def require_same_inputs(journal: Journal, identity: RunIdentity, shard: Shard) -> None:
    """Raise :class:`UsageError` where the journal is that of a run of something else, before anything is loaded."""
    if journal.folder is not None:
        require_same_files(journal, _of_shard(identity, shard))


def _of_shard(identity: RunIdentity, shard: Shard) -> RunIdentity:
    return replace(identity, shard=str(shard) if shard.count > 1 else "")


def changed_meanwhile(journal: Journal, before: RunIdentity, now: RunIdentity) -> list[str]:
    """Warnings about files that changed while the run read them, and about a journal that is gone."""
    found = [f"during the run, {change}; figures may be of both" for change in before.changes(now)]
    if journal.folder is not None and not (journal.folder / JOURNAL_NAME).exists():
        found.append(f"the journal in {journal.folder} was deleted during the run; it cannot be resumed or merged")
    return found


def described_in(journal: Journal) -> list[ConfigurationResult]:
    """The configurations of a run, with what they ran on, as its journal has them."""
    text = journal.fact(DESCRIBED)
    found: list[ConfigurationResult] = decode(text or "null", list[ConfigurationResult], journal.folder)
    return found


def crashes_in(journal: Journal) -> dict[str, Crashes]:
    """How often the processes of configurations crashed so far, by the name of the configuration."""
    found: dict[str, Crashes] = decode(journal.fact(CRASHES) or "{}", dict[str, Crashes], journal.folder)
    return found


def not_clean_in(journal: Journal) -> dict[str, str]:
    """What else than crashes makes figures no clean pass so far, by the name of the configuration."""
    found: dict[str, str] = decode(journal.fact(NOT_CLEAN) or "{}", dict[str, str], journal.folder)
    return found


def fact_in(folder: Path, name: str, wanted: Any) -> Any:
    """A fact of the run in a folder; raises :class:`UsageError` where the run ended before it was written."""
    text = read_journal(folder).fact(name)
    if text is None:
        raise UsageError(f"the run in {folder} ended before its first example; finish it with evaltools resume")
    return decode(text, wanted, folder)


def _fingerprints(entry: ConfigurationResult) -> dict[str, str]:
    """A text for each thing about a configuration, so that a message can say what has changed."""
    runtime, proof = entry.runtime, entry.delegation
    taken = ", ".join(f"{used.name} {used.nodes} of {used.partitions}" for used in entry.delegates)
    devices = ", ".join(f"{used.name} on {used.device}" for used in entry.delegates if used.device)
    return {
        "its status": f"{entry.status}{f' ({entry.reason})' if entry.reason else ''}",
        "its setting": " ".join(flag for flag in entry.flags if not _is_as_left_out(flag)),
        "its runtime": f"{runtime.package} {runtime.version}, {runtime.kernels}" if runtime else "",
        "what its delegates took": f"{taken} of {proof.total_nodes if proof else 0}",
        **({"its device": devices} if devices else {}),
    }


def _is_as_left_out(flag: str) -> bool:
    """Whether ``--name=value`` states a default that means the same unstated."""
    name, _, text = flag.removeprefix("--").partition("=")
    parameter = CONFIGURATION_PARAMETERS.get(name)
    return parameter is not None and parameter.is_as_left_out(parameter.parse(text))


def libraries_of(configurations: Iterable[Configuration]) -> dict[str, str]:
    """The checksums of the libraries of external delegates, by path."""
    return checksums_of(library for configuration in configurations for library in configuration.libraries)


def checksums_of(paths: Iterable[Path]) -> dict[str, str]:
    """The SHA-256 of each file, by path, ``missing`` for one that cannot be read."""
    return {str(path): _sha256_of(path) for path in sorted(set(paths))}


def require_same_code(identity: RunIdentity, folder: Path) -> None:
    """Raise :class:`UsageError` where a library or a file of the task's code is not that of the run.

    Their paths are meant from ``folder``.
    """
    for what, files in (("the library", identity.libraries), ("the task's file", identity.code)):
        for path, stated in files.items():
            now = _sha256_of(folder / path)
            if now != stated:
                raise UsageError(f"{what} {path} was {stated}, now it is {now}")


def _sha256_of(path: Path) -> str:
    try:
        return sha256_of(path)
    except Unreadable:
        return "missing"


def with_files(identity: RunIdentity, what: str, paths: Sequence[Path]) -> RunIdentity:
    """The identity with the names and sizes of files, and separately their times of change.

    Missing files count as empty.
    """
    sizes, times = hashlib.sha256(), hashlib.sha256()
    for path in paths:
        size, changed = _stamp(path)
        sizes.update(f"{path.name} {size}\n".encode("utf-8", "surrogateescape"))
        times.update(f"{changed}\n".encode())
    return replace(
        identity,
        inputs={**identity.inputs, what: f"{len(paths)} files, {sizes.hexdigest()[:16]}"},
        written={**identity.written, what: times.hexdigest()[:16]},
    )


def files_below(paths: Sequence[Path]) -> list[Path]:
    """The given files, and those in the given folders, in order."""
    return [
        file
        for path in paths
        for file in (sorted(entry for entry in path.rglob("*") if entry.is_file()) if path.is_dir() else [path])
    ]


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of change, 0 for a file that is missing."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


class RunAtPlace(Struct, frozen=True):
    """A whole run done at one place, this computer or a device: the run folders of its shards.

    Where several places did the same run, ``name`` stands behind the names of their configurations, ``NAME@PLACE``.
    ``flags`` are the ones that the shards had to repeat, where files have other names there; None: those of this run.
    """

    folders: tuple[Path, ...]
    name: str = ""
    flags: Mapping[str, str] | None = None

    @property
    def suffix(self) -> str:
        """What is appended to the names of configurations."""
        return f"@{self.name}" if self.name else ""


class MergedRun(Struct, frozen=True):
    """The merged records of shards."""

    described: list[ConfigurationResult]
    measured: MeasuredPass


def merged_run(
    places: Sequence[RunAtPlace],
    steps: Steps[Observation],
    identity: RunIdentity,
    reference: str | None,
    options: PassOptions,
) -> MergedRun:
    """Settle the records of all shards in the order of the examples.

    The reference is that of the first place; those of others are tests. A place without a quiet phase had one worker,
    so that its times are those of the pass. Raises :class:`UsageError` for folders of other runs, or where examples
    are missing.
    """
    parts: list[tuple[Journal, str]] = []
    quiet: list[QuietTimes] = []
    quiet_examples = missing = unsound = 0
    described: list[ConfigurationResult] = []
    crashes: dict[str, Crashes] = {}
    not_clean: dict[str, str] = {}
    for place in places:
        require_one_run(place, identity)
        own: list[ConfigurationResult] = []
        own_quiet: list[QuietTimes] = []
        shards = list(map(read_journal, place.folders))
        inputs_us: list[int] = []
        done = 0
        for shard in shards:
            own = own or described_in(shard)
            done += len(shard.examples())
            inputs_us += records_of(steps, [(shard, "")]).preprocessing_us(len(steps.names))
            parts.append((shard, place.suffix))
            unsound += int(shard.fact(UNSOUND) or 0) if place is places[0] else 0
            for name, found in crashes_in(shard).items():
                crashes[name + place.suffix] = crashes.get(name + place.suffix, Crashes()) + found
            for name, why in not_clean_in(shard).items():
                not_clean.setdefault(name + place.suffix, why)
            apart: QuietTimes | None = decode(shard.fact(QUIET) or "null", QuietTimes | None, shard.folder)
            if apart is not None:
                taken = {name + place.suffix: times for name, times in apart.taken.items()}
                own_quiet.append(QuietTimes(apart.examples, taken))
        if done or any(entry.role == "test" and entry.status == "measured" for entry in own):
            missing = max(missing, len(steps.names) - done)
        else:
            unused = "no test configuration can run there"
            own = [
                entry if entry.status == "not measured" else replace(entry, status="not measured", reason=unused)
                for entry in own
            ]
        described += [_at(entry, place, place is places[0], inputs_us) for entry in own]
        quiet += own_quiet
        quiet_examples = max(quiet_examples, sum(part.examples for part in own_quiet))
    names = [entry.name for entry in described if entry.status == "measured"]
    if not any(entry.role == "test" for entry in described if entry.name in names):
        return MergedRun(described, nothing_measured(dict.fromkeys(names)))
    folders = [folder for place in places for folder in place.folders]
    first = None if reference is None else reference + places[0].suffix
    records = records_of(steps, parts)
    outcome = settle(steps, names, records, first, options)
    if missing and outcome.stopped is None:
        ended = _why_ended(folders, steps, names, first, options)
        if ended is None:
            raise UsageError(
                f"{missing} of {len(steps.names)} examples are in none of the {len(folders)} folders; give all "
                "shards, and finish those that were interrupted with evaltools resume"
            )
        outcome = settle(steps, names, records, first, options, ended=ended)
    measured = MeasuredPass(outcome, workers=0, merged_shards=len(folders))
    if quiet:
        together = replace(pooled(quiet), examples=quiet_examples)
        for name in names if len(places) > 1 else ():
            together.taken.setdefault(name, times_of_pass(measured.outcome.records[name]))
        measured = replace(measured, quiet=together)
    return MergedRun(described, replace(measured, crashes=crashes, not_clean=not_clean, unsound=unsound))


def records_of(steps: Steps[Observation], parts: Sequence[tuple[Journal, str]]) -> Records[Observation]:
    """The records in some journals; the texts are appended to the names of their configurations."""
    return Records(parts, len(steps.names), steps.observation_type)


def _why_ended(
    folders: Sequence[Path],
    steps: Steps[Observation],
    names: Sequence[str],
    reference: str | None,
    options: PassOptions,
) -> Stop | None:
    """Why a shard ended before its last example; None where one is not given, or has not ended."""
    why, examples = None, 0
    for shard in map(read_journal, folders):
        index, _, count = (_identity_in(shard).shard or _WHOLE).partition("/")
        own = Shard(int(index), int(count)).numbers_of(len(steps.names))
        outcome = settle(steps, names, records_of(steps, [(shard, "")]), reference, options, own)
        if outcome.examples_done < len(own) and outcome.stopped is None:
            return None
        why = why or outcome.stopped
        examples += len(own)
    return why if examples == len(steps.names) else None


def require_one_run(place: RunAtPlace, identity: RunIdentity) -> None:
    """Raise :class:`UsageError` where the shards are not those of one run, or of another than ``identity`` says."""
    first = place.folders[0]
    identities = [_identity_in(shard) for shard in map(read_journal, place.folders)]
    stated = identities[0].portable()
    for folder, found in zip(place.folders, identities, strict=True):
        task, own_task = (each.inputs.get(TASK, "none") for each in (stated, found))
        if task != own_task:
            raise UsageError(f"{folder} holds a run of {own_task}, {first} one of {task}; give the shards of one run")
        changed = stated.changes(found.portable())
        if changed:
            raise UsageError(f"{folder} is not a shard of the run in {first}: {'; '.join(changed)}")
    _require_distinct(place.folders, identities)
    own, wanted = replace(stated, configurations={}), identity.portable()
    if place.flags is not None:
        own, wanted = replace(own, libraries={}), replace(wanted, libraries={}, options=dict(place.flags))
    changed = own.changes(wanted)
    if changed:
        raise UsageError(f"the run in {first} was of something else: {'; '.join(changed)}; restore that")


def _at(
    described: ConfigurationResult, place: RunAtPlace, is_first: bool, inputs_us: Sequence[int]
) -> ConfigurationResult:
    """A configuration under its name at a place; only the first place's reference stays a reference.

    ``inputs_us`` are the times of making the inputs there.
    """
    if not place.name:
        return described
    return replace(
        described,
        name=described.name + place.suffix,
        role=described.role if is_first else "test",
        place=place.name,
        preprocessing_latency=summarise_latency(inputs_us),
    )


def times_of_pass(records: Iterable[Record[Any]]) -> list[QuietTime]:
    """The times of a pass with one worker, which is as quiet as a quiet phase."""
    return [
        QuietTime(record.example, record.invokes_us, record.invokes_us[-1] + record.read_us)
        for record in records
        if record.read_us is not None
    ]


def run_identity(folder: Path) -> RunIdentity:
    """The identity of the run in a folder, as shards of it on other machines have it, too.

    Raises :class:`UsageError` where it never began.
    """
    return _identity_in(read_journal(folder)).portable()


def _identity_in(shard: Journal) -> RunIdentity:
    """The identity of a shard; raises :class:`UsageError` where it never began."""
    identity = identity_of(shard)
    if identity is None:
        raise UsageError(f"the run in {shard.folder} ended before its first example; give its command again")
    return identity


def _require_distinct(folders: Sequence[Path], identities: Sequence[RunIdentity]) -> None:
    """Raise :class:`UsageError` where two folders hold the same examples."""
    numbers = [identity.shard or _WHOLE for identity in identities]
    first_with: dict[str, int] = {}
    for position, number in enumerate(numbers):
        is_of_another_count = number.partition("/")[2] != numbers[0].partition("/")[2]
        other = 0 if is_of_another_count else first_with.setdefault(number, position)
        if other != position:
            raise UsageError(
                f"{folders[other]} holds shard {numbers[other]}, {folders[position]} holds shard {number}; give each "
                "shard of one run once"
            )
