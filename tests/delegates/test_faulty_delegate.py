"""The delegate that is wrong on purpose: it is right where it is not to be wrong, and evaltools notices the rest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import verdicts
from tests import interpreters, locate_models, tiny_models
from tests.command import evaltools_here
from tests.tflite_writer import Graph, Quantization

MODELS = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models"


@pytest.mark.parametrize(
    ("model", "unseen"),
    [
        ("float32", {"channel_larger": "bf16", "channel_zero": "bf16"}),
        ("int8", {"channel_larger": "int8", "channel_zero": "int8", "one_nan": "not judged"}),
    ],
)
def test_what_it_spoils_is_noticed(model: str, unseen: dict[str, str], faulty_delegate: Path) -> None:
    """What passes: a channel that is near 0; whole numbers have no NaN. What is not decided is not a pass."""
    options = ["--num_runs=8", "--noise_floor_runs=4"]
    found = verdicts.delegate_verdicts(
        MODELS / f"{model}.tflite", options, str(faulty_delegate), 8, lambda words: evaltools_here(*words).err
    )
    assert found is not None
    assert found.pop("none") == verdicts.NO_CHANGE
    noticed = ("diverged", "not decided")
    others = {name: verdict.kind for name, verdict in found.items() if verdict.kind not in noticed}
    assert others.keys() <= unseen.keys(), others
    assert {"scaled", "one_nan", "one_zero", "one_stale", "stale", "frozen", "saturated", "offset"} <= {
        *found.keys() - others.keys(),
        *unseen,
    }


def test_an_offset_is_that_share_of_what_the_output_spans(faulty_delegate: Path, tmp_path: Path) -> None:
    """Three times inputs from 0 to 1 span nearly 3: a quarter of that is 0.75 on every element."""
    model, result = tmp_path / "model.tflite", tmp_path / "result.json"
    model.write_bytes(tiny_models.add_chain((1, 8, 8, 3), 2))
    options = "--external_delegate_options=fault:offset;amount:0.25;every:3"
    told = evaltools_here(
        "diff", f"--model_file={model}", "--num_runs=4", "--warmup_runs=0", "--noise_floor_runs=0",
        "--input_range=input:0:1", f"--external_delegate_path={faulty_delegate}", options, "--use_xnnpack=false",
        f"--output_file_path={result}",
    )  # fmt: skip
    assert told.code == 0, told.err
    (output,) = json.loads(result.read_text())["rows"][1]["parts"]
    found = {name: figure["value"] for name, figure in output["figures"].items()}
    assert found["differing"] == found["elements"] // 4, "the third of four runs"
    assert found["max_error"] == pytest.approx(0.75, rel=0.05)
    assert found["p90"] == pytest.approx(found["max_error"], rel=0.02)


in_every_runtime = pytest.mark.parametrize("runtime", interpreters.RUNTIMES)
AWKWARD = "model/add;model/relu:0"


def negated_twice(dtype: str = "float32") -> bytes:
    """Input, -input and input again; the first has an awkward name, and nobody outside would see it."""
    graph = Graph()
    quantization = Quantization(0.5, 3) if dtype == "int8" else None
    first, middle, last = (graph.tensor(name, (1, 4), dtype, quantization) for name in ("input", AWKWARD, "output"))
    if dtype == "int8":
        graph.node("MAXIMUM", [first, first], middle, "MaximumMinimumOptions")
        graph.node("MAXIMUM", [middle, middle], last, "MaximumMinimumOptions")
    else:
        graph.node("NEG", [first], middle, "NegOptions")
        graph.node("NEG", [middle], last, "NegOptions")
    return graph.to_bytes([first], [last])


def spoiled(runtime: str, model: bytes, library: Path, values: npt.NDArray[np.generic], **options: str) -> list[float]:
    """What the model gives in the delegate, which takes it as a whole."""
    interpreter = interpreters.make_interpreter(runtime, model, interpreters.load_delegate(runtime, library, **options))
    assert interpreters.delegated_outputs(interpreter) == [["output"]]
    found: list[float] = interpreters.run(interpreter, [values]).ravel().tolist()
    return found


@in_every_runtime
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"fault": "zero", "tensor": AWKWARD}, [0, 0, 0, 0]),
        ({"fault": "zero", "tensor": "output"}, [0, 0, 0, 0]),
        ({"fault": "zero", "tensor": "input"}, [1, -4, 2, 0]),
        ({"fault": "zero", "tensor": "elsewhere"}, [1, -4, 2, 0]),
        ({"fault": "scale", "amount": "2", "channel": "1", "tensor": AWKWARD}, [1, -8, 2, 0]),
        ({"fault": "step", "amount": "0.25", "tensor": AWKWARD}, [0, -5, 1, -1]),
        ({"fault": "step", "amount": "0.25", "stride": "2", "tensor": AWKWARD}, [0, -4, 1, 0]),
        ({"fault": "step", "tensor": "output"}, [5, 0, 6, 4]),
    ],
)
def test_a_tensor_by_its_name_is_spoiled_wherever_it_stands(
    runtime: str, options: dict[str, str], expected: list[float], faulty_delegate: Path
) -> None:
    values = np.array([[1, -4, 2, 0]], np.float32)
    assert spoiled(runtime, negated_twice(), faulty_delegate, values, **options) == expected


@in_every_runtime
def test_every_counts_the_inferences_of_a_tensor_within(runtime: str, faulty_delegate: Path) -> None:
    delegate = interpreters.load_delegate(runtime, faulty_delegate, tensor=AWKWARD, fault="zero", every=2)
    interpreter = interpreters.make_interpreter(runtime, negated_twice(), delegate)
    values = np.array([[1, -4, 2, 5]], np.float32)
    assert [float(interpreters.run(interpreter, [values])[0, 3]) for _ in range(5)] == [5, 0, 5, 0, 5]


SAMPLES = {name: (MODELS / f"{name}.tflite").read_bytes() for name in ("float32", "int8", "float16", "dynamic_range")}
ALL = SAMPLES | locate_models.all_models()


@in_every_runtime
@pytest.mark.parametrize("model", ALL.values(), ids=ALL)
def test_all_nodes_without_a_fault_give_what_the_cpu_gives(runtime: str, model: bytes, faulty_delegate: Path) -> None:
    """Bit for bit, with a state that is kept and constants that are converted once."""
    delegate = interpreters.load_delegate(runtime, faulty_delegate, tensor="elsewhere", fault="zero")
    alone = interpreters.make_interpreter(runtime, model)
    whole = interpreters.make_interpreter(runtime, model, delegate)
    assert interpreters.delegated_outputs(whole)
    for seed in range(2):
        values = interpreters.random_inputs(alone, seed)
        np.testing.assert_array_equal(interpreters.run(whole, values), interpreters.run(alone, values))
