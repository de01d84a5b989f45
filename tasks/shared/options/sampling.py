"""Flags about examples that are drawn, and about ending a run as soon as a limit is decided."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter
from evaltools.request import Request

if TYPE_CHECKING:
    from evaltools.gates.criteria import Criterion

_IN_ORDER: Final = NotNative("the native tool runs all examples in order", ("",))
SAMPLE: Final = "sample"
SAMPLING: Final = (
    Parameter(
        SAMPLE,
        "informed: the reference runs all examples, the others those first on which it is least sure, with known "
        "chances (docs/sampling.md).",
        choices=("", "informed"),
        in_parts="",
        not_native=_IN_ORDER,
    ),
    Parameter(
        "stop",
        "decided: end as soon as --limit is known to be kept or broken for every configuration.",
        choices=("", "decided"),
        only_with=(f"{SAMPLE}=informed",),
        in_parts="",
        not_native=_IN_ORDER,
    ),
    Parameter(
        "limit",
        "The limit of --stop=decided, on a figure of all examples, such as 'top1 drop <= 0.5 points'; a drop by "
        "--margin unless stated.",
        only_with=(f"{SAMPLE}=informed",),
        in_parts="",
        not_native=_IN_ORDER,
    ),
    Parameter(
        "sample_seed",
        "Seed of the drawn order.",
        default=1,
        only_with=(f"{SAMPLE}=informed",),
        in_parts=1,
        not_native=NotNative("the native tool runs all examples in order", (1,)),
    ),
    Parameter(
        "reference_run",
        "Run folder of an earlier run with the same model, data, software and reference, whose answers are taken.",
        role="machine_path",
        about="execution",
        only_with=(f"{SAMPLE}=informed", "shard_count=1"),
        in_parts="",
        not_native=_IN_ORDER,
    ),
)
NO_MATTER_TO_THE_REFERENCE: Final = frozenset(
    {*(parameter.name for parameter in SAMPLING), "margin", "max_failed_examples", "label_check"}
)
"""Flags with which a reference gives the same answers."""


class SamplingAsked(Struct, frozen=True):
    """What the flags ask for: a ``limit`` on a figure of all examples; the run ``stops`` when it is decided.

    ``reference_run`` is the folder of the run that has the reference's answers, None: the reference is run.
    """

    limit: Criterion
    stops: bool = False
    seed: int = 1
    reference_run: Path | None = None


def read_sampling(request: Request, default_limit: str = "", such_as: str = "NAME >= 0.9") -> SamplingAsked | None:
    """The sampling that a request asks for, None for a run of all examples in order.

    Without a ``default_limit`` one must be stated, ``such_as`` this one. :func:`require_decidable` says whether a task
    has what it is about.
    Raises :class:`UsageError` for what makes no sense.
    """
    options = request.options
    if not options.text(SAMPLE):
        return None
    if request.reference is None:
        raise UsageError("--sample=informed draws by the reference's answers; leave --reference=none out")
    _require_two_folders(options.path("run_dir"), options.path("reference_run"))
    seed = options.number("sample_seed")
    if seed < 0:
        raise UsageError(f"--sample_seed={seed}: use a whole number of 0 or more")
    return SamplingAsked(
        limit=_limit(options.text("limit") or default_limit, such_as),
        stops=options.text("stop") == "decided",
        seed=seed,
        reference_run=options.path("reference_run"),
    )


def _require_two_folders(run_dir: Path | None, reference_run: Path | None) -> None:
    """Raise :class:`UsageError` where a run would take the reference's answers from its own folder."""
    if run_dir is not None and reference_run is not None and run_dir.resolve() == reference_run.resolve():
        raise UsageError(
            f"--reference_run={reference_run} --run_dir={run_dir}: both flags name the same folder; give --run_dir a "
            "folder of its own"
        )


def _limit(text: str, such_as: str) -> Criterion:
    """The limit; raises :class:`UsageError` for one that takes all examples."""
    from evaltools.gates.criteria import parse_criterion

    if not text:
        raise UsageError(f"--sample=informed needs a limit to decide, such as --limit='{such_as}' (docs/sampling.md)")
    criterion = parse_criterion(text, of_own_task=True)
    if criterion.confidence is not None:
        raise UsageError(
            f"--limit={text!r}: 'at ... %' is about examples like these, all of which it takes; leave it out, for a "
            "limit on the figure of these examples, which is decided with 95 % confidence"
        )
    return criterion


def require_decidable(limit: Criterion, figures: Mapping[str, bool]) -> None:
    """Raise :class:`UsageError` for a limit that a part of the examples cannot decide.

    ``figures`` are those that can be limited, with whether a lower one is better.
    """
    lower = figures.get(limit.figure)
    kind, at_most = ("rise", True) if lower else ("drop", False)
    if lower is not None and (limit.kind == kind or (limit.kind == "value" and limit.at_most == at_most)):
        return
    names = sorted(figures)
    if not names:
        raise UsageError(f"--limit={limit.text!r}: a part of the examples decides no limit of this task")
    such = limit.figure if lower is not None else names[0]
    limits = f"'{such} rise <= 0.01' and '{such} <= 0.01'" if figures[such] else f"'{such} >= 0.99'"
    raise UsageError(
        f"--limit={limit.text!r}: a part of the examples decides limits such as {limits}, on one of {', '.join(names)}"
    )
