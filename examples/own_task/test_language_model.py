from pathlib import Path

import numpy as np
import pytest

import evaltools as et
from language_model import language_model


class Outputs(tuple):
    def real(self, number):
        return self[number]


def made(tmp_path: Path) -> et.Task:
    (tmp_path / "texts.txt").write_text("1 2 0\n3 1\n")
    return language_model(tokens=tmp_path / "texts.txt")


def scores(*likeliest: int) -> Outputs:
    return Outputs([np.log(np.eye(4)[list(likeliest)] * 0.6 + 0.1)[np.newaxis]])


def test_perplexity_is_that_of_all_tokens_together(tmp_path: Path) -> None:
    task = made(tmp_path)
    first = task.score(scores(2, 3, 0), task.examples[0].target)["perplexity"]
    second = task.score(scores(1, 1, 1), task.examples[1].target)["perplexity"]
    assert task.metrics[0].figure([first, second]) == pytest.approx((0.7 * 0.1 * 0.7) ** (-1 / 3))


def test_next_tokens_are_those_of_the_reference(tmp_path: Path) -> None:
    task = made(tmp_path)
    assert task.agree(scores(2, 3, 0), scores(2, 0, 0), task.examples[0].target) == {
        "same_next_token": pytest.approx(2 / 3)
    }


def test_short_texts_are_filled_up(tmp_path: Path) -> None:
    task = made(tmp_path)

    class Tensor:
        shape = (1, 3)

    assert task.prepare(task.examples[1].input, [Tensor])[0].tolist() == [[3, 1, 0]]
