"""Writes sum.tflite: one SUM over 112x112 values, which fp16 cannot hold; docs/locate.md finds that."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl

axes = tfl.BufferT()
axes.data = np.array([1, 2], np.int32).view(np.uint8)


def tensor(name, shape, kind, buffer):
    made = tfl.TensorT()
    made.name, made.shape, made.type, made.buffer = name, shape, kind, buffer
    return made


code = tfl.OperatorCodeT()
code.builtinCode = code.deprecatedBuiltinCode = tfl.BuiltinOperator.SUM
operator = tfl.OperatorT()
operator.inputs, operator.outputs = [0, 1], [2]
operator.builtinOptionsType, operator.builtinOptions = tfl.BuiltinOptions.ReducerOptions, tfl.ReducerOptionsT()

graph = tfl.SubGraphT()
graph.tensors = [
    tensor("image", [1, 112, 112, 1], tfl.TensorType.FLOAT32, 0),
    tensor("axes", [2], tfl.TensorType.INT32, 1),
    tensor("sum", [1, 1], tfl.TensorType.FLOAT32, 0),
]
graph.inputs, graph.outputs, graph.operators = [0], [2], [operator]
model = tfl.ModelT()
model.version, model.subgraphs, model.operatorCodes, model.buffers = 3, [graph], [code], [tfl.BufferT(), axes]

builder = flatbuffers.Builder(1024)
builder.Finish(model.Pack(builder), b"TFL3")
with open("sum.tflite", "wb") as file:
    file.write(builder.Output())
