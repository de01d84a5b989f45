"""The interpreter of tflite-runtime: the last release is 2.14, for Linux and Python up to 3.11."""

import importlib.metadata
from typing import Final

from evaltools.delegates import TFLITE_RUNTIME
from evaltools.errors import ConfigurationUnavailable
from evaltools.runtime.interpreter import InterpreterRuntime


def _check(version: str) -> None:
    """With NumPy 2 the module imports, and then fails to build an interpreter with an obscure SystemError."""
    numpy = importlib.metadata.version("numpy")
    if int(numpy.split(".")[0]) >= 2:
        message = (
            f"tflite-runtime {version} was built for NumPy 1 and fails with NumPy {numpy}; "
            "pip install 'numpy<2', or use ai-edge-litert: --runtime=litert"
        )
        raise ConfigurationUnavailable(message)


RUNTIME: Final = InterpreterRuntime(
    name=TFLITE_RUNTIME,
    package="tflite-runtime",
    module="tflite_runtime.interpreter",
    install="pip install tflite-runtime (Linux, Python 3.11 or older), or use --runtime=litert",
    check=_check,
)
