"""``evaltools locate`` names the operator that a delegate is wrong in, and nobody else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.result_file import read_result
from tests import locate_models
from tests.command import Completed, evaltools_here
from tests.example_delegate import SOURCE_DIR, build_delegate
from tests.locate.reading import read
from tests.tflite_writer import Graph, Quantization

MODELS = locate_models.all_models()
QUICK = ("--num_inputs=2", "--num_runs=25", "--progress=none")


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return written(tmp_path, "net")


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name.replace(' ', '_')}.tflite"
    path.write_bytes(MODELS[name])
    return path


def locate(model: Path, *flags: str) -> tuple[Completed, dict[str, Any]]:
    output = model.with_suffix(".json")
    completed = evaltools_here("locate", str(model), *QUICK, f"--output={output}", *flags)
    return completed, read(output) if output.exists() else {}


def planted(delegate: Path, options: str) -> tuple[str, ...]:
    return (f"--external_delegate_path={delegate}", f"--external_delegate_options={options}", "--use_xnnpack=false")


@pytest.mark.parametrize(("name", "place"), [("net", 0), ("net", 5), ("quantized net", 3), ("quantized net", 7)])
def test_the_planted_operator_is_named_and_confirmed(
    name: str, place: int, tmp_path: Path, faulty_delegate: Path
) -> None:
    amount = 4 if name == "quantized net" else 0.02
    tensor = locate_models.NET_TENSORS[place]
    completed, found = locate(
        written(tmp_path, name), *planted(faulty_delegate, f"tensor:{tensor};fault:step;amount:{amount}")
    )
    assert completed.code == 0, completed.err
    assert found["kind"] == "operator at fault", completed.out
    assert found["at_fault"] == [place]
    assert completed.out.startswith(f"operator at fault: #{place} {locate_models.NET_OPERATORS[place]}")
    assert [operator["status"] for operator in found["operators"]].count("wrong") == 1


@pytest.mark.parametrize(("tensor", "amount"), [("stem", 1), ("spread", -1), ("scores", 2)])
def test_whole_numbers_that_are_all_a_step_off_are_a_fault(
    tensor: str, amount: int, tmp_path: Path, faulty_delegate: Path
) -> None:
    """Elsewhere one step is not a difference."""
    place = locate_models.NET_TENSORS.index(tensor)
    completed, found = locate(
        written(tmp_path, "quantized net"), *planted(faulty_delegate, f"tensor:{tensor};fault:step;amount:{amount}")
    )
    assert found["at_fault"] == [place], completed.out
    (suspect,) = found["suspects"]
    assert suspect["sure"] == "confirmed"
    assert [cause["name"] for cause in suspect["cause"]] == ["moved by a constant"]
    operator = found["operators"][place]
    assert operator["single"] == abs(amount)
    assert operator["size"] > operator["tolerance"]
    assert ("off to one side" in operator.get("why", "")) == (abs(amount) == 1)


def test_another_order_of_adding_is_no_fault(tmp_path: Path) -> None:
    graph, size = Graph(), 96
    image = graph.tensor("image", (1, size, size, 8))
    mean = graph.tensor("mean", (1, 1, 1, 8))
    window = {"StrideH": size, "StrideW": size, "FilterHeight": size, "FilterWidth": size, "Padding": 1}
    graph.node("AVERAGE_POOL_2D", [image], mean, "Pool2DOptions", **window)
    path = tmp_path / "mean.tflite"
    path.write_bytes(graph.to_bytes([image], [mean]))
    completed, found = locate(path, "--use_xnnpack", "--input_range=image:0:1")
    assert found["outputs"][0]["accumulated"] > 8 * 2**-24, "XNNPACK adds in another order than the plain kernels"
    assert found["at_fault"] == [], completed.out


def test_inputs_in_8_bits_of_another_range_are_no_fault(tmp_path: Path) -> None:
    """What 4-bit weights multiply: the plain kernels take steps of the largest value, XNNPACK those of the range."""
    from ai_edge_litert import schema_py_generated as schema

    from evaltools.model.cut import editable_model, packed

    graph, random = Graph(), np.random.default_rng(1)
    fed = graph.tensor("fed", (1, 64))
    bits = random.integers(-7, 8, (16, 64)) & 15
    stored = (bits[:, 0::2] | bits[:, 1::2] << 4).astype(np.uint8).view(np.int8)
    pairs = graph.constant("weights", stored, Quantization(0.1, 0))
    bias = graph.constant("bias", np.zeros(16, np.float32))
    given = graph.tensor("given", (1, 16))
    graph.node("FULLY_CONNECTED", [fed, pairs, bias], given, "FullyConnectedOptions", version=10)
    model = editable_model(graph.to_bytes([fed], [given]))
    weights = model.subgraphs[0].tensors[pairs]
    weights.type, weights.shape = schema.TensorType.INT4, [16, 64]
    path = tmp_path / "four_bits.tflite"
    path.write_bytes(packed(model))
    completed, found = locate(path, "--use_xnnpack", "--input_range=fed:0:1")
    assert found["operators"][0]["ran_on"] == "XNNPACK", completed.err
    assert found["operators"][0]["single_relative"] > 1e-3
    assert found["at_fault"] == [], completed.out


@pytest.mark.parametrize(
    ("name", "tensors", "fault"),
    [
        ("net", "pooled|flat|logits|scores", "offset;amount:0.3"),
        ("quantized net", "logits|scores", "step;amount:6"),
        ("net", "stem|spread|project", "zero"),
    ],
)
def test_a_fault_right_behind_another_one_is_confirmed_as_well(
    name: str, tensors: str, fault: str, tmp_path: Path, faulty_delegate: Path
) -> None:
    completed, found = locate(written(tmp_path, name), *planted(faulty_delegate, f"tensor:{tensors};fault:{fault}"))
    places = [locate_models.NET_TENSORS.index(tensor) for tensor in tensors.split("|")]
    assert (found["kind"], found["at_fault"]) == ("operator at fault", places), completed.out
    assert {suspect["sure"] for suspect in found["suspects"]} == {"confirmed"}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "svdf"])
def test_where_nothing_is_wrong_nothing_is_named(name: str, tmp_path: Path, faulty_delegate: Path) -> None:
    completed, found = locate(written(tmp_path, name), *planted(faulty_delegate, "tensor:nowhere;fault:zero"))
    assert completed.code == 0, completed.err
    assert (found["kind"], found["at_fault"]) == ("no difference", [])
    assert found["suspects"] == []


def test_a_fault_in_one_of_20_runs_is_found(net: Path, faulty_delegate: Path) -> None:
    _, found = locate(net, *planted(faulty_delegate, "tensor:project;fault:scale;amount:1.5;every:20"))
    assert found["at_fault"] == [2]
    alone = found["suspects"][0]["evidence"][0]
    assert (alone["beyond"], alone["runs"]) == (1, 25)
    assert alone["note"] == "1 input gave other outputs the next time: it keeps a state"


@pytest.mark.parametrize(
    ("flags", "precision"),
    [("precision:fp16", "fp16"), ("precision:bf16", "bf16"), ("precision:fp32", "fp32")],
)
def test_a_lower_precision_is_no_fault(net: Path, rounding_delegate: Path, flags: str, precision: str) -> None:
    _, found = locate(net, *planted(rounding_delegate, flags))
    assert found["precision"] == precision
    assert found["kind"] == ("no difference" if precision == "fp32" else "precision")
    assert found["at_fault"] == []


def test_the_precision_is_found_by_operator_or_stated(
    net: Path, rounding_delegate: Path, faulty_delegate: Path
) -> None:
    """Two delegates: one in fp16, and one that is wrong in the last layers."""
    flags = (
        *planted(rounding_delegate, "ops:conv,depthwise;precision:fp16")[:2],
        *planted(faulty_delegate, "tensor:pooled|logits;fault:scale;amount:1.5"),
    )
    completed, found = locate(net, *flags)
    assert found["at_fault"] == [4, 6], completed.out
    assert [operator["status"] for operator in found["operators"][:3]] == ["precision"] * 3
    assert "3 of 8 operators in fp16" in found["assumed"]
    assert f"precision assumed: {found['assumed']}; --delegate_precision states it" in completed.out
    _, found = locate(net, *flags, "--delegate_precision=fp32")
    assert "assumed" not in found
    assert {0, 4, 6} <= set(found["at_fault"])


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_padding_that_is_wrong_everywhere_accuses_no_rounding(precision: str, net: Path, tmp_path: Path) -> None:
    """A delegate that pads SAME with the larger half in front: of this net, that is the first layer alone."""
    sources = tmp_path / "sources"
    shutil.copytree(SOURCE_DIR, sources)
    header = sources / "operation.h"
    text = header.read_text()
    assert "(covered - image) / 2 : 0" in text
    header.write_text(text.replace("(covered - image) / 2 : 0", "(covered - image + 1) / 2 : 0"))
    delegate = build_delegate("rounding_delegate", tmp_path, sources)
    completed, found = locate(net, *planted(delegate, f"precision:{precision}"))
    assert found["at_fault"] == [0], completed.out
    (suspect,) = found["suspects"]
    assert [cause["name"] for cause in suspect["cause"]] == ["padded otherwise"]


@pytest.mark.parametrize("steps", [0, 24])
def test_8_bit_weights_are_a_precision_also_in_a_loop(steps: int, tmp_path: Path) -> None:
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(locate_models.hybrid(steps))
    completed, found = locate(path, "--use_xnnpack")
    assert (found["kind"], found["at_fault"]) == ("precision", []), completed.out
    assert found["operators"][0]["single"] > 1e-3
    assert (found["operators"][0]["status"], found["suspects"]) == ("precision", [])
    assert "computes in int8 what 8-bit weights multiply" in completed.out


def test_a_sum_beyond_fp16_is_a_fault_of_that_operator_with_its_cause(tmp_path: Path) -> None:
    model = written(tmp_path, "sum beyond fp16")
    _, found = locate(model, "--use_xnnpack", "--xnnpack_force_fp16", "--input_range=image:0:20")
    assert found["at_fault"] == [0]
    (suspect,) = found["suspects"]
    assert suspect["sure"] == "confirmed"
    assert {option["name"]: option["found"] for option in suspect["setting"]} == {
        "--xnnpack_force_fp16=false": "right",
        "--num_interpreter_threads=4": "still wrong",
    }


def test_a_crash_is_a_finding(net: Path, tmp_path: Path, rounding_delegate: Path) -> None:
    bundle = tmp_path / "bundle"
    completed, found = locate(net, *planted(rounding_delegate, "ops:depthwise;fail:abort"), f"--bundle={bundle}")
    assert completed.code == 0
    assert (found["kind"], found["at_fault"]) == ("crash", [1])
    assert found["operators"][1]["status"] == "crashes by itself"
    assert "SIGABRT" in found["operators"][1]["why"]
    assert found["operators"][0]["status"] == "stays on the CPU"
    assert found["bundle"]["reproduced"], found["bundle"]["printed"]
    assert (bundle / "README.md").read_text().startswith("# DEPTHWISE_CONV_2D crashes with rounding_delegate.so")


def test_resume_goes_on_with_the_search_of_a_run_folder(net: Path, tmp_path: Path, faulty_delegate: Path) -> None:
    fault = planted(faulty_delegate, "tensor:total;fault:scale;amount:1.2")
    folder, output = tmp_path / "run", tmp_path / "resumed.json"
    _, cut_short = locate(net, *fault, f"--run_dir={folder}", "--max_compiles=4")
    again = evaltools_here("resume", str(folder), "--max_compiles=3", f"--output={output}", "--progress=json")
    assert (again.code, read(output)["stopped"]) == (0, "--max_compiles=3 was reached"), again.err
    resumed = evaltools_here("resume", str(folder), "--max_compiles=0", f"--output={output}")
    assert resumed.code == 0, resumed.err
    assert resumed.out.startswith("operator at fault: #3 ADD")
    found, (_, whole) = read(output), locate(net, *fault)
    for part in ("kind", "at_fault", "suspects", "operators", "outputs"):
        assert found[part] == whole[part], part
    assert found["compiles"] == whole["compiles"] - cut_short["compiles"] - 3
    refused = evaltools_here("resume", str(folder), "--num_runs=3")
    assert (refused.code, "a run goes on with the flags that it began with" in refused.err) == (2, True)
    merged = evaltools_here("merge", str(folder))
    assert (merged.code, "give evaltools resume its folder" in merged.err) == (2, True)


@pytest.mark.parametrize(("flags", "named"), [("--operators=2-4", [2, 3, 4]), ("--operators=stem:project", [1, 2])])
def test_a_part_of_the_model(net: Path, flags: str, named: list[int]) -> None:
    _, found = locate(net, "--use_xnnpack", flags)
    assert [operator["index"] for operator in found["operators"]] == named


def test_a_reference_that_alone_differs_is_the_odd_one_out(tmp_path: Path) -> None:
    path = tmp_path / "reused.tflite"
    path.write_bytes(locate_models.reused_buffer())
    completed, found = locate(path, "--use_xnnpack")
    assert completed.code == 0
    assert found["kind"] == "the reference is the odd one out", completed.out
    assert completed.out.startswith("the reference is the odd one out: output 'negated' differs")
    assert found["suspects"] == []


def test_halves_that_are_rounded_to_either_side_are_no_fault(tmp_path: Path, faulty_delegate: Path) -> None:
    """XNNPACK rounds them up, the plain kernels away from 0; whole numbers that are a step off are another matter."""
    path = tmp_path / "halves.tflite"
    path.write_bytes(locate_models.halves())
    completed, found = locate(path, "--use_xnnpack")
    assert found["outputs"][0]["accumulated"] == 1
    assert found["operators"][0]["status"] == "right", completed.out
    _, found = locate(path, *planted(faulty_delegate, "tensor:given;fault:step;amount:2"))
    assert found["at_fault"] == [0]


@pytest.mark.parametrize("tensor", ["spread", "total"])
def test_every_second_value_a_step_down_is_no_rounding(tensor: str, tmp_path: Path, faulty_delegate: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    fault = "fault:step;amount:-1;stride:2"
    completed, found = locate(path, *planted(faulty_delegate, f"tensor:{tensor};{fault}"))
    assert found["at_fault"] == [locate_models.NET_TENSORS.index(tensor)], completed.out
    why = found["operators"][locate_models.NET_TENSORS.index(tensor)]["why"]
    assert "off to one side by at least 0." in why
    _, found = locate(path, *planted(faulty_delegate, f"tensor:{tensor};{fault[:-1]}9"))
    assert found["at_fault"] == [], "every ninth value is within what rounding does"


def test_whether_an_error_reaches_the_outputs_is_only_said_where_that_was_tried(
    tmp_path: Path, faulty_delegate: Path
) -> None:
    """What follows hides it; where a limit leaves the rest of the model untried, nothing is said."""
    path = tmp_path / "hidden.tflite"
    path.write_bytes(locate_models.divided(hidden=True))
    completed, found = locate(path, "--use_xnnpack")
    assert found["suspects"][0]["reaches_output"] == "no"
    assert "its error does not reach the model's outputs" in completed.out
    for compiles in range(4, found["compiles"], 3):
        completed, cut_short = locate(path, "--use_xnnpack", f"--max_compiles={compiles}")
        reaches = [suspect.get("reaches_output") for suspect in cut_short["suspects"]]
        assert ("does not reach" in completed.out) == ("no" in reaches)
        assert reaches in ([], [None], ["no"])
        tried = sum(operator["status"] != "not tried" for operator in cut_short["operators"])
        assert reaches != ["no"] or tried == 4


def a_chain(length: int) -> bytes:
    """So many operators one behind another, all exact."""
    graph, shape = Graph(), (1, 4)
    first = last = graph.tensor("x", shape)
    for place in range(length):
        last = graph.node("NEG", [last], graph.tensor(f"t{place}", shape), "NegOptions")
    return graph.to_bytes([first], [last])


def test_operators_that_are_left_out_of_the_table_are_right_only_where_they_were_tried(tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(a_chain(30))
    completed, found = locate(path, "--use_xnnpack", "--max_compiles=12")
    statuses = [operator["status"] for operator in found["operators"]]
    tried = 30 - statuses.count("not tried")
    assert 0 < tried < 24
    assert f"and {tried} more operators, all in the JSON result: {tried} right" in completed.err
    assert len(re.findall("not tried", completed.err)) == statuses.count("not tried")
    completed, found = locate(path, "--use_xnnpack")
    assert "and 24 more operators, all in the JSON result: 24 right" in completed.err


def test_inputs_are_those_of_diff_also_where_the_model_overflows(tmp_path: Path) -> None:
    path = tmp_path / "divided.tflite"
    path.write_bytes(locate_models.divided(hidden=False))
    _, found = locate(path, "--use_xnnpack")
    compared = evaltools_here("diff", str(path), "--use_xnnpack", "--num_runs=4", "--progress=none")
    assert found["given"].partition(": ")[2] in compared.err + compared.out


def test_the_operator_that_a_delegate_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "seven.tflite"
    path.write_bytes(locate_models.of_seven_dimensions())
    completed, found = locate(path, "--use_xnnpack")
    assert (found["kind"], found["at_fault"]) == ("refused", [1]), completed.err
    assert completed.out.startswith("the delegate refuses #1 FULLY_CONNECTED, and therefore the model: ")
    compared = evaltools_here("diff", str(path), "--use_xnnpack", "--progress=none")
    assert f"next: evaltools locate {path} --use_xnnpack=true says which operator it refuses" in compared.err


@pytest.mark.parametrize("model", [locate_models.int16_tanh, locate_models.where_set])
def test_where_the_model_is_the_reason_the_next_step_is_to_look_into_it(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model())
    compared = evaltools_here("diff", str(path), "--use_xnnpack", "--progress=none")
    assert f"next: evaltools inspect {path} says" in compared.err
    assert "evaltools doctor" not in compared.err


def test_a_delegate_that_takes_nothing_is_no_answer(tmp_path: Path, rounding_delegate: Path) -> None:
    completed, found = locate(written(tmp_path, "quantized net"), *planted(rounding_delegate, "precision:fp16"))
    assert completed.code == 3
    assert found["kind"] == "not decided"
    assert "took none of the 8 nodes" in completed.out


def test_operators_decide_where_the_size_of_a_difference_does_not(tmp_path: Path, faulty_delegate: Path) -> None:
    model = written(tmp_path, "quantized net")
    output = tmp_path / "diff.json"
    completed = evaltools_here(
        "diff", str(model), *planted(faulty_delegate, "tensor:logits;fault:step;amount:4"),
        "--num_runs=20", "--progress=none", "--quiet", f"--output={output}",
    )  # fmt: skip
    assert completed.code == 0, completed.err
    (verdict,) = read_result(output).rows[1].verdicts
    assert (verdict.kind, verdict.texts[0]) == ("diverged", "operator at fault: #6 FULLY_CONNECTED")
    assert "of the elements are equal" in verdict.texts[1]


def test_a_diff_looks_for_the_operator_where_it_differs(net: Path, faulty_delegate: Path) -> None:
    output = net.with_suffix(".json")
    completed = evaltools_here(
        "diff", str(net), *planted(faulty_delegate, "tensor:project;fault:scale;amount:1.5"),
        "--config=right: use_xnnpack=true", "--locate", "--num_runs=4", "--noise_floor_runs=1", "--progress=none",
        f"--output={output}",
    )  # fmt: skip
    assert completed.code == 0, completed.err
    assert "operator at fault: #2 CONV_2D" in completed.err
    found = read(output.with_suffix(".locate.json"))
    assert found["name"] == "test"
    assert found["at_fault"] == [2]
    assert not output.with_name("net.locate.right.json").exists()
    assert "--locate" not in completed.err


def test_numbers_that_are_none_blame_nobody(net: Path, tmp_path: Path) -> None:
    picture = np.zeros(locate_models.NET_SHAPE, np.float32)
    picture[0, 3, 3, 1] = np.nan
    np.save(tmp_path / "nan.npy", picture)
    _, found = locate(net, "--use_xnnpack", f"--input_files={tmp_path / 'nan.npy'}")
    assert found["suspects"] == []
    assert found["operators"][0]["status"] == "no evidence"
    assert found["operators"][0]["why"] == "what it is fed holds NaN or infinity"


def test_the_answer_is_printed_before_a_page_that_cannot_be_written(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_sources: object) -> None:
        raise UsageError("no page")

    monkeypatch.setattr("evaltools.report.page.file.page_of", broken)
    page = net.with_suffix(".html")
    completed, found = locate(net, "--use_xnnpack=true", f"--report={page}")
    assert completed.code == 5
    assert "no difference" in completed.out
    assert f"{page} cannot be written: no page" in completed.err
    assert found["kind"] == "no difference"
    assert not page.exists()
