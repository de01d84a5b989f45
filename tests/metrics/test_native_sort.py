"""The order of equal scores, against ``std::sort`` itself, compiled here."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics import native_average_precision
from evaltools.metrics.native_average_precision import Item, order_by_score

Scores = Sequence[float]

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
#ifndef __GLIBCXX__
#error "another C++ library"
#endif
struct Detection { float score; std::int32_t place; };
int main(int, char** arguments) {
  const bool heap = std::strcmp(arguments[1], "heap") == 0;
  const auto before = [](const Detection& a, const Detection& b) { return a.score > b.score; };
  std::int32_t count;
  while (std::fread(&count, sizeof count, 1, stdin) == 1) {
    std::vector<float> scores(count);
    if (std::fread(scores.data(), sizeof(float), count, stdin) != static_cast<std::size_t>(count)) return 1;
    std::vector<Detection> found;
    for (std::int32_t i = 0; i < count; ++i) found.push_back({scores[i], i});
    if (heap) {
      std::make_heap(found.begin(), found.end(), before);
      std::sort_heap(found.begin(), found.end(), before);
    } else {
      std::sort(found.begin(), found.end(), before);
    }
    for (const auto& each : found) std::fwrite(&each.place, sizeof each.place, 1, stdout);
  }
}
"""


@pytest.fixture(scope="session")
def sorter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that sorts arrays with the C++ library of the GNU compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to compile std::sort with")
    folder = tmp_path_factory.mktemp("std_sort")
    (folder / "sort.cc").write_text(SOURCE)
    command = [compiler, "-std=c++11", "-O1", str(folder / "sort.cc"), "-o", str(folder / "sort")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "another C++ library" in done.stderr:
        pytest.skip("the g++ here does not come with the GNU C++ library")
    assert done.returncode == 0, done.stderr
    return folder / "sort"


def sorted_by(program: Path, kind: str, arrays: Sequence[Scores]) -> list[list[int]]:
    data = b"".join(np.int32(len(scores)).tobytes() + np.array(scores, np.float32).tobytes() for scores in arrays)
    done = subprocess.run([str(program), kind], input=data, capture_output=True, check=True)
    places = np.frombuffer(done.stdout, np.int32)
    ends = np.cumsum([len(scores) for scores in arrays])
    return [part.tolist() for part in np.split(places, ends[:-1])]


def float32(values: npt.ArrayLike) -> list[float]:
    rounded: list[float] = np.array(values, np.float32).tolist()
    return rounded


def of_few_values(sizes: Sequence[int], values: Sequence[int], seed: int) -> list[Scores]:
    random = np.random.default_rng(seed)
    return [float32(random.integers(0, kinds, size) / 256) for size in sizes for kinds in values]


class _Undecided:
    """A score that gets its value when a sort compares it, so as to give the sort the most work (McIlroy, 1999)."""

    def __init__(self, game: _Game) -> None:
        self.rank = math.inf
        self.game = game

    def __gt__(self, other: _Undecided) -> bool:
        game = self.game
        if self.rank == other.rank == math.inf:
            (self if self is game.candidate else other).rank = game.decided
            game.decided += 1
        if self.rank == math.inf:
            game.candidate = self
        elif other.rank == math.inf:
            game.candidate = other
        return self.rank < other.rank


class _Game:
    def __init__(self) -> None:
        self.candidate: _Undecided | None = None
        self.decided = 0


def killer(size: int) -> list[float]:
    """Scores of which each partition splits off next to nothing."""
    game = _Game()
    scores = [_Undecided(game) for _ in range(size)]
    order_by_score(scores)  # type: ignore[arg-type]
    return [-float(min(score.rank, size)) for score in scores]


@pytest.fixture
def heapsorts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the runs that went to heapsort."""
    lengths: list[int] = []
    original = native_average_precision._heapsort

    def spy(items: list[Item]) -> list[Item]:
        lengths.append(len(items))
        return original(items)

    monkeypatch.setattr(native_average_precision, "_heapsort", spy)
    return lengths


def test_short_arrays_of_few_values(sorter: Path) -> None:
    arrays = of_few_values(range(70), (1, 2, 3, 10, 256), 1)
    assert sorted_by(sorter, "sort", arrays) == [order_by_score(scores) for scores in arrays]


def test_long_arrays_of_few_values(sorter: Path) -> None:
    sizes = [*np.random.default_rng(2).integers(70, 2000, 25).tolist(), 1023, 1024, 1025, 2000]
    arrays = of_few_values(sizes, (2, 5, 256, 100_000), 2)
    assert sorted_by(sorter, "sort", arrays) == [order_by_score(scores) for scores in arrays]


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 18, 31, 32, 33, 100, 501, 2000])
def test_patterns(sorter: Path, size: int) -> None:
    rising = [number / 2048 for number in range(size)]
    arrays = [
        [0.5] * size,
        rising,
        rising[::-1],
        [min(place, size - 1 - place) / 2048 for place in range(size)],  # organ pipe
        [max(place, size - 1 - place) / 2048 for place in range(size)],
        [number // 10 / 2048 for number in range(size)],
        [place % 7 / 8 for place in range(size)],
        [place % 2 * place / 2048 for place in range(size)],
    ]
    assert sorted_by(sorter, "sort", arrays) == [order_by_score(scores) for scores in arrays]


@pytest.mark.parametrize(("equal", "longest"), [(1, 1900), (2, 100), (3, 100)])
def test_arrays_that_go_too_deep_for_quicksort(sorter: Path, heapsorts: list[int], equal: int, longest: int) -> None:
    arrays = [[score // equal for score in killer(size)] for size in (100, 333, 1000, 2000)]
    heapsorts.clear()
    found = [order_by_score(scores) for scores in arrays]
    assert max(heapsorts) > longest
    assert sorted_by(sorter, "sort", arrays) == found


def test_heapsort_of_few_values(sorter: Path) -> None:
    arrays = of_few_values([*range(1, 60), 500, 501], (1, 2, 3, 10, 256), 3)
    found = [
        native_average_precision._heapsort([(score, place) for place, score in enumerate(scores)]) for scores in arrays
    ]
    assert sorted_by(sorter, "heap", arrays) == [[place for _, place in items] for items in found]


def test_up_to_16_equal_scores_keep_their_order_and_17_do_not() -> None:
    assert order_by_score([0.5] * 16) == list(range(16))
    assert order_by_score([0.5] * 17) != list(range(17))
