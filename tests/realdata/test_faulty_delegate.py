"""The faulty delegate takes over whole real models: what is not spoiled is the CPU's, what is spoiled is that alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.locate_faults import faults_of
from tests import interpreters

MODELS = {
    "mobilenet_v1_0.25_224_float": 31,
    "mobilenet_v1_0.25_128_quant": 31,
    "tf2_mobilenet_v2_1.0_224_ptq": 68,
    "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29": 64,
}
"""With the number of operators."""


@pytest.mark.parametrize("runtime", interpreters.RUNTIMES)
@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_is_one_partition_and_spoiled_where_asked(
    runtime: str, name: str, zoo: Path, faulty_delegate: Path
) -> None:
    path = zoo / f"{name}.tflite"
    alone = interpreters.make_interpreter(runtime, path.read_bytes())
    values = interpreters.random_inputs(alone)
    expected = all_outputs(alone, values)

    def differ(tensor: str) -> bool:
        delegate = interpreters.load_delegate(runtime, faulty_delegate, tensor=tensor, fault="step", amount=2)
        whole = interpreters.make_interpreter(runtime, path.read_bytes(), delegate)
        operators = [operator["op_name"] for operator in whole._get_ops_details()]
        assert operators == [*operators[: MODELS[name]], "DELEGATE"], "a partition stands behind the nodes it replaces"
        assert len(interpreters.delegated_outputs(whole)) == 1
        found = all_outputs(whole, values)
        return not all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))

    assert not differ("nothing")
    tensors = list(dict.fromkeys(planted.tensor for planted in faults_of(path, 3) if planted.tensor))
    assert [differ(tensor) for tensor in tensors] == [True] * 3


def all_outputs(interpreter: Any, values: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Of one inference."""
    interpreters.run(interpreter, values)
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
