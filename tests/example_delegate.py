"""Delegates for tests: the C example of this repository, and one written in Python.

Both are real ``TfLiteDelegate`` objects that the interpreters of tflite_runtime and
ai-edge-litert accept, so that tests see what a delegate on a device would do.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

SOURCE_DIR = Path(__file__).resolve().parents[1] / "examples" / "external_delegate"
COMPILERS = ("cc", "gcc", "clang")


class CompilerMissing(RuntimeError):
    """There is no C compiler to build the example delegate with."""


def build_delegate(name: str, target_dir: Path, sources: Path = SOURCE_DIR) -> Path:
    """Compile a delegate, such as ``rounding_delegate`` or ``faulty_delegate``, into ``target_dir``.

    Returns the path of the shared library. Raises :class:`CompilerMissing` if none of
    :data:`COMPILERS` is on the PATH, RuntimeError with the compiler's text if it fails.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        msg = f"no C compiler found on the PATH, looked for {', '.join(COMPILERS)}"
        raise CompilerMissing(msg)
    library = target_dir / f"{name}.so"
    source = sources / f"{name}.c"
    flags = ["-std=c11", "-ffp-contract=off", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [compiler, *flags, f"-I{SOURCE_DIR}", "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"{' '.join(command)} failed:\n{done.stderr}"
        raise RuntimeError(msg)
    return library


OK, ERROR = 0, 1
FLOAT32 = 1
DYNAMIC = 4
ADD, DELEGATE = 0, 51
NO_ACTIVATION = 0


class TfLiteTensor(ctypes.Structure):
    """The struct of the same name in examples/external_delegate/tflite_delegate_abi.h."""

    type: int
    data: int | None
    dims: int | None
    allocation_type: int
    bytes: int
    _fields_ = (
        ("type", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("allocation_type", ctypes.c_int32),
        ("bytes", ctypes.c_size_t),
        ("allocation", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("delegate", ctypes.c_void_p),
        ("buffer_handle", ctypes.c_int),
        ("data_is_stale", ctypes.c_bool),
        ("is_variable", ctypes.c_bool),
        ("quantization_type", ctypes.c_int32),
        ("quantization_params", ctypes.c_void_p),
        ("sparsity", ctypes.c_void_p),
        ("dims_signature", ctypes.c_void_p),
    )


class TfLiteNode(ctypes.Structure):
    """The beginning of TfLiteNode; nodes are only seen through pointers."""

    inputs: int | None
    outputs: int | None
    user_data: int
    builtin_data: int
    _fields_ = (
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("intermediates", ctypes.c_void_p),
        ("temporaries", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("builtin_data", ctypes.c_void_p),
    )


class TfLiteRegistration(ctypes.Structure):
    """The functions of an op."""

    builtin_code: int
    _fields_ = (
        ("init", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
        ("prepare", ctypes.c_void_p),
        ("invoke", ctypes.c_void_p),
        ("profiling_string", ctypes.c_void_p),
        ("builtin_code", ctypes.c_int32),
        ("custom_name", ctypes.c_char_p),
        ("version", ctypes.c_int),
        ("registration_external", ctypes.c_void_p),
        ("async_kernel", ctypes.c_void_p),
        ("inplace_operator", ctypes.c_uint64),
    )


class TfLiteDelegate(ctypes.Structure):
    """What the interpreter is given a pointer to."""

    _fields_ = (
        ("data_", ctypes.c_void_p),
        ("Prepare", ctypes.c_void_p),
        ("CopyFromBufferHandle", ctypes.c_void_p),
        ("CopyToBufferHandle", ctypes.c_void_p),
        ("FreeBufferHandle", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("opaque_delegate_builder", ctypes.c_void_p),
    )


class TfLiteDelegateParams(ctypes.Structure):
    """The partition that a kernel is to run."""

    nodes_to_replace: int | None
    output_tensors: int | None
    _fields_ = (
        ("delegate", ctypes.c_void_p),
        ("nodes_to_replace", ctypes.c_void_p),
        ("input_tensors", ctypes.c_void_p),
        ("output_tensors", ctypes.c_void_p),
    )


_Init = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Status2 = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_PointerOut = ctypes.POINTER(ctypes.c_void_p)


class TfLiteContext(ctypes.Structure):
    """The beginning of TfLiteContext."""

    tensors: int
    GetExecutionPlan: Any
    ReportError: Any
    GetNodeAndRegistration: Any
    ReplaceNodeSubsetsWithDelegateKernels: Any
    _fields_ = (
        ("tensors_size", ctypes.c_size_t),
        ("GetExecutionPlan", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _PointerOut)),
        ("tensors", ctypes.c_void_p),
        ("impl_", ctypes.c_void_p),
        ("ResizeTensor", ctypes.c_void_p),
        ("ReportError", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)),
        ("AddTensors", ctypes.c_void_p),
        (
            "GetNodeAndRegistration",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, _PointerOut, _PointerOut),
        ),
        (
            "ReplaceNodeSubsetsWithDelegateKernels",
            ctypes.CFUNCTYPE(
                ctypes.c_int,
                ctypes.c_void_p,
                TfLiteRegistration,
                ctypes.c_void_p,
                ctypes.c_void_p,
            ),
        ),
    )


def _int_array(values: list[int]) -> ctypes.Array[ctypes.c_int]:
    """A TfLiteIntArray: the length, then the values."""
    return (ctypes.c_int * (len(values) + 1))(len(values), *values)


def _read_ints(address: int | None) -> list[int]:
    """The values of the TfLiteIntArray at ``address``."""
    length = ctypes.c_int.from_address(address or 0).value
    values = (ctypes.c_int * (length + 1)).from_address(address or 0)
    return list(values[1:])


def _address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class _Graph:
    """Typed access to what a TfLiteContext knows."""

    def __init__(self, context_address: int) -> None:
        self.address = context_address
        self._context = TfLiteContext.from_address(context_address)

    def execution_plan(self) -> list[int]:
        plan = ctypes.c_void_p()
        self._check(self._context.GetExecutionPlan(self.address, ctypes.byref(plan)))
        return _read_ints(plan.value)

    def node(self, index: int) -> tuple[TfLiteNode, TfLiteRegistration]:
        node, registration = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(
            self._context.GetNodeAndRegistration(self.address, index, ctypes.byref(node), ctypes.byref(registration))
        )
        return (
            TfLiteNode.from_address(node.value or 0),
            TfLiteRegistration.from_address(registration.value or 0),
        )

    def tensor(self, index: int) -> TfLiteTensor:
        size = ctypes.sizeof(TfLiteTensor)
        return TfLiteTensor.from_address(self._context.tensors + index * size)

    def replace(self, nodes: list[int], registration: TfLiteRegistration, delegate: int) -> None:
        chosen = _int_array(nodes)
        self._check(
            self._context.ReplaceNodeSubsetsWithDelegateKernels(
                self.address, registration, ctypes.addressof(chosen), delegate
            )
        )

    def report(self, message: str) -> None:
        self._context.ReportError(self.address, message.replace("%", "%%").encode())

    def _check(self, status: int) -> None:
        if status != OK:
            msg = f"TensorFlow Lite answered with status {status}"
            raise RuntimeError(msg)


def _status_of(graph: _Graph, work: Callable[[], None]) -> int:
    """Do ``work``; an exception cannot leave a C callback, so it becomes an error status."""
    try:
        work()
    except Exception as error:
        graph.report(f"PythonDelegate: {error}")
        return ERROR
    return OK


class _Addition(Struct):
    """The tensors of one ADD node."""

    left: int
    right: int
    output: int


class _Kernel(Struct):
    """One partition; ``buffers`` holds the tensors that stay within it."""

    additions: list[_Addition]
    buffers: dict[int, npt.NDArray[np.float32]] = field(default_factory=dict)

    def array(self, graph: _Graph, index: int) -> npt.NDArray[np.float32]:
        """The values of a tensor; they can be written."""
        if index in self.buffers:
            return self.buffers[index]
        tensor = graph.tensor(index)
        floats = ctypes.cast(tensor.data or 0, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(floats, shape=tuple(_read_ints(tensor.dims)))


class _Subgraph(Struct):
    """What the delegate took from one subgraph, at its last Prepare."""

    selected: int
    partitions: int = 0


class PythonDelegate:
    """A TfLiteDelegate in Python: takes over float32 ADD and adds with NumPy.

    Pass it to an interpreter in ``experimental_delegates``. It takes ADD nodes whose three
    tensors have the same shape and which have no fused activation; ``dtype`` is what operands
    and sums are rounded to (``np.float32``: not at all). ``fail`` makes it fail when it is
    applied ("prepare") or when it runs ("invoke").
    """

    def __init__(
        self,
        dtype: npt.DTypeLike = np.float16,
        fail: Literal["prepare", "invoke"] | None = None,
    ) -> None:
        self.invocations = 0
        self._dtype = np.dtype(dtype)
        self._fail = fail
        self._subgraphs: dict[int, _Subgraph] = {}
        self._kernels: dict[int, _Kernel] = {}
        self._callbacks = (
            _Init(self._kernel_init),
            _Status2(self._kernel_invoke),
            _Status2(self._prepare),
        )
        init, invoke, prepare = map(_address_of, self._callbacks)
        self._registration = TfLiteRegistration(
            init=init,
            invoke=invoke,
            builtin_code=DELEGATE,
            custom_name=b"PythonDelegate",
            version=1,
        )
        self._delegate = TfLiteDelegate(Prepare=prepare)

    def _get_native_delegate_pointer(self) -> int:
        """What the interpreters ask a delegate for."""
        return ctypes.addressof(self._delegate)

    @property
    def selected(self) -> int:
        """The number of nodes taken over."""
        return sum(subgraph.selected for subgraph in self._subgraphs.values())

    @property
    def partitions(self) -> int:
        """The number of DELEGATE nodes that these became."""
        return sum(subgraph.partitions for subgraph in self._subgraphs.values())

    def _prepare(self, context: int, delegate: int) -> int:
        graph = _Graph(context)
        return _status_of(graph, lambda: self._choose_nodes(graph, delegate))

    def _choose_nodes(self, graph: _Graph, delegate: int) -> None:
        self._fail_if_asked("prepare")
        chosen = [index for index in graph.execution_plan() if self._is_ours(graph, index)]
        self._subgraphs[graph.address] = _Subgraph(selected=len(chosen))
        graph.replace(chosen, self._registration, delegate)

    def _is_ours(self, graph: _Graph, node_index: int) -> bool:
        node, registration = graph.node(node_index)
        if registration.builtin_code != ADD:
            return False
        activation = ctypes.c_int32.from_address(node.builtin_data).value
        indices = _read_ints(node.inputs) + _read_ints(node.outputs)
        tensors = [graph.tensor(index) for index in indices]
        shapes = [_read_ints(tensor.dims) for tensor in tensors]
        return (
            activation == NO_ACTIVATION
            and all(tensor.type == FLOAT32 for tensor in tensors)
            and all(tensor.allocation_type != DYNAMIC for tensor in tensors)
            and all(shape == shapes[0] for shape in shapes)
        )

    def _kernel_init(self, context: int, buffer: int, _length: int) -> int:
        """Describe a partition; the key of its kernel becomes the node's user_data."""
        graph = _Graph(context)
        params = TfLiteDelegateParams.from_address(buffer)
        kernel = _Kernel(additions=[])
        for node_index in _read_ints(params.nodes_to_replace):
            node, _ = graph.node(node_index)
            left, right = _read_ints(node.inputs)
            (output,) = _read_ints(node.outputs)
            kernel.additions.append(_Addition(left, right, output))
            if output not in _read_ints(params.output_tensors):
                shape = _read_ints(graph.tensor(output).dims)
                kernel.buffers[output] = np.zeros(shape, np.float32)
        self._subgraphs[context].partitions += 1
        key = len(self._kernels) + 1
        self._kernels[key] = kernel
        return key

    def _kernel_invoke(self, context: int, node_address: int) -> int:
        graph = _Graph(context)
        key = TfLiteNode.from_address(node_address).user_data
        return _status_of(graph, lambda: self._run(graph, self._kernels[key]))

    def _run(self, graph: _Graph, kernel: _Kernel) -> None:
        self._fail_if_asked("invoke")
        for addition in kernel.additions:
            left = kernel.array(graph, addition.left).astype(self._dtype)
            right = kernel.array(graph, addition.right).astype(self._dtype)
            kernel.array(graph, addition.output)[...] = left + right
        self.invocations += 1

    def _fail_if_asked(self, step: str) -> None:
        if self._fail == step:
            msg = f"{step} fails, as asked"
            raise RuntimeError(msg)
