"""Which tensors of two models belong together, and which do not."""

from __future__ import annotations

import pytest

from evaltools.locate.sides import NO_SUCH_NAME, Candidate, match


def conv(tensor: int, name: str, *shape: int) -> Candidate:
    return Candidate(tensor, name, "CONV_2D", shape or (1, 4))


def test_names_match_in_any_order() -> None:
    found = match([conv(0, "a"), conv(1, "b"), conv(2, "c")], [conv(5, "b"), conv(6, "a")])
    assert found.partners == {0: 6, 1: 5}
    assert found.missing == {2: NO_SUCH_NAME}
    assert not found.renumbered


def test_sizes_of_1_may_differ_and_others_may_not() -> None:
    own = [conv(0, "a", 1, 1, 4), conv(1, "b", 2, 3)]
    found = match(own, [conv(0, "a", 4), conv(1, "b", 3, 2)])
    assert found.partners == {0: 0}
    assert found.missing == {1: "the tensor of that name has the shape [3, 2] there"}


def test_open_sizes_fit_any() -> None:
    assert match([conv(0, "a", -1, 3)], [conv(1, "a", 7, 3)]).partners == {0: 1}


def test_the_number_at_the_end_may_differ() -> None:
    found = match([conv(0, "x/sub1")], [conv(3, "x/sub2")])
    assert found.partners == {0: 3}
    assert found.renumbered == {0}


@pytest.mark.parametrize(
    "others",
    [
        [conv(3, "x/sub2"), conv(4, "x/sub3")],
        [Candidate(3, "x/sub2", "ADD", (1, 4))],
        [conv(3, "x/sub2", 1, 8)],
        [conv(3, "", 1, 4)],
    ],
)
def test_a_number_is_not_left_away_where_that_is_ambiguous_or_does_not_fit(others: list[Candidate]) -> None:
    assert match([conv(0, "x/sub1")], others).partners == {}


def test_a_name_that_is_there_twice_is_nobodys() -> None:
    found = match([conv(0, "a")], [conv(1, "a"), conv(2, "a")])
    assert found.missing == {0: NO_SUCH_NAME}
