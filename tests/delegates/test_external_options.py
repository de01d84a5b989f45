"""The grammar of --external_delegate_options: what native tools drop or alter is an error."""

from __future__ import annotations

import pytest

from evaltools.delegates import parse_external_options
from evaltools.errors import UsageError


def test_items_keep_their_order_and_blanks() -> None:
    assert list(parse_external_options("b: 1;a:x y;").items()) == [("b", " 1"), ("a", "x y")]


def test_no_text_gives_no_options() -> None:
    assert parse_external_options("") == {}


def test_more_options_than_a_delegate_takes_are_refused() -> None:
    assert len(parse_external_options(";".join(f"k{index}:v" for index in range(256)))) == 256
    with pytest.raises(UsageError, match="257 options; an external delegate takes 256"):
        parse_external_options(";".join(f"k{index}:v" for index in range(257)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('path:"/a:b"', {"path": "/a:b"}),
        ('a:"x;y";b:z', {"a": "x;y", "b": "z"}),
        ('a:"say ""so""";', {"a": 'say "so"'}),
        ('a:""', {"a": ""}),
        ('a:5" disk', {"a": '5" disk'}),
    ],
)
def test_a_value_in_quotes_may_hold_separators(text: str, expected: dict[str, str]) -> None:
    assert parse_external_options(text) == expected
