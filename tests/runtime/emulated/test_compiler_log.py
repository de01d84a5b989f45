"""What the compiler's log says, from lines as ai-edge-litert 2.3.0 with QAIRT 2.51 prints them."""

from __future__ import annotations

from evaltools.model.contents import Graph, GraphTensor, Operation
from evaltools.runtime.emulated.compiler_log import CompilerReport, LeftOperator, read_log, why_refused

ERRORS = """\
INFO: [compiler_plugin.cc:948] Applying plugin with SDK version: v2.51.0.260929181845
ERROR: [qnn_manager.cc:480]\x20
QNN op validation failed: 'Conv2d_0' (type=Conv2d)
  Inputs:
    [0] name="in; dtype=x" dtype=QNN_DATATYPE_FLOAT_32 dims=[1,49,10,1] (no quantization)
    [1] name="5_qnn" dtype=QNN_DATATYPE_SFIXED_POINT_8 dims=[10,4,1,64] per-tensor-quant
  Outputs:
    [0] name="4_qnn" dtype=QNN_DATATYPE_FLOAT_32 dims=[1,25,5,64] (no quantization)
  QNN error=3110. See the QNN validator log lines above for the specific reason.
ERROR: [qnn_compiler_plugin.cc:538]\x20
LiteRT Op #0 'Conv2d' (code=3) is not supported in Qualcomm Compiler.
ERROR: [qnn_compiler_plugin.cc:538]\x20
LiteRT Op #7 'FloorDiv' (code=90) is not supported in Qualcomm Compiler.
INFO: [plugin.cc:742] Partitioned subgraph<0>, selected 8 ops, from a total of 13 ops. resulted in 5 partitions.
"""
VALIDATOR = """\
     0.0ms [  INFO ]   <I> QnnBackend_validateOpConfig started, backend = 0x1
     0.0ms [WARNING]   <W> Output quantization range is outside from ReluMinMax limits.
     0.0ms [  INFO ]   <I> QnnBackend_validateOpConfig started, backend = 0x1
     0.0ms [ ERROR ]   <E> Unsupported datatypes for the HTP Op 'Conv2d' in the node 'Conv2d_0'. There is a mismatch.
   in[0]:QNN_DATATYPE_FLOAT_32     0.0ms [ ERROR ]   <E> Supported I/O datatype sets for the configuration: FP16
     0.0ms [ ERROR ]   <E> QnnBackend_validateOpConfig failed 3110
     0.0ms [ ERROR ]   <E> Failed to validate op Conv2d_0 with error 0xc26
"""


def test_what_is_taken_and_why_the_rest_is_not() -> None:
    why = "Unsupported datatypes for the HTP Op 'Conv2d' (float32, int8 -> float32)"
    left = (LeftOperator(0, why), LeftOperator(7, "Qualcomm has no such operator"))
    assert read_log(ERRORS, VALIDATOR) == CompilerReport(13, 8, 5, left, "2.51.0", wide_ranges=1)


def test_a_log_without_a_count_is_no_report() -> None:
    assert read_log("ERROR: [model_load.cc:316] Variable tensors not yet supported.\n", "") is None


def graph_of(*operators: Operation, **dtypes: str) -> Graph:
    """A graph of tensors with these names and types, in order; those named ``state`` are variables."""
    tensors = tuple(
        GraphTensor(place, name, dtype, (1,), (1,), is_variable=name == "state")
        for place, (name, dtype) in enumerate(dtypes.items())
    )
    return Graph(tensors, operators, (0,), (len(tensors) - 1,))


def test_a_refusal_of_the_whole_model_names_the_operator_its_types_and_what_to_do() -> None:
    lstm, gather = Operation(0, "LSTM", (0, 1), (2,)), Operation(1, "GATHER", (2, 3), (4,))
    graph = graph_of(lstm, gather, x="float32", state="float32", y="float32", places="int32", z="complex64")
    made = ' 0.0ms [ ERROR ]   <E> "a/Gather_8_LiteRt_OpId_1" generated: could not create op\n'
    found = why_refused(graph, "", made)
    assert found.startswith("#1 GATHER (float32, int32 -> complex64): could not create op; evaltools inspect MODEL")
    assert why_refused(graph, "", made.replace("Id_1", "Id_0")).startswith("Gather: could not create op")
    found = why_refused(graph, "ERROR: [model_load.cc:316] Variable tensors not yet supported.\n", "")
    assert found.startswith(
        "Variable tensors not yet supported: #0 LSTM (float32 -> float32) keeps a state from run to run"
    )
    assert "convert the model with its state as inputs and outputs" in found
    found = why_refused(graph, "ERROR: [qnn_compose_graph.cc:220] QNN Unsupported data type, litert type: 8\n", "")
    assert found.startswith("#1 GATHER (float32, int32 -> complex64) has the type complex64, which no chip takes")
    assert why_refused(graph, "ERROR: [plugin.cc:1] Something else", "") == ""
