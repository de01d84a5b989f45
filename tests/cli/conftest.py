"""An evaluation for the tests of the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.device.fixtures import client, devices, network, proxy
from tests.evaluation_set import EvaluationSet, make_evaluation_set

__all__ = ["client", "devices", "network", "proxy"]


@pytest.fixture(scope="session")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSet:
    """30 pictures, 6 of them with a wrong label: Top-1 is 0.8 on builtin kernels."""
    return make_evaluation_set(tmp_path_factory.mktemp("evaluation"))


@pytest.fixture
def copied(evaluation: EvaluationSet, tmp_path: Path) -> EvaluationSet:
    """The same, to be damaged by a test."""
    folder = tmp_path / "copy"
    shutil.copytree(evaluation.folder, folder)
    return EvaluationSet(
        folder=folder,
        model=folder / evaluation.model.name,
        images=folder / evaluation.images.name,
        labels=folder / evaluation.labels.name,
        truths=folder / evaluation.truths.name,
        answers=evaluation.answers,
    )
