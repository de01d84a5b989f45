"""The interpreter of ai-edge-litert: current kernels, XNNPACK for float and quantised models."""

from typing import Final

from evaltools.delegates import LITERT
from evaltools.runtime.interpreter import InterpreterRuntime

RUNTIME: Final = InterpreterRuntime(
    name=LITERT,
    package="ai-edge-litert",
    module="ai_edge_litert.interpreter",
    install="pip install ai-edge-litert",
)
