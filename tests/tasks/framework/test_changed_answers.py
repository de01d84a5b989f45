"""What changed: listed, and on the page."""

from __future__ import annotations

import io

from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.known_tasks import Detail
from evaltools.report.page.screens import print_result
from evaltools.result.facts import Model, Tensor
from evaltools.result.result import Result
from evaltools.result.section import Gallery
from evaltools.tasks.framework.topk_report import ChangedAnswer, Comparison, FirstAnswer
from tests.results import configuration, result

CAT, DOG, OWL = FirstAnswer("cat, tabby", 0.75), FirstAnswer("dog", 0.5), FirstAnswer("owl", None)
CHANGED = [
    ChangedAnswer("1.png", "owl", CAT, DOG, "neither", tie=False),
    ChangedAnswer("2.png", "dog", CAT, DOG, "gained", tie=False),
    ChangedAnswer("3.png", "cat, tabby", replace(CAT, equal="dog"), DOG, "lost", tie=True),
    ChangedAnswer("4.png", "cat, tabby", CAT, OWL, "lost", tie=False),
]


def made(changed: list[ChangedAnswer], count: int = 50) -> Result:
    compared = Comparison("reference", "a", [2], [1], count=count, same=count - len(changed), changed=changed, ties=1)
    made = result(configuration("reference", "reference"), configuration("a"), comparisons=[compared])
    tensor = Tensor("input", "float32", [1, 8, 8, 3], 0.0, 0)
    return replace(made, models=[Model("m", "00", 1, 1, [tensor], [])])


def printed(detail: Detail) -> list[str]:
    text = io.StringIO()
    print_result(made(CHANGED), make_console(text), detail)
    return text.getvalue().splitlines()


def test_the_pictures_are_listed_where_all_is_asked_for() -> None:
    counts = "a: 4 of 50 answers changed: 2 lost, 1 gained, 1 wrong both ways; 1 is an exact tie"
    assert counts in printed("figures")
    assert counts not in printed("answer")
    assert not [line for line in printed("figures") if ".png" in line]
    assert [line.partition(":")[0] for line in printed("all") if ".png: " in line] == [
        "4.png",
        "3.png",
        "2.png",
        "1.png",
    ]


def gallery(changed: list[ChangedAnswer]) -> Gallery:
    (found,) = [section for section in made(changed).blocks if section.place == "changes"]
    (block,) = found.blocks
    assert isinstance(block, Gallery)
    return block


def test_a_page_has_a_gallery_of_them_the_worst_first() -> None:
    found = gallery(CHANGED)
    assert found.caption == "4 pictures with another first answer: a"
    first = found.pictures[0]
    assert (first.folder, first.name, first.effect, first.tone) == ("d", "4.png", "lost", "bad")
    assert list(first.lines) == ["right: cat, tabby", "reference: cat, tabby 0.75", "a: owl no number"]
    assert [picture.tone for picture in found.pictures] == ["bad", "bad", "good", ""]
    assert [picture.kind for picture in found.pictures] == ["lost", "lost", "gained", "wrong both ways"]
    assert (found.pictures[0].classes, found.pictures[0].score) == (["cat, tabby"], None)
    assert found.below == ""
    cut = gallery(CHANGED * 14)
    assert (len(cut.pictures), cut.below) == (48, "48 of 56 pictures shown, all in the JSON result")
    assert not [section for section in made([]).blocks if section.place == "changes"]
