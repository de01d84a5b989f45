"""Which classes are taken for which, and each class by itself; imported where pandas is known to be installed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import pandas

from evaltools.api.frames import CONFIGURATION, example_rows
from evaltools.api.plot import Plot
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.result.result import Result, Row
from evaltools.result.section import Axis, Chart, Mark

_MOST_DRAWN: Final = 20
"""Classes of a picture that can be read."""
_TRUTH, _ANSWER = "truth", "answer"
_CATEGORY_AP: Final = "category_ap"

Answers = Sequence[Mapping[str, Any]]
"""The rows of the examples of one configuration."""


class ConfusionFrame(pandas.DataFrame):  # type: ignore[misc]
    """How many examples of each class, a row, were taken for which class, a column."""

    _metadata: ClassVar[list[str]] = ["configuration"]

    @property
    def _constructor(self) -> Any:
        return ConfusionFrame

    def plot(self) -> Plot:
        """A picture: the larger a point, the more examples; right ones are green. At most the 20 most confused classes.

        A notebook shows it, ``.save("confusion.svg")`` writes it.
        """
        counts = {(truth, answer): int(self.loc[truth, answer]) for truth in self.index for answer in self.columns}
        right_first = sorted(counts.items(), key=lambda pair: pair[0][0] != pair[0][1])  # names stand in that order
        wrong: Counter[str] = Counter()
        for (truth, answer), count in counts.items():
            wrong.update({truth: count, answer: count} if truth != answer else {truth: 0, answer: 0})
        drawn = {name for name, _ in wrong.most_common(_MOST_DRAWN)}
        marks = [
            Mark(answer, truth, *(("right", "good") if truth == answer else ("wrong", "bad")), size=count)
            for (truth, answer), count in right_first
            if count and {truth, answer} <= drawn
        ]
        which = "" if len(drawn) == len(wrong) else f", the {len(drawn)} most confused of {len(wrong)} classes"
        caption = f"{self.configuration}: what is taken for what{which}"
        return Plot(Chart(caption, "points", marks, "", Axis(_ANSWER), Axis(_TRUTH)))


def confusion_of(result: Result, configuration: str) -> ConfusionFrame:
    """The counts of one configuration, the first that was tested where none is named.

    Raises :class:`~evaltools.errors.UsageError` for another name, and where nothing says what was answered.
    """
    name = configuration or next((row.name for row in result.measured_tests), result.rows[0].name)
    by_name = _answers(result)
    if name not in by_name:
        names = list(by_name)
        raise UsageError(
            f"no configuration with answers is named {name!r}.{did_you_mean(name, names)} There are {', '.join(names)}"
        )
    own = by_name[name]
    classes = _classes(own)
    counts = Counter((row[_TRUTH], row[_ANSWER]) for row in own)
    table = [[counts[truth, answer] for answer in classes] for truth in classes]
    frame = ConfusionFrame(table, index=pandas.Index(classes, name=_TRUTH), columns=pandas.Index(classes, name=_ANSWER))
    frame.configuration = name
    return frame


def classes_of(result: Result) -> pandas.DataFrame:
    """A row for each configuration and class; of a detector for each category.

    Raises :class:`~evaltools.errors.UsageError` where nothing says what was answered.
    """
    measured = [row for row in result.rows if row.status == "measured"]
    if any(_CATEGORY_AP in part.figures for row in measured for part in row.parts):
        rows = [line for row in measured for line in _categories(row)]
    else:
        answers = _answers(result)
        reference = next((answers[row.name] for row in measured if row.role == "reference"), [])
        rows = [line for name, own in answers.items() for line in _of_classes(name, own, reference)]
    return pandas.DataFrame(rows).set_index([CONFIGURATION, "class"])


def _categories(row: Row) -> list[dict[str, Any]]:
    return [
        {CONFIGURATION: row.name, "class": part.name, "objects": part.value("objects"), "ap": part.value(_CATEGORY_AP)}
        for part in row.parts
    ]


def _of_classes(name: str, own: Answers, reference: Answers) -> list[dict[str, Any]]:
    """Of each class its ``examples``, how many were ``right``, and how many ``answers`` it was.

    ``recall`` is the share of its examples that are right, ``precision`` that of the answers; ``lost`` and ``gained``
    are right only for the reference, or only here.
    """
    before = {row["example"]: row["is_right"] for row in reference}
    examples, right, answered, lost, gained = (Counter[str]() for _ in range(5))
    for row in own:
        truth, is_right = row[_TRUTH], bool(row["is_right"])
        examples[truth] += 1
        answered[row[_ANSWER]] += 1
        right[truth] += is_right
        was_right = bool(before.get(row["example"], is_right))
        lost[truth] += was_right and not is_right
        gained[truth] += is_right and not was_right
    return [
        {
            CONFIGURATION: name,
            "class": each,
            "examples": examples[each],
            "right": right[each],
            "answers": answered[each],
            "recall": right[each] / examples[each] if examples[each] else None,
            "precision": right[each] / answered[each] if answered[each] else None,
            "lost": lost[each],
            "gained": gained[each],
        }
        for each in _classes(own)
    ]


def _answers(result: Result) -> dict[str, Answers]:
    """The rows of the examples of each configuration."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in example_rows(result):
        if _ANSWER not in row:
            raise UsageError(
                f"a result of {result.about} has no class for each example; imagenet has, and a task of your own whose "
                "metric is topk(labels)"
            )
        found.setdefault(row[CONFIGURATION], []).append(row)
    return dict(found)


def _classes(answers: Answers) -> list[str]:
    """The labels that are the truth or the answer of an example, by the number of their class; unknown ones last."""
    known = {row[name]: row[f"{name}_index"] for row in answers for name in (_TRUTH, _ANSWER)}
    return sorted(known, key=lambda label: (known[label] is None, known[label] or 0, label))
