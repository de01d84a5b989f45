"""Typed parameters of a function are options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from evaltools.errors import UsageError
from evaltools.tasks.framework.options import options_of, values_of


def every_kind(
    images: Annotated[Path, "Folder of pictures."],
    text: str,
    size: int = 3,
    share: float = 0.5,
    is_fast: bool = False,
    labels: Path | None = None,
    mode: Literal["mean", "worst"] = "mean",
    bits: Literal[8, 16] = 8,
) -> None: ...


def read(**given: Any) -> dict[str, Any]:
    return values_of(options_of(every_kind, "own.py, line 1"), given, "own")


def test_flags_are_read_as_the_types_say() -> None:
    flags = {"images": "val", "text": "a", "size": "4", "share": "0.25", "is_fast": "true", "bits": "16"}
    assert read(**flags) == {
        "images": Path("val"),
        "text": "a",
        "size": 4,
        "share": 0.25,
        "is_fast": True,
        "labels": None,
        "mode": "mean",
        "bits": 16,
    }


def test_values_from_python_stay_what_they_are() -> None:
    given = read(images=Path("val"), text="a", size=4, share=1, is_fast=True, labels="names.txt", bits=16)
    assert given["labels"] == Path("names.txt")
    assert given["share"] == 1.0
    assert (given["size"], given["is_fast"], given["bits"]) == (4, True, 16)


def test_annotated_may_be_a_part_of_a_type_that_may_be_none() -> None:
    def own(masks: Annotated[Path, "Folder of masks"] | None = None) -> None: ...

    (masks,) = options_of(own, "own.py")
    assert masks.parameter.help == "Folder of masks"
    assert options_of(every_kind, "own.py")[0].parameter.help == "Folder of pictures. Required."
    assert masks.read("here") == Path("here")
    assert masks.read(None) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "a"}, "own needs --images=..."),
        ({"images": "a", "text": "b", "sise": "3"}, "own has no option 'sise'. Did you mean size?"),
        ({"images": "", "text": "b"}, "--images is empty; give a path"),
        ({"images": "a", "text": "b", "size": "x"}, "--size=x: not a valid value; use a whole number (32 bit)"),
        ({"images": "a", "text": "b", "mode": "best"}, "--mode=best: not an accepted value; use one of mean, worst"),
        ({"images": "a", "text": "b", "size": 2.5}, "size=2.5: expected int, got float"),
        ({"images": "a", "text": "b", "size": True}, "size=True: expected int, got bool"),
        ({"images": "a", "text": "b", "bits": 4}, "bits=4: expected 8 or 16, got int"),
        ({"images": None, "text": "b"}, "images=None: expected Path, got NoneType"),
    ],
)
def test_what_is_wrong_with_an_option_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        read(**given)
    assert message in str(error.value)


def untyped(images) -> None: ...  # type: ignore[no-untyped-def]
def of_lists(images: list[Path]) -> None: ...
def of_two_types(size: int | str) -> None: ...
def with_a_wrong_default(size: int = "3") -> None: ...  # type: ignore[assignment]
def with_none(size: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def of_any_number(*images: Path) -> None: ...
def of_any_name(**images: Path) -> None: ...
def of_a_broken_type(size: int) -> None: ...
def of_an_unknown_type(images: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821


of_a_broken_type.__annotations__["size"] = "1+"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (untyped, "the parameter images has no type; write such as images: Path"),
        (of_lists, "no option can be of the type of images, list[Path]; use bool, int, float"),
        (of_two_types, "no option can be of the type of size, int | str; use"),
        (with_a_wrong_default, "the default of size is '3', which is not an int"),
        (with_none, "the default of size is None; write size: int | None = None"),
        (of_any_number, "the parameter *images: 'Path' cannot be an option"),
        (of_any_name, "the parameter **images: 'Path' cannot be an option"),
        (of_a_broken_type, "the types of its parameters cannot be read: "),
        (of_an_unknown_type, "the types of its parameters cannot be read: name 'Unknown' is not defined"),
    ],
)
def test_a_parameter_that_cannot_be_an_option_is_named_with_its_place(
    function: Callable[..., None], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        options_of(function, "own.py, line 7")
    assert str(error.value).startswith("own.py, line 7: ")
    assert message in str(error.value)
