"""What a log says of delegates: what they took, and what shows that the CPU did it instead.

TensorFlow Lite logs each graph that a delegate changes, benchmark_model judges every delegate that it applied, and
where one cannot be created both warn and go on. A delegate is believed to run where a line says that it took nodes and
no line contradicts. That it was created proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evaltools.delegates.native_only import CPU_DEVICES
from evaltools.native.logs.log_lines import plain_lines

_NUMBER: Final = r"\d{1,9}"
_FAMILIES: Final = {
    "xnnpack": "XNNPACK",
    "ynnpack": "YNNPACK",
    "nnapi": "NNAPI",
    "hexagon": "Hexagon",
    "coreml": "COREML",
    "dispatch": "NPU",
    "gpu": "GPU",
    "metal": "GPU",
    "litert_cl": "GPU",
    "litert_opengl": "GPU",
    "flex": "Flex",
    "select tf ops": "Flex",
}
_ADDED_BY_THE_RUNTIME: Final = frozenset({"XNNPACK", "Flex"})
_OF_A_LIBRARY: Final = frozenset({"EXTERNAL", "STABLE_DELEGATE"})
_NO_DEVICE: Final = (
    "the log does not name the device; NNAPI may have used its own CPU: disable_nnapi_cpu=true or an accelerator name "
    "rules that out"
)

_CREATED: Final = (
    re.compile(r"Created TensorFlow Lite delegate for (?P<delegate>.+)\."),
    re.compile(r"Created TensorFlow Lite (?P<delegate>\S+) delegate for CPU\."),
    re.compile(r"(?P<delegate>\S+) delegate created\."),
)
_APPLIED: Final = re.compile(
    r"(?:Explicitly applied|Applied) (?P<delegate>.+) delegate, and the model graph will be "
    r"(?P<coverage>completely|partially) executed (?:by|w/) the delegate"
    rf"(?: w/ (?P<kernels>-?{_NUMBER}) delegate kernels)?\."
)
_NOT_EXECUTED: Final = re.compile(
    r"Though (?P<delegate>.+) delegate is (?:explicitly )?applied, the model graph will not be executed "
    r"(?:by|w/) the delegate\."
)
_REPLACING: Final = re.compile(
    rf"Replacing (?P<nodes>{_NUMBER})(?: out of (?P<total>{_NUMBER}))? node\(s\) with delegate "
    rf"\((?P<delegate>[^()]+)\)(?: node)?(?:, yielding (?P<partitions>{_NUMBER}) partitions?)?"
    rf"(?: for (?:the whole graph|subgraph (?P<subgraph>{_NUMBER})(?: \([^()]*\))?))?\.?"
)
_DELEGATED: Final = re.compile(
    rf"(?:\[[^\]]*\] )?(?P<delegate>\S+?)(?: delegate)?: (?P<nodes>{_NUMBER}) nodes delegated out of "
    rf"(?P<total>{_NUMBER}) nodes(?:,? with (?P<kernels>{_NUMBER}) partitions?)?\.?"
)
_GPU_KERNELS: Final = re.compile(rf"Created (?P<kernels>{_NUMBER}) GPU delegate kernels\.")
_RESTORED: Final = re.compile(r"Restored original execution plan after delegate application failure\.")
_COMPILED_ON: Final = re.compile(
    rf".*(?:compilation finished successfully on|only one best device:(?: {_NUMBER} =)?) (?P<device>\S+)"
)
_ACCELERATOR: Final = re.compile(r"NNAPI accelerator name(?: \([^()]*\))?: \[(?P<device>[^\]]+)\]")
_GPU_API: Final = re.compile(r"Initialized (?P<api>\S+)-based API\.")
_OPERATORS_BEGIN: Final = re.compile(r"(?:Following|Next) operations are not supported by GPU delegate:")
_OPERATOR: Final = re.compile(r"[A-Z][A-Z0-9_]*(?: [^:]+)?:(?: .*)?")
_OPERATORS_END: Final = re.compile(rf"(?:First )?{_NUMBER} operations will run on the GPU, and the remaining .+")

_REFUTED_BY: Final = (
    re.compile(r"(?P<delegate>\w+) acceleration is unsupported on this platform\.?"),
    re.compile(r"Could not create (?P<delegate>\w+) delegate: .+", re.IGNORECASE),
    re.compile(r"(?P<delegate>\w+) delegate (?:is )?not supported\b.*", re.IGNORECASE),
    re.compile(r"Failed to apply (?P<delegate>\S+) delegate\."),
    re.compile(r"Created 0 (?P<delegate>GPU) delegate kernels\."),
    re.compile(rf"No operations will run on the (?P<delegate>GPU), and all {_NUMBER} operations will run on the CPU\."),
    re.compile(r"Couldn't load (?P<delegate>NNAPI) support library from path: .*"),
    re.compile(r"Could not find the specified (?P<delegate>NNAPI) accelerator: .*"),
    re.compile(r"(?P<delegate>NNAPI) accelerators available: \[nnapi-reference\]"),
    _NOT_EXECUTED,
)
_REFUTES_ALL: Final = (
    re.compile(r"(?:Internal error: )?(?:Failed to apply|Error applying) delegate\b.*"),
    re.compile(r"Unsupported TFLite delegate: .*"),
    re.compile(r"Disallowed CPU fallback detected\b.*"),
    re.compile(
        r".*\bfall(?:s|ing)? ?back (?:on|to) (?:the )?(?:CPU|host|XNNPACK|reference|builtin)\b.*", re.IGNORECASE
    ),
)
_REFUTES_LIBRARIES: Final = {
    "EXTERNAL": re.compile(r"Unable to load external delegate from ?: .*"),
    "STABLE_DELEGATE": re.compile(
        r"Invalid TFLiteSettings for the stable delegate\.|Failed to load stable ABI delegate from .*"
    ),
}
_CAUSES: Final = (
    re.compile(r"(?:Can not open|Failed to open) OpenCL library.*|OpenCL library not loaded\b.*|No GPU detected\."),
    re.compile(r"TfLiteGpuDelegate (?:Init|Prepare|Invoke): .*"),
    re.compile(r"NN API returned error ANEURALNETWORKS_\w+ .*"),
    re.compile(r"Failed to load libhexagon_interface\.so.*|Failed to fetch Hexagon NN version\b.*"),
    re.compile(r"hexagon_nn_\w+ failed\b.*|Delegate kernel was not initialized"),
    re.compile(rf"Node number {_NUMBER} \(.+\) failed to (?:prepare|invoke)\."),
    re.compile(r"The GPU delegate compile options are only supported\b.*"),
)
_OTHER_GPU_API: Final = re.compile(r"Falling back to OpenGL\.?")
_DETAILS: Final = (
    re.compile(r"Loaded OpenCL library with dlopen\."),
    re.compile(rf"Going to apply {_NUMBER} delegates one after another\."),
    re.compile(r"Applied \S+ delegate\."),
    re.compile(r"NNAPI accelerators available: \[.*\]"),
)
_DETECTIONS: Final = ("INFO:   ", "INFO: Object [", "INFO: Image: ", "INFO: ====")
_EVERYTHING: Final = (
    *_CREATED, _APPLIED, _REPLACING, _DELEGATED, _GPU_KERNELS, _GPU_API, _RESTORED, _COMPILED_ON, _ACCELERATOR,
    _OPERATORS_BEGIN, _OPERATORS_END, _OTHER_GPU_API, *_REFUTED_BY, *_REFUTES_ALL, *_REFUTES_LIBRARIES.values(),
    *_CAUSES, *_DETAILS,
)  # fmt: skip


class AppliedDelegate(NamedTuple):
    """What benchmark_model says that a delegate took. ``kernels`` counts its partitions where the log states it."""

    delegate: str
    coverage: Literal["full", "partial", "none"]
    kernels: int | None


class TakenNodes(Struct, frozen=True):
    """Nodes that the log says a delegate took.

    ``delegate`` is its name in the log. ``total`` counts the nodes of the graph at that moment, in which each partition
    of a delegate before it is one node. ``partitions`` counts all pieces that the graph falls into, those left to the
    CPU too; ``kernels`` those of the delegate. ``subgraph`` is the graph's number, 0 for the main one. All are None
    where the log does not say. ``announced``: the delegate said so itself, before the runtime replaced the nodes.
    """

    delegate: str
    nodes: int
    total: int | None = None
    partitions: int | None = None
    kernels: int | None = None
    subgraph: int | None = None
    announced: bool = False


class Refutation(NamedTuple):
    """A line that shows that a delegate did not run, all of them where ``delegate`` is empty.

    ``cause`` is the line before it that says why, where there is one.
    """

    delegate: str
    line: str
    cause: str = ""


class DelegateLog(Struct, frozen=True):
    """What the lines say together. ``created`` and refutations go by the names of our delegates where they are known.

    ``taken`` and ``applied`` are without what was undone later. ``devices`` are those that NNAPI was asked for or
    compiled for. ``gpu_api`` is what the GPU is driven through, such as OpenCL; empty where no line says it.
    """

    taken: tuple[TakenNodes, ...]
    created: tuple[str, ...]
    applied: tuple[AppliedDelegate, ...] = ()
    refuted: tuple[Refutation, ...] = ()
    devices: tuple[str, ...] = ()
    gpu_api: str = ""


def delegate_lines(text: str) -> tuple[str, ...]:
    r"""The lines of a log that prove or refute delegation, without prefixes, in order, each once.

    Of the detections that coco prints in debug mode, which may be millions of lines, none is looked at.

    >>> delegate_lines("INFO: Loaded model a\nGPU delegate created.\nINFO: GPU delegate created.")
    ('GPU delegate created.',)
    """
    found: dict[str, None] = {}
    is_in_list = False
    kept = "\n".join(line for line in text.split("\n") if not line.startswith(_DETECTIONS))
    for line in plain_lines(kept):
        if _is_any(_EVERYTHING, line.text):
            is_in_list = _OPERATORS_BEGIN.fullmatch(line.text) is not None
            found[line.text] = None
        elif is_in_list and _OPERATOR.fullmatch(line.text):
            found[line.text] = None
    return tuple(found)


def read_delegate_log(lines: Sequence[str]) -> DelegateLog:
    """What plain lines say, as :func:`delegate_lines` gives them.

    >>> found = read_delegate_log(["Replacing 63 out of 64 node(s) with delegate (TfLiteGpuDelegateV2) node, "
    ...                            "yielding 2 partitions for subgraph 0."])
    >>> found.taken[0].nodes, found.taken[0].total, found.refuted
    (63, 64, ())
    """
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return reader.result()


def undelegated(log: DelegateLog, asked: Sequence[str], on_nnapi_cpu: bool = False) -> dict[str, str]:
    """Why the log does not prove that delegates ran, by their names of ours; those that did are left out.

    ``on_nnapi_cpu``: NNAPI may use its own CPU, so that only a device that the log names proves it.

    >>> undelegated(read_delegate_log(["GPU acceleration is unsupported on this platform."]), ["GPU"])
    {'GPU': 'the log says "GPU acceleration is unsupported on this platform."'}
    """
    reasons = {name: _why_not(log, name, asked) for name in asked}
    if on_nnapi_cpu and not log.devices and "NNAPI" in reasons:
        reasons["NNAPI"] = reasons["NNAPI"] or _NO_DEVICE
    return {name: reason for name, reason in reasons.items() if reason is not None}


def taken_by(log: DelegateLog, name: str, asked: Sequence[str]) -> list[TakenNodes]:
    """What a delegate of ours took, of ``asked`` in all; 0 nodes are left out, and what the runtime says once more.

    Libraries name their delegates as they like: theirs is what no other delegate that was asked for, and none that the
    runtime adds by itself, is called.
    """
    own = _without_number(name)
    others = {_without_number(other) for other in asked} - {own} | _ADDED_BY_THE_RUNTIME
    found = []
    for entry in log.taken:
        family = family_of(entry.delegate)
        is_own = family not in others if own in _OF_A_LIBRARY else family == own
        if is_own and entry.nodes:
            found.append(entry)
    replaced = {entry.nodes for entry in found if not entry.announced}
    return [entry for entry in found if not entry.announced or entry.nodes not in replaced]


def applied_as(log: DelegateLog, name: str) -> AppliedDelegate | None:
    """benchmark_model's word on a delegate of ours."""
    own = _without_number(name)
    return next((entry for entry in log.applied if family_of(entry.delegate) == own), None)


def family_of(name: str) -> str:
    """Our name of a delegate that a log names, the same name where it is none of ours.

    >>> family_of("TfLiteGpuDelegateV2"), family_of("COREML"), family_of("EthosuDelegate")
    ('GPU', 'COREML', 'EthosuDelegate')
    """
    return next((family for part, family in _FAMILIES.items() if part in name.lower()), name)


def _applied_delegate(line: str) -> AppliedDelegate | None:
    """benchmark_model's word on a delegate that it applied, in any release; None where the line is another."""
    found = _APPLIED.fullmatch(line)
    if found:
        coverage: Literal["full", "partial"] = "full" if found["coverage"] == "completely" else "partial"
        return AppliedDelegate(found["delegate"], coverage, _integer(found["kernels"]))
    found = _NOT_EXECUTED.fullmatch(line)
    return AppliedDelegate(found["delegate"], "none", None) if found else None


class _Reader:
    """Collects what lines say, one after the other."""

    def __init__(self) -> None:
        self._taken: list[TakenNodes] = []
        self._created: dict[str, None] = {}
        self._applied: list[AppliedDelegate] = []
        self._refuted: list[Refutation] = []
        self._devices: dict[str, str] = {}
        self._gpu_api = ""
        self._cause = ""

    def read(self, line: str) -> None:
        """Take in one line."""
        if _is_any(_CAUSES, line):
            self._cause = self._cause or line
            return
        self._read_proof(line)
        refuted = self._refuted_by(line)
        self._refuted += [Refutation(delegate, line, self._cause) for delegate in refuted]
        if refuted or _OTHER_GPU_API.fullmatch(line):
            self._cause = ""

    def result(self) -> DelegateLog:
        """What all lines say together."""
        is_on_cpu = bool(self._devices) and CPU_DEVICES.issuperset(self._devices)
        on_cpu = [Refutation("NNAPI", line) for line in self._devices.values()] if is_on_cpu else []
        return DelegateLog(
            taken=tuple(self._taken),
            created=tuple(self._created),
            applied=tuple(self._applied),
            refuted=(*self._refuted, *on_cpu),
            devices=tuple(self._devices),
            gpu_api=self._gpu_api,
        )

    def _read_proof(self, line: str) -> None:
        created = next((found for found in (pattern.fullmatch(line) for pattern in _CREATED) if found), None)
        if created:
            self._created[family_of(created["delegate"])] = None
        taken = _taken_nodes(line)
        if taken is not None:
            self._taken.append(taken)
        applied = _applied_delegate(line)
        if applied is not None:
            self._applied.append(applied)
        device = _COMPILED_ON.fullmatch(line) or _ACCELERATOR.fullmatch(line)
        if device:
            self._devices.setdefault(device["device"], line)
        api = _GPU_API.fullmatch(line)
        if api:
            self._gpu_api = api["api"]
        kernels = _GPU_KERNELS.fullmatch(line)
        if kernels and self._taken and family_of(self._taken[-1].delegate) == "GPU":
            self._taken[-1] = replace(self._taken[-1], kernels=int(kernels["kernels"]))

    def _refuted_by(self, line: str) -> list[str]:
        """The delegates of which a line says that they did not run."""
        named = next((found for found in (pattern.fullmatch(line) for pattern in _REFUTED_BY) if found), None)
        if named:
            return [family_of(named["delegate"])]
        if _is_any(_REFUTES_ALL, line):
            return [""]
        if _RESTORED.fullmatch(line):
            undone = dict.fromkeys([*(family_of(entry.delegate) for entry in self._taken), *self._created])
            self._taken.clear()
            self._applied.clear()
            return list(undone) or [""]
        return [name for name, pattern in _REFUTES_LIBRARIES.items() if pattern.fullmatch(line)]


def _why_not(log: DelegateLog, name: str, asked: Sequence[str]) -> str | None:
    own = _without_number(name)
    refuted = next((entry for entry in log.refuted if entry.delegate in ("", own)), None)
    if refuted is not None:
        return f'the log says "{refuted.line}"' + (f', after "{refuted.cause}"' if refuted.cause else "")
    applied = applied_as(log, name)
    if taken_by(log, name, asked) or (applied is not None and applied.coverage != "none"):
        return None
    created = ", only that it was created" if own in log.created else ""
    others = [f"{family_of(entry.delegate)} took {entry.nodes}" for entry in log.taken if entry.nodes]
    return f"no line of the log says that it took nodes{created}" + (f"; {', '.join(others)}" if others else "")


def _taken_nodes(line: str) -> TakenNodes | None:
    """What a line says that a delegate took; None for any other line."""
    found = _REPLACING.fullmatch(line)
    if found:
        nodes, total, partitions = int(found["nodes"]), _integer(found["total"]), _integer(found["partitions"])
        kernels = 1 if partitions == 1 and nodes else None
        return TakenNodes(found["delegate"], nodes, total, partitions, kernels, _integer(found["subgraph"]))
    found = _DELEGATED.fullmatch(line)
    if found is None:
        return None
    nodes, total, kernels = int(found["nodes"]), int(found["total"]), _integer(found["kernels"])
    return TakenNodes(found["delegate"], nodes, total, kernels=kernels, announced=True)


def _without_number(name: str) -> str:
    """The name without the number that distinguishes several external delegates."""
    return name.partition("#")[0]


def _is_any(patterns: Iterable[re.Pattern[str]], line: str) -> bool:
    return any(pattern.fullmatch(line) for pattern in patterns)


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)
