"""The GPU of LiteRT's ``CompiledModel``: a WebGPU accelerator on Vulkan, Metal or Direct3D."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.compiled.software_gpu import take_software_gpu
from evaltools.runtime.compiled.vulkan_drivers import describe_drivers

_SOFTWARE: Final = (
    "a GPU in software is enough for numbers: evaltools doctor --install=software-gpu (docs/accelerators.md)"
)
_DYNAMIC: Final = re.compile(r"only supports static-sized tensors .*\(tensor#(\d+) is a dynamic-sized tensor\)")
_NOT_APPLIED: Final = "Failed to modify graph with delegate"


def prepare(_settings: DelegateSettings) -> None:
    """Take the GPU in software, where one was installed and there is no other."""
    take_software_gpu(os.environ)


def environment(_settings: DelegateSettings | None) -> Mapping[str, str]:
    """Where libraries are. A folder without any stands for those of NPUs, which would be looked for and loaded."""
    spec = importlib.util.find_spec("ai_edge_litert")
    package, none = str(Path(str(spec.origin)).parent) if spec else "", str(Path(__file__).parent)
    return {"runtime_path": package, "dispatch_library_path": none, "compiler_plugin_path": none}


def set_options(options: Any, configuration: Configuration) -> None:
    """``benchmark_mode`` lets a run end when its work is done; without it, a run ends when the work is enqueued."""
    gpu, settings = options.gpu_options, configuration.delegates
    gpu.enforce_f32 = not settings.value("gpu_precision_loss_allowed")
    gpu.benchmark_mode = True
    gpu.infinite_float_capping = bool(settings.value("gpu_infinite_float_capping"))
    gpu.allow_src_quantized_fc_conv_ops = bool(settings.value("gpu_allow_src_quantized_fc_conv_ops"))


def explain(messages: str) -> str:
    """What is missing and what to do, from what was printed; empty where that says nothing."""
    if "Couldn't load Vulkan" in messages:
        return (
            f"WebGPU found no Vulkan loader (libvulkan.so.1). Install libvulkan1 and a driver of the GPU; {_SOFTWARE}"
        )
    if "No adapters found" in messages:
        drivers = f": {describe_drivers(os.environ)}" if sys.platform == "linux" else ""
        return (
            f"WebGPU found no adapter: a Vulkan loader is there, but no driver that it can use{drivers}. "
            f"Without a GPU {_SOFTWARE}"
        )
    dynamic = _DYNAMIC.search(messages)
    if dynamic is not None and _NOT_APPLIED in messages:
        return (
            f"the GPU takes models of fixed sizes only, and the size of tensor {dynamic[1]} of this one is known only "
            "when it runs; convert the model with fixed sizes, or leave --use_gpu out"
        )
    return first_error(messages)
