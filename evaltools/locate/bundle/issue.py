"""The text of an issue, ready to be pasted: Markdown in which no name of a model means anything but itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.delegates import PARAMETERS
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.locate.bundle.anatomy import Anatomy, PartOperator, PartTensor
from evaltools.locate.bundle.script import FAILING, PASSING
from evaltools.locate.bundle.trial import Trial
from evaltools.locate.parts.case import Case
from evaltools.locate.parts.difference import difference, within_type
from evaltools.report.words.markdown import escape, table
from evaltools.result.locate import Cause, Culprit, Evidence, LocateResult, SweptOption
from evaltools.runtime.session import Array
from evaltools.text import printable

_MOST_OPERATORS: Final = 12
_MOST_ELEMENTS: Final = 8
_LONGEST_NAME: Final = 200
_UNITS: Final = {"steps": "steps of the output's scale", "absolute": "in the unit of the output"}


class Facts(Struct, frozen=True):
    """What an issue is made of. ``trial`` is None where there is no script; ``no_script`` says why then."""

    result: LocateResult
    case: Case
    culprit: Culprit | None
    part: Anatomy
    model_bytes: int
    neighbour_bytes: int | None
    install: Sequence[str]
    trial: Trial | None
    no_script: str = ""


def headline(case: Case, culprit: Culprit | None, crashes: bool) -> str:
    """What is wrong, in a few words that are no Markdown."""
    operator = culprit.name if culprit and culprit.last > culprit.first else case.operator
    return f"{operator} {'crashes' if crashes else 'gives wrong values'} with {delegate_words(case.configuration)}"


def delegate_words(configuration: Configuration) -> str:
    """The delegates of a configuration in words: kinds, and the libraries of external ones."""
    libraries = [path.name for path in configuration.libraries]
    names = [each.name for each in configuration.delegates.requested if each.enabled_by != EXTERNAL.enabled_by]
    if not libraries and not names:
        return "XNNPACK" if configuration.kernel_set == "default" else f"the {configuration.kernel_set} kernels"
    half = " in fp16" if configuration.delegates.value("xnnpack_force_fp16") else ""
    words = [f"XNNPACK{half}" if name == XNNPACK.name else f"the {name} delegate" for name in names]
    return " and ".join([*libraries, *words])


def issue(facts: Facts) -> str:
    """The whole text."""
    sections = [
        f"# {_words(headline(facts.case, facts.culprit, _crashes(facts)))}",
        _head(facts),
        "## What happens\n\n" + _bullets(_what_happens(facts)),
        _values(facts.case),
        "## How to reproduce\n\n" + _how(facts),
        _causes(facts.culprit.causes if facts.culprit else ()),
        _tried(facts.culprit),
        "## Versions\n\n" + _bullets(_versions(facts)),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def code(text: str) -> str:
    r"""A text of one line as code, whatever it holds; in code nobody is mentioned and nothing is linked.

    >>> print(code("a`b"), code(""))
    ``a`b`` (without a name)
    """
    line = printable(" ".join(text.split()))
    if not line:
        return "(without a name)"
    line = line if len(line) <= _LONGEST_NAME else line[:_LONGEST_NAME] + "..."
    fence = "`" * (1 + _longest_run(line))
    gap = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{gap}{line}{gap}{fence}"


def block(text: str, language: str = "") -> str:
    """Lines as a block of code."""
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _words(text: str) -> str:
    """A text that reads as it is: also nobody is mentioned, and no other issue."""
    return re.sub(r"(?<!&)([@#])(?=\w)", r"\1<!-- -->", escape(printable(" ".join(text.split()))))


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def _crashes(facts: Facts) -> bool:
    return "given" not in facts.case.loaded


def _head(facts: Facts) -> str:
    if facts.trial is None:
        return f"**Not tried:** {_words(facts.no_script)}."
    if facts.trial.reproduced:
        return "A model of its own, its inputs and a script that reproduces this are attached."
    return (
        "**Not reproduced:** the attached script did not show this when it was run alone, so that this is no minimal "
        "example. It was seen while the operators of the model were tried one after the other."
    )


def _what_happens(facts: Facts) -> list[str]:
    case, culprit, verdict = facts.case, facts.culprit, facts.result.verdict
    operators = facts.part.operators
    lines = [_operator(operator, case.tensor) for operator in operators[:_MOST_OPERATORS]]
    if len(operators) > _MOST_OPERATORS:
        lines.append(f"and {len(operators) - _MOST_OPERATORS} more operators")
    lines.append(f"Wrong: {code(case.tensor)}. {_size_of_error(case)}")
    if culprit is not None:
        seen = [
            f"{each.beyond} of {each.runs} runs ({_words(each.method)})" for each in culprit.evidence if each.beyond
        ]
        lines += [f"Too far off in {', '.join(seen)}"] if seen else []
    found = f"Found by evaltools: {_words(culprit.status)}" if culprit else "Found by evaltools"
    lines.append(f"{found}; {_words(verdict.kind)}{': ' if verdict.reason else ''}{_words(verdict.reason)}")
    lines.append(f"Configuration: {code(' '.join(_flags(case.configuration)) or 'the defaults')}")
    return lines


def _operator(operator: PartOperator, wrong: str) -> str:
    options = ", ".join(f"{name}={value}" for name, value in operator.options.items())
    inputs = ", ".join(map(_tensor, operator.inputs)) or "nothing"
    outputs = ", ".join(
        f"{_tensor(each)}{', the wrong one' if each.name == wrong else ''}" for each in operator.outputs
    )
    return f"{code(operator.name)}{f' with {code(options)}' if options else ''}: {inputs} to {outputs}"


def _tensor(tensor: PartTensor) -> str:
    notes = [tensor.quantization, "constant" if tensor.is_constant else ""]
    noted = ", ".join(filter(None, notes))
    return f"{code(tensor.name)} {code(tensor.kind)}{f' ({noted})' if noted else ''}"


def _size_of_error(case: Case) -> str:
    if "given" not in case.loaded:
        return "The process dies"
    found = difference(case.given, case.expected)
    relative = ""
    if found.reference_rms and np.isfinite(found.largest):
        relative = f", {found.error_rms / found.reference_rms:.3g} of the values (root mean square)"
    unit = _UNITS.get(case.unit, case.unit)
    if case.on_average:
        errors = case.given.astype(np.float64) - case.expected.astype(np.float64)
        mean = float(np.mean(errors[within_type(case.expected)]))
        allowed = f"{case.tolerance:.6g} to one side is allowed"
        return f"On average {mean:+.3g} ({unit}) where values are not at an end of their type; {allowed}{relative}"
    return f"Largest difference {found.largest:.6g} ({unit}), where {case.tolerance:.6g} is allowed{relative}"


def _flags(configuration: Configuration) -> list[str]:
    """The flags of a configuration, without the folders of this machine."""
    flags = []
    for flag in configuration.to_flags():
        name, _, value = flag.removeprefix("--").partition("=")
        is_path = name in PARAMETERS and PARAMETERS[name].is_path
        flags.append(f"{name}={PurePath(value).name if is_path else value}")
    return flags


def _values(case: Case) -> str:
    """The first elements that are too far off."""
    if "given" not in case.loaded:
        return ""
    expected, given = case.expected, case.given
    if expected.shape != given.shape:
        return f"## Expected and given\n\nThe shape is {given.shape} where the CPU has {expected.shape}."
    wrong = _is_off(case)
    places = np.argwhere(wrong)
    rows = [
        [str(place.tolist()), _value(expected[tuple(place)]), _value(given[tuple(place)])]
        for place in places[:_MOST_ELEMENTS]
    ]
    if not rows:
        return ""
    count = f"{len(places)} of {expected.size} elements are too far off" + (", the first:" if len(rows) > 1 else ":")
    return f"## Expected and given\n\n{count}\n\n" + table(["element", "CPU", "delegate"], rows)


def _is_off(case: Case) -> Array:
    """Where the delegate is further off than it may be."""
    given, expected = case.given.astype(np.float64), case.expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(given - expected) <= case.tolerance
    same = (given == expected) | (np.isnan(given) & np.isnan(expected))
    return np.asarray(~(near | same))


def _value(value: Array) -> str:
    return f"{value.item():.9g}" if value.dtype.kind == "f" else str(value.item())


def _how(facts: Facts) -> str:
    models = f"{code(FAILING)} has {facts.model_bytes} bytes"
    if facts.neighbour_bytes is not None:
        models += f"; {code(PASSING)}, of {facts.neighbour_bytes} bytes, is {_neighbour(facts.trial)}"
    if facts.trial is None:
        return f"{models}; {code('inputs.npz')} has its inputs, and what the CPU and the delegate gave."
    libraries = "".join(f" --library=PATH/{shlex.quote(path.name)}" for path in facts.case.configuration.libraries)
    commands = block(f"pip install {' '.join(facts.install)}\npython reproduce.py{libraries}", "sh")
    printed = f"\n\nIt prints\n\n{block(facts.trial.printed)}" if facts.trial.printed else ""
    return f"{models}.\n\n{commands}{printed}"


def _neighbour(trial: Trial | None) -> str:
    """A neighbour is called right where the script has just found it so."""
    was_right = trial is not None and f"{PASSING}: wrong in 0 of " in trial.printed
    return "right" if was_right else "another part of the same model"


def _causes(causes: Sequence[Cause]) -> str:
    if not causes:
        return ""
    lines = [
        f"{_words(cause.name)}. Shown by: {_words(cause.shown_by)}. What helps: {_words(cause.remedy)}"
        + (f" ({cause.link})" if re.fullmatch(r"https://[\w./#?=&%-]+", cause.link) else "")
        for cause in causes
    ]
    return "## Cause\n\n" + _bullets(lines)


def _tried(culprit: Culprit | None) -> str:
    if culprit is None or not (culprit.evidence or culprit.sweep):
        return ""
    lines = [*map(_evidence, culprit.evidence), *map(_swept, culprit.sweep)]
    return "## What was tried\n\n" + _bullets(lines)


def _evidence(evidence: Evidence) -> str:
    note = f" ({_words(evidence.note)})" if evidence.note else ""
    says = "agrees" if evidence.agrees else "does not agree"
    return (
        f"{_words(evidence.method)}, {_words(evidence.part)}: {says}, {evidence.beyond} of {evidence.runs} runs{note}"
    )


def _swept(option: SweptOption) -> str:
    tells = f": {_words(option.tells)}" if option.tells else ""
    return f"with {code(option.setting)} it is {'still wrong' if option.wrong else 'right'}{tells}"


def _versions(facts: Facts) -> list[str]:
    environment, used = facts.result.environment, facts.result.configuration.runtime
    packages = ", ".join(f"{_words(name)} {_words(version)}" for name, version in environment.packages.items())
    return [
        *([f"runtime {code(used.name)}: {_words(used.package)} {_words(used.version)}"] if used else []),
        *([packages] if packages else []),
        f"Python {_words(environment.python)}, {_words(environment.platform)}",
        f"{_words(environment.machine)}, {_words(environment.processor or 'processor not known')}",
        f"evaltools {_words(environment.evaltools)}",
    ]
