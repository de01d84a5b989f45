"""What earlier versions had, with what to do instead. The message about an unknown flag, command or task says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

GONE: Final[Mapping[str, str]] = {
    "adb_port": "adb follows ANDROID_ADB_SERVER_PORT",
    "cool_down_timeout": "--cool_down waits for ten minutes at most",
    "disagreements_path": "--report=page.html shows the pictures that changed",
    "drawn_examples": "runs on devices and on a cluster share all examples",
    "in_lowest_tenth": "evaltools power is about examples in a random order",
    "input_cache": "pictures stored in the size of the model's input are read fastest",
    "input_cache_gb": "no inputs are kept any more; leave it out",
    "keep_on_device": "evaltools device clean deletes what runs keep there",
    "limit": "hold the result to it with evaltools gate RESULT.json --limit=...",
    "method": "evaltools locate takes each look that it needs; --operators=FIRST-LAST looks at fewer operators",
    "npu_compiler_plugin_dir": "it has the native name now, --compiler_plugin_library_path",
    "npu_dispatch_library_dir": "it has the native name now, --dispatch_library_path",
    "npu_options": "each option is a flag of its own, as --qualcomm_optimization_level=O2",
    "reference_run": "the reference runs the examples that the others run",
    "run_timeout": "it is --example_timeout, as in every command",
    "sample": "give --num_images=N --order=random, and evaltools power says how large N must be",
    "sample_seed": "give --order=random --seed=S",
    "stop": "give --num_images=N --order=random, and evaltools power says how large N must be",
    "try_advice": "the line on what takes the time names the flags that would use idle cores; run once with them",
}
"""Flags of any command."""
COMMANDS_GONE: Final[Mapping[str, str]] = {
    "baseline": "a saved result is the baseline; evaltools gate NEW.json --against=OLD.json compares with it",
}
"""Commands."""
FORMATS_GONE: Final[Mapping[str, str]] = {
    "voc": "other tools turn Pascal VOC's XML into COCO's JSON, which evaltools coco reads, or into YOLO's files",
}
"""What ``evaltools convert`` took."""
_NUMERICS: Final = (
    "LiteRT's numerics checks are not run any more; --native_binary=run_eval, TensorFlow's inference_diff, compares "
    "outputs on devices"
)
_NO_PROFILE: Final = "evaltools.benchmark(..., enable_op_profiling=True) has the times of a model and of its operators"
NAMES_GONE: Final[Mapping[str, str]] = {
    "Benchmark": "what evaltools.benchmark gives is an evaltools.Result",
    "Rows": "what every command gives is an evaltools.Result",
    "Suite": "what evaltools.suite gives is an evaltools.Result; evaltools.gate(suite, against=earlier) compares two",
    "Profile": _NO_PROFILE,
    "profile": _NO_PROFILE,
}
"""What was in ``import evaltools``."""
PROGRAMS_GONE: Final[Mapping[str, str]] = {"gpu_numerics_check": _NUMERICS, "npu_numerics_check": _NUMERICS}
"""Programs for ``--native_binary``, by the names of their files."""
FILES_GONE: Final[Mapping[str, str]] = dict.fromkeys(
    (".yaml", ".yml"),
    "a task is a function with @evaltools.task, ten lines of Python, and is run as FILE.py:NAME",
)
"""Files that were tasks, by the ends of their names."""
_EVERY_DEVICE: Final = "every device does everything, and a result of several compares them; leave it out"
_ONE_MACHINE: Final = "a suite runs on one machine; give each machine a suite of fewer models"
_GATE_SUITES: Final = "evaltools gate NEW.json --against=OLD.json compares two suites as it does any two results"
_NO_SEAL: Final = "a run folder is carried out as a command is, so take only those of people you know; leave it out"
GONE_OF: Final[Mapping[str, Mapping[str, str]]] = {
    "benchmark": {"cpu_affinity": "taskset -c CPUS evaltools benchmark ... binds it, as any program"},
    "capture": {"output_folder": "--output_file_path names the trace; speed and memory are in the result of the run"},
    "device": {
        "epsilon": _NUMERICS,
        "input_dir": _NUMERICS,
        "npu_model": _NUMERICS,
        "part_timeout": "--device_timeout says for how long a device may print nothing",
        "parts": _EVERY_DEVICE,
        "split": _EVERY_DEVICE,
    },
    "doctor": dict.fromkeys(
        ("driver", "folder", "install"),
        "apt install mesa-vulkan-drivers brings a GPU in software, pip install 'evaltools[npu-qualcomm]' emulated NPUs",
    ),
    "inspect": {"npu_vendor": "--npu_soc is about Qualcomm's chips, whose compiler runs here; leave it out"},
    "power": {"margin": "evaltools power is about examples in a random order"},
    "resume": {"trust": _NO_SEAL},
    "suite": {
        "against": _GATE_SUITES,
        "executor": _ONE_MACHINE,
        "margin": _GATE_SUITES,
        "operators": "evaltools locate says which operators of a model are supported and right",
        "ray_address": _ONE_MACHINE,
        "shard_count": _ONE_MACHINE,
        "shard_index": _ONE_MACHINE,
        "workers": "each job of a suite takes the cores that there are; leave it out",
        "slower": _GATE_SUITES,
    },
}
"""Flags of one command, which other commands may have."""


def instead_of(word: str, command: str = "") -> str:
    """What to do instead of what is gone, a flag of every command or of this one, or a file; empty for anything else.

    >>> instead_of("run_timeout"), instead_of("imagenet")
    ('it is --example_timeout, as in every command', '')
    """
    return GONE_OF.get(command, {}).get(word) or GONE.get(word) or FILES_GONE.get(PurePath(word).suffix, "")
