"""A run of a native evaluation: what it printed and wrote, and its figures."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.metrics.native_numbers import NumericsDifference
from evaltools.native.logs.delegates import delegate_lines
from evaltools.native.logs.evaluation import NativeTask

_DETECTIONS: Final = ("INFO:   ", "INFO: Object [", "INFO: Image: ", "INFO: ====")


class NativeRun(Struct, frozen=True):
    """One run of a native tool on a device: all of a configuration's work, or the ``part``-th of ``parts``, from 0.

    ``log`` is its stdout and stderr. ``proto`` is the file of ``--output_file_path``, None where there is none.
    ``delegate_lines`` are those of log and logcat, as :func:`proof_lines` gives them. ``exit_code`` is None where it is
    not known. ``failure`` says why the run did not come to its end where the device knows: lost, out of time. ``crash``
    is what Android's crash dump says. ``place`` is the device where several do the same; the configuration's name in
    the result ends with it then. ``serial`` is the device where several share the parts.
    """

    configuration: Configuration
    role: Literal["reference", "test"]
    log: str
    proto: bytes | None
    delegate_lines: tuple[str, ...] = ()
    exit_code: int | None = 0
    failure: str = ""
    crash: str = ""
    part: int = 0
    parts: int = 1
    place: str = ""
    serial: str = ""

    @property
    def name(self) -> str:
        """The configuration's name in the result."""
        return f"{self.configuration.name}@{self.place}" if self.place else self.configuration.name


def proof_lines(log: str, logcat: str = "") -> tuple[str, ...]:
    r"""The lines of what a run printed that prove or refute delegation, and those of logcat, each once.

    Of the detections that coco prints in debug mode, which may be millions of lines, none is looked at.

    >>> proof_lines("INFO: GPU delegate created.\nINFO:   Score: 0.5\n", "I/tflite  ( 12): GPU delegate created.\n")
    ('GPU delegate created.',)
    """
    kept = [line for line in log.split("\n") if not line.startswith(_DETECTIONS)]
    return delegate_lines("\n".join([*kept, logcat]))


class NativeLatency(Struct, frozen=True):
    """``count`` times of whole microseconds as a native tool sums them up; ``std_us`` is cut to a whole number.

    It is None for preprocessing, of which the native tools compute none. With no time at all everything is 0.
    """

    count: int
    last_us: int
    min_us: int
    max_us: int
    sum_us: int
    avg_us: float
    std_us: int | None


class NativeDifference(Struct, frozen=True):
    """Over the runs, of the mean error of an output in each run; NaN where it is not a number."""

    avg_error: float
    std_dev: float
    min_error: float
    max_error: float


class ClassifierFigures(Struct, frozen=True):
    """Those of imagenet: ``accuracies[k - 1]`` is a share of ``runs`` in float32; none without a picture."""

    runs: int
    preprocessing: NativeLatency
    inference: NativeLatency
    accuracies: tuple[float, ...]


class DetectorFigures(Struct, frozen=True):
    """Those of coco: ``precisions`` by IoU threshold; ``overall`` is None without a ground truth."""

    runs: int
    preprocessing: NativeLatency
    inference: NativeLatency
    precisions: tuple[tuple[float, float], ...]
    overall: float | None


class DiffFigures(Struct, frozen=True):
    """Those of inference_diff; each run invokes the reference and the test :data:`INVOCATIONS` times.

    ``numerics`` are those of LiteRT's numerics checks, by output; they take no times.
    """

    runs: int
    reference: NativeLatency
    test: NativeLatency
    differences: tuple[NativeDifference, ...]
    numerics: tuple[NumericsDifference, ...] = ()


NativeFigures = ClassifierFigures | DetectorFigures | DiffFigures

INVOCATIONS: Final = 3
"""Of inference_diff per run."""


def task_of(figures: NativeFigures) -> NativeTask:
    """The task that gives such figures."""
    if isinstance(figures, ClassifierFigures):
        return "imagenet"
    return "coco" if isinstance(figures, DetectorFigures) else "inference_diff"
