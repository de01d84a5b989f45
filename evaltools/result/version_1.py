"""Results of version 1 as those of version 2.

Version 1 had a field for each task beside the envelope, figures only in those, and verdicts as sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from evaltools.errors import DataError

_PARTS: Final = ("data", "comparisons", "examples", "inference_diff", "coco")
_OF_DIFF: Final = ("first_run_us", "run_and_read_latency", "invokes_us")
_KIND_OF_WORDS: Final = {
    "equivalent": "equivalent",
    "WORSE": "worse",
    "better": "better",
    "not": "not decided",
}
"""The first word of a sentence on accuracy."""
_KIND_OF_GRADE: Final = {
    "equivalent": "equivalent",
    "diverged": "diverged",
    "not measured": "not measured",
    "not judged": "not judged",
    **{f"within expected precision of {precision}": precision for precision in ("fp16", "bf16", "int8")},
}


def from_version_1(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The same as version 2 holds it, still without figures; raises :class:`DataError` for what is no such result.

    What stood in verdicts as words alone, margins and numbers of examples, is missing; reasons stay sentences.
    """
    try:
        return _converted(document)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise DataError(f"{path} is no evaltools result of version 1: {error!r} does not fit") from error


def _converted(document: dict[str, Any]) -> dict[str, Any]:
    envelope = {name: value for name, value in document.items() if name not in _PARTS}
    configurations = [dict(entry) for entry in document["configurations"]]
    if document["task"] == "coco":
        part, verdicts = _coco(document["coco"])
    else:
        make_part = {"imagenet": _imagenet, "inference_diff": _inference_diff}[document["task"]]
        part, verdicts = make_part(document, configurations)
    for entry in configurations:
        for name in ("classification", "topk_intervals", *_OF_DIFF):
            entry.pop(name, None)
        entry["verdicts"] = [verdict for other, verdict in verdicts if other == entry["name"]]
    return {**envelope, "schema_version": "2", "configurations": configurations, "part": part}


_Verdicts = list[tuple[str, dict[str, Any]]]


def _imagenet(document: dict[str, Any], configurations: list[dict[str, Any]]) -> tuple[dict[str, Any], _Verdicts]:
    classified = {
        entry["name"]: {"metrics": entry["classification"], "topk_intervals": entry.get("topk_intervals", [])}
        for entry in configurations
        if entry["classification"] is not None
    }
    comparisons = document["comparisons"]
    verdicts = []
    for entry in comparisons:
        top1 = entry["topk"][0] if entry.get("topk") else None
        verdicts += _on_figure("top1", entry, top1)
    part = {
        "data": document["data"],
        "classified": classified,
        "comparisons": [_without(entry, "verdict") for entry in comparisons],
        "examples": document["examples"],
    }
    return part, verdicts


def _coco(coco: dict[str, Any]) -> tuple[dict[str, Any], _Verdicts]:
    verdicts = []
    for entry in coco["comparisons"]:
        verdicts += _on_figure("ap", entry, next((each for each in entry["changes"] if each["stat"] == "ap"), None))
    return {**coco, "comparisons": [_without(entry, "verdict") for entry in coco["comparisons"]]}, verdicts


def _on_figure(metric: str, comparison: dict[str, Any], change: dict[str, Any] | None) -> _Verdicts:
    if not comparison.get("verdict") or change is None:
        return []
    verdict = {
        "kind": _KIND_OF_WORDS[comparison["verdict"].split()[0].rstrip(":")],
        "metric": metric,
        "against": comparison["baseline"],
        "change": change["change"],
        "low": change["interval"]["low"],
        "high": change["interval"]["high"],
        "p_value": change["p_value_holm"] if metric == "top1" else None,
    }
    return [(comparison["other"], verdict)]


def _inference_diff(document: dict[str, Any], configurations: list[dict[str, Any]]) -> tuple[dict[str, Any], _Verdicts]:
    diff = document["inference_diff"]
    times = {
        entry["name"]: {name: entry.get(name) for name in _OF_DIFF}
        for entry in configurations
        if entry.get("run_and_read_latency") is not None
    }
    references = {entry.get("place", ""): entry["name"] for entry in configurations if entry["role"] == "reference"}
    places = {entry["name"]: entry.get("place", "") for entry in configurations}
    verdicts = []
    for entry in diff["comparisons"]:
        first = next(iter(references.values()), "")
        verdict = {
            "kind": _KIND_OF_GRADE[entry["verdict"]],
            "metric": "outputs",
            "against": references.get(places[entry["configuration"]], first),
            "reasons": _reasons(entry["reason"]),
        }
        verdicts.append((entry["configuration"], verdict))
    comparisons = [_comparison(entry) for entry in diff["comparisons"]]
    floor, precisions = ([_variant(entry) for entry in diff[name]] for name in ("noise_floor", "precisions"))
    parts = {"times": times, "comparisons": comparisons, "noise_floor": floor, "precisions": precisions}
    return {**diff, **parts}, verdicts


def _comparison(entry: dict[str, Any]) -> dict[str, Any]:
    boxes = entry["boxes_verdict"]
    return {
        **_without(entry, "verdict", "reason"),
        "outputs": [
            {**output, "difference": _difference(output["difference"]), "verdict": _output_verdict(output["verdict"])}
            for output in entry["outputs"]
        ],
        "boxes_verdict": None if boxes is None else _output_verdict(boxes),
    }


def _variant(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "outputs": [_difference(output) for output in entry["outputs"]]}


def _difference(entry: dict[str, Any]) -> dict[str, Any]:
    return {**_without(entry, "torn"), "never_written": entry["torn"]}


def _output_verdict(verdict: dict[str, Any]) -> dict[str, Any]:
    return {**_without(verdict, "reason"), "reasons": _reasons(verdict["reason"])}


def _reasons(sentence: str) -> list[dict[str, Any]]:
    return [{"kind": "text", "names": {"text": sentence}}] if sentence else []


def _without(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}
