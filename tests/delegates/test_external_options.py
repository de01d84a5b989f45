"""The grammar of --external_delegate_options: what native tools drop or alter is an error."""

from __future__ import annotations

import pytest

from evaltools.delegates import parse_external_options
from evaltools.errors import UsageError


def test_items_keep_their_order_and_blanks() -> None:
    assert list(parse_external_options("b: 1;a:x y;").items()) == [("b", " 1"), ("a", "x y")]


def test_no_text_gives_no_options() -> None:
    assert parse_external_options("") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "is not a key:value pair") for text in ("k", "a:b;;c:d", "a:b:", "C:\\x:1")),
        ("a:b,c:d", "is not a key:value pair.*options are separated by ';', not by ','"),
        ("path:/a:b", "is not a key:value pair.*put a value that contains one in double quotes"),
        (":b,c", "key and value must both be there"),
        (":v", "is not a key:value pair"),
        ("k:", "key and value must both be there"),
    ],
)
def test_an_item_that_native_tools_drop_or_alter_is_refused_and_explained(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_external_options(text)


def test_a_key_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="the key 'a' is given twice"):
        parse_external_options("a:1;a:2")


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


@pytest.mark.parametrize("text", ['a:"b', 'a:"b"c', 'a:"b":c', '"a":b'])
def test_quotes_that_do_not_end_where_the_value_ends_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a value in quotes ends with a quote"):
        parse_external_options(text)
