"""The script of a bundle: it needs the runtime's wheel and NumPy, and says whether the fault is there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.delegates import COMPILED, LITERT, TFLITE_RUNTIME
from evaltools.delegates.gpu import GPU
from evaltools.delegates.npu import NPU
from evaltools.delegates.npu_settings import Field, fields
from evaltools.errors import EvaltoolsError
from evaltools.runtime.compiled.xnnpack import xnnpack_flags

FAILING, PASSING = "failing.tflite", "passing.tflite"
PASSING_INPUT: Final = "passing_input_"
_INPUT: Final = "input_"
_PACKAGES: Final = {LITERT: "ai-edge-litert", TFLITE_RUNTIME: "tflite-runtime", COMPILED: "ai-edge-litert"}
_MODULES: Final = {LITERT: "ai_edge_litert.interpreter", TFLITE_RUNTIME: "tflite_runtime.interpreter"}
_RESOLVERS: Final = {
    "default": "AUTO",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
_KERNEL_MODES: Final = {"default": "DELEGATE", "builtin": "BUILTIN"}
_LEFT_BEHIND: Final = (
    "        run([np.zeros_like(values) for values in inputs])  # what a run leaves behind shows in the next one\n"
)
_LIBRARY_FLAG: Final = """\
    parser.add_argument("--library", action="append", metavar="PATH", help="where each of LIBRARIES lies, in order")
    given = parser.parse_args().library or LIBRARIES
    if len(given) != len(LIBRARIES):
        parser.error(f"--library must be given once for each of {', '.join(LIBRARIES)}; got {len(given)}")
    LIBRARIES[:] = given
    missing = [path for path in LIBRARIES if not Path(path).exists()]
    if missing:
        parser.error(f"no such file here: {', '.join(missing)}; say where yours is, --library=PATH for each, in order")
"""
_NPU_FOLDERS: Final = ("dispatch_library_path", "compiler_plugin_library_path")
_OPENVINO: Final = '''\
def load_openvino():
    """Load what LiteRT's libraries need of OpenVINO, which lies where no loader looks."""
    import openvino

    for name in ("libopenvino.so.*", "libopenvino_tensorflow_lite_frontend.so.*"):
        for path in (Path(openvino.__file__).parent / "libs").glob(name):
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


'''


_TO_ONE_SIDE: Final = '''\
def to_one_side(given, expected):
    """How far whole numbers are off on average, without those at an end of their type, where others are cut off."""
    ends = np.iinfo(expected.dtype)
    inside = (expected > ends.min) & (expected < ends.max)
    return abs(np.mean(given[inside].astype(np.float64) - expected[inside]))


'''
_ON_AVERAGE: Final = f'(to_one_side(given, expected) if model == "{FAILING}" else off.max())'


class NoScript(EvaltoolsError):
    """There is no script for the runtime of a configuration; the text says why."""


class ScriptFacts(Struct, frozen=True):
    """What the script is about.

    ``outputs`` says which output of each model is compared, ``tolerances`` how far that may be off in each
    element, or with ``on_average`` to one side. ``zeros_between``:
    each run is preceded by one with zeros, which shows outputs that are left over from the run before.
    """

    headline: str
    configuration: Configuration
    runtime: str
    tolerances: Mapping[str, float]
    unit: str
    runs: int
    outputs: Mapping[str, int]
    zeros_between: bool = False
    on_average: bool = False


def script(facts: ScriptFacts) -> str:
    """The text of ``reproduce.py``; raises :class:`NoScript`."""
    if facts.runtime not in _PACKAGES:
        raise NoScript(f"the runtime {facts.runtime} is another package's, for which there is no script")
    packages = packages_of(facts.configuration, facts.runtime)
    starts = {FAILING: _INPUT, PASSING: PASSING_INPUT}
    compiled = facts.runtime == COMPILED
    return _template("reproduce").substitute(
        headline=_plain(facts.headline),
        requirements=" ".join(requirements(facts.configuration, facts.runtime)),
        more_imports="import ctypes\n" if _needs_openvino(facts.configuration) else "",
        imports="" if compiled else "from collections import Counter\n",
        outputs=_literal(dict(facts.outputs)),
        tolerances=_literal(dict(facts.tolerances)),
        unit=_unit(facts),
        to_one_side=_TO_ONE_SIDE if facts.on_average else "",
        too_far=_ON_AVERAGE if facts.on_average else "off.max()",
        runs=facts.runs,
        constants=_constants(facts.configuration, facts.runtime),
        library_flag=_LIBRARY_FLAG if libraries_of(facts.configuration, facts.runtime) else "",
        open=(_compiled(facts.configuration) if compiled else _interpreter(facts.configuration, facts.runtime)).strip(),
        before_each_run=_LEFT_BEHIND if facts.zeros_between else "",
        packages=_literal((*packages, "numpy")),
        models=_literal(tuple((model, starts[model]) for model in facts.outputs)),
    )


def _unit(facts: ScriptFacts) -> str:
    unit = "steps of the quantised output" if facts.unit == "steps" else "in the unit of the output"
    return f"{unit}, on average to one side" if facts.on_average else unit


def packages_of(configuration: Configuration, runtime: str) -> list[str]:
    """The packages of PyPI that a configuration runs with."""
    return [_PACKAGES[runtime], *(["openvino"] if _needs_openvino(configuration) else [])]


def requirements(configuration: Configuration, runtime: str) -> list[str]:
    """What to install: these packages with the versions that are installed here, and NumPy."""
    packages = packages_of(configuration, runtime)
    numpy = "'numpy<2'" if runtime == TFLITE_RUNTIME else "numpy"
    return [*(f"{name}=={importlib.metadata.version(name)}" for name in packages), numpy]


def _interpreter(configuration: Configuration, runtime: str) -> str:
    return _template("interpreter").substitute(
        module=_MODULES[runtime],
        resolver=_literal(_RESOLVERS[configuration.kernel_set]),
        threads=None if configuration.num_threads == -1 else configuration.num_threads,
    )


def libraries_of(configuration: Configuration, runtime: str) -> list[str]:
    """Libraries that the script loads from outside its wheels, in order; of an NPU the folders that were stated."""
    settings = configuration.delegates
    if runtime != COMPILED:
        paths = [path for path, _ in _delegates(configuration)]
    else:
        paths = [str(settings.value(flag)) for flag in _NPU_FOLDERS if settings.value("use_npu")]
    return [str(Path(path).resolve()) for path in paths if path]


def _delegates(configuration: Configuration) -> list[tuple[str, dict[str, str]]]:
    """The library of each delegate in order, with its options."""
    settings = configuration.delegates
    libraries = [
        each.library(settings.effective_options(each)) for each in settings.requested if each.library is not None
    ]
    return [(library.path, dict(library.options)) for library in libraries]


def _constants(configuration: Configuration, runtime: str) -> str:
    """Libraries, and what delegates among them are told."""
    libraries = libraries_of(configuration, runtime)
    comment = "  # --library says where they lie on your machine" if libraries else ""
    lines = [f"LIBRARIES = {_literal(libraries)}{comment}\n"] if libraries or runtime != COMPILED else []
    if runtime != COMPILED:
        lines.append(f"OPTIONS = {_literal([options for _, options in _delegates(configuration)])}\n")
    return "".join(lines)


def _compiled(configuration: Configuration) -> str:
    requested = {delegate.name for delegate in configuration.delegates.requested}
    accelerator = next((name for name in (GPU.name, NPU.name) if name in requested), "")
    lines = {GPU.name: _gpu_lines, NPU.name: _npu_lines}[accelerator](configuration) if accelerator else []
    return _template("compiled").substitute(
        cpu_options=_cpu_options(configuration),
        settings="".join(f"    {line}\n" for line in lines),
        environment=_environment(configuration if accelerator == NPU.name else None),
        vendor=_OPENVINO if _needs_openvino(configuration) else "",
        compile=("    load_openvino()\n" if _needs_openvino(configuration) else "") + _compile_lines(accelerator),
    )


def _compile_lines(accelerator: str) -> str:
    if not accelerator:
        return "    compiled = compiled_for(model, HardwareAccelerator.CPU)"
    own = f"HardwareAccelerator.{accelerator}"
    return (
        "    try:\n"
        f"        compiled = compiled_for(model, {own})\n"
        "    except RuntimeError:  # it does not take all of it: the CPU has the rest\n"
        f"        compiled = compiled_for(model, {own} | HardwareAccelerator.CPU)"
    )


def _cpu_options(configuration: Configuration) -> str:
    given = [
        f"num_threads={max(0, configuration.num_threads)}",
        f"kernel_mode=litert.CpuKernelMode.{_KERNEL_MODES[configuration.kernel_set]}",
    ]
    flags = xnnpack_flags(configuration)
    return ", ".join(given if flags is None else [*given, f"xnnpack_flags={flags}"])


def _environment(npu: Configuration | None) -> str:
    """Where libraries are; the bundle, which has none, stands for those of NPUs that are not asked for."""
    package = "str(Path(litert.__file__).parent)"
    dispatch = compiler = "str(FOLDER)"
    if npu is not None:
        settings = npu.delegates
        vendor = f'Path(litert.__file__).parent / "vendors" / {_literal(str(settings.value("npu_vendor")))}'
        folders = [f'str({vendor} / "dispatch")', f'str({vendor} / "compiler")']
        stated = (f"LIBRARIES[{place}]" for place in range(len(folders)))
        dispatch, compiler = (
            next(stated) if settings.value(flag) else folder for flag, folder in zip(_NPU_FOLDERS, folders, strict=True)
        )
    return (
        f"\n        runtime_path={package},\n        dispatch_library_path={dispatch},\n"
        f"        compiler_plugin_path={compiler},\n    "
    )


def _gpu_lines(configuration: Configuration) -> list[str]:
    settings = configuration.delegates
    lines = [
        f"options.gpu_options.enforce_f32 = {not settings.value('gpu_precision_loss_allowed')}",
        "options.gpu_options.benchmark_mode = True  # a run ends when its work is done",
    ]
    for flag in ("gpu_infinite_float_capping", "gpu_allow_src_quantized_fc_conv_ops"):
        if settings.value(flag):
            lines.append(f"options.gpu_options.{flag.removeprefix('gpu_')} = True")
    return lines


def _npu_lines(configuration: Configuration) -> list[str]:
    settings = configuration.delegates
    own = f"options.{settings.value('npu_vendor')}_options"
    return [f"{own}.{field.name} = {_value_of(field, own)}" for field in fields(settings)]


def _value_of(field: Field, options: str) -> str:
    if field.member:
        return f"{options}.{field.name.upper()}[{_literal(field.member)}]"
    return _literal(field.value)


def _needs_openvino(configuration: Configuration) -> bool:
    """Whether OpenVINO comes from its wheel, whose libraries are in no folder that the loader looks in."""
    settings = configuration.delegates
    asked_for = bool(settings.value("use_npu")) and settings.value("npu_vendor") == "intel_openvino"
    return asked_for and importlib.util.find_spec("openvino") is not None


def _literal(value: object) -> str:
    """A value as Python's source has it, texts in double quotes where that is no harder to read.

    >>> _literal([("a.so", {"k": 1})])
    '[("a.so", {"k": 1})]'
    """
    if isinstance(value, str):
        text = repr(value)
        return text if '"' in text else f'"{text[1:-1]}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(each)}" for key, each in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_literal, value)) + (",)" if len(value) == 1 else ")")
    return "[" + ", ".join(map(_literal, value)) + "]" if isinstance(value, list) else repr(value)


def _plain(text: str) -> str:
    r"""A text that can stand in a docstring, whatever the names in it are.

    >>> _plain('a"b' + chr(92) + chr(10) + 'c')
    'a?b? c'
    """
    line = " ".join(text.split())
    return "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "?" for letter in line
    )


def _template(name: str) -> Template:
    return Template(Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8"))
