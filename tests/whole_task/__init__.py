"""A whole task, as a folder of the tree or another package brings it: how often the first output is largest."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter
from evaltools.tasks.shared.declared import DeclaredTask
from evaltools.tasks.shared.options import MAX_FAILED_EXAMPLES, MODEL_FILE, OUTPUT_FILE_PATH

KIND: Final = DeclaredTask(
    "firsts_of",
    summary="How often the first output is the largest",
    description="How often the first output is the largest",
    options={
        "evaluation": (
            MODEL_FILE,
            OUTPUT_FILE_PATH,
            MAX_FAILED_EXAMPLES,
            Parameter("count", "Number of random inputs.", default=20),
        )
    },
    evaluation=f"{__name__}.work:Firsts",
    part=f"{__name__}.work:FirstsPart",
    report=f"{__name__}.work:REPORT",
    evidence=f"{__name__}.work:EVIDENCE",
)
