"""Command lines and answers of devices: what is written reads back, and nothing else fails badly."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from evaltools.adb.client import Answer, parse_devices, read_answer
from evaltools.adb.facts import read_facts, split_sections
from evaltools.errors import EvaltoolsError
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from tests.hostile.examples import damaged, tried

KNOWN = {
    "flags": (
        Parameter("use_it", "A switch.", default=False),
        Parameter("count", "A number.", default=1),
        Parameter("share", "A real number.", default=0.5),
        Parameter("name", "A text."),
    )
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "use_it": st.booleans(),
        "count": st.integers(-(2**31), 2**31 - 1),
        "share": st.floats(allow_nan=False, allow_infinity=False),
        "name": TEXTS,
    },
)


@tried
@given(VALUES)
def test_values_of_flags_are_those_that_were_typed(values: dict[str, bool | int | float | str]) -> None:
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    words = [f"--{name}={text}" for name, text in texts.items()]
    assert parse_flags("x", "", "", KNOWN, words).options().stated == values


WORDS = TEXTS | st.sampled_from(["--count", "--use_it", "--nouse_it", "--count=1", "--use-it=2", "--name", "--"])


@tried
@given(st.lists(WORDS, max_size=4))
def test_any_words_are_flags_or_refused(words: list[str]) -> None:
    with suppress(EvaltoolsError):
        parse_flags("x", "", "", KNOWN, [word for word in words if not word.startswith("-h")]).options()


@tried
@given(st.binary(max_size=40).filter(lambda out: b"m1" not in out), st.integers(0, 255))
def test_an_answer_of_a_device_is_what_was_printed(out: bytes, code: int) -> None:
    assert read_answer(out + b"m1-%d." % code, b"errm1e", "m1") == Answer(code, out, b"err")


ANSWERS = {
    "machine": b"aarch64",
    "cpus": b"8",
    "battery": b"level: 90\nscale: 100\ntemperature: 310",
    "thermal": b"Thermal Status: 2\nTemperature{mValue=41.5, mType=3, mName=SKIN}",
    "zones": b"48312 cpu-thermal",
    "cpufreq": b"0,schedutil,1803000,300000,1803000",
    "space": b"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/d 100 60 40 60% /data",
    "python": b"Python 3.11.2",
    "properties": b"ro.product.model=Pixel 7\nro.build.version.sdk=34",
}


@tried
@example({**ANSWERS, "properties": "ro.build.version.sdk=²34".encode(), "cpus": "²".encode()})
@example({**ANSWERS, "cpus": b"9" * 5000, "thermal": b"Thermal Status: " + b"9" * 5000})
@given(st.fixed_dictionaries({name: damaged(st.just(answer)) for name, answer in ANSWERS.items()}))
def test_whatever_a_device_answers_gives_facts(answers: dict[str, bytes]) -> None:
    text = "".join(f"m {name}\n{answer.decode('utf-8', 'replace')}\n" for name, answer in answers.items())
    read_facts("R5", split_sections(text, "m"))


LISTED = b"List of devices attached\nR5\tdevice\n"


@tried
@given(damaged(st.just(LISTED)))
def test_whatever_adb_lists_is_read(content: bytes) -> None:
    parse_devices(content.decode("utf-8", "replace"))
