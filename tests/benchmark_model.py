"""A program that behaves as TensorFlow's ``benchmark_model`` does, with our interpreter inside.

It reads the flags as the C++ source does, fills inputs from files of raw bytes, writes the raw bytes of all outputs one
after the other, and logs what the source logs. ``--use_gpu`` applies a delegate that is planted; without one it warns
and measures the CPU, as the program does where there is no GPU. The file ``faults`` beside it says what goes wrong from
now on: ``die 10`` in every tenth run, ``hang 5``, ``short 3`` an output that is too short, ``fail 2``, ``fill 9`` the
disk.
"""

from __future__ import annotations

import shlex
import stat
import sys
from pathlib import Path
from typing import Final

_FLAGS: Final = (
    *("graph", "num_threads", "num_runs", "min_secs", "max_secs", "warmup_runs", "warmup_min_secs", "input_layer"),
    *("input_layer_shape", "input_layer_value_files", "output_filepath", "use_gpu", "use_xnnpack"),
    *("external_delegate_path", "external_delegate_options", "gpu_precision_loss_allowed"),
)
_PROGRAM: Final = """import os, signal, sys, time
from pathlib import Path
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

FOLDER = Path({folder!r})
flags, unknown = {{}}, []
for word in sys.argv[1:]:
    name, equals, text = word.removeprefix("--").partition("=")
    if equals and name in {known!r}:
        flags.setdefault(name, text)
    else:
        unknown.append(word)


def say(text):
    print("INFO: " + text, flush=True)


def fatal(text):
    print("FATAL: " + text, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)


def fail(text):
    print("ERROR: " + text, file=sys.stderr, flush=True)
    print("ERROR: Benchmarking failed.", file=sys.stderr, flush=True)
    sys.exit(1)


say("STARTING!")
if unknown:
    print("WARN: Unconsumed cmdline flags: " + " ".join(unknown), flush=True)
graph = flags.get("graph") or fail("Please specify the name of your TF Lite input file with --graph")
say("Graph: [" + graph + "]")
if not Path(graph).is_file():
    fail("Failed to load model " + graph)
say("Loaded model " + graph)
start = time.perf_counter()
is_gpu = flags.get("use_gpu") == "true"
wanted = []
if is_gpu and {library!r}:
    wanted.append(("GPU", "TfLiteGpuDelegateV2", {library!r}, {options!r}))
elif is_gpu:
    print("WARN: GPU acceleration is unsupported on this platform.", flush=True)
if "external_delegate_path" in flags:
    wanted.append(("EXTERNAL", "Planted", flags["external_delegate_path"], flags.get("external_delegate_options", "")))
is_plain = flags.get("use_xnnpack") == "false" or bool(wanted)
interpreter = Interpreter(
    graph,
    num_threads=int(flags.get("num_threads", "-1")) if int(flags.get("num_threads", "-1")) > 0 else None,
    experimental_op_resolver_type=(
        OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if is_plain else OpResolverType.AUTO
    ),
)
total = len(interpreter._get_ops_details())
for name, shown, library, text in wanted:
    options = dict(each.partition(":")[::2] for each in text.split(";") if each)
    delegate = load_delegate(library, options)
    interpreter._delegates = [delegate]
    before = len(interpreter._get_ops_details())
    interpreter._interpreter.ModifyGraphWithDelegate(delegate._get_native_delegate_pointer())
    say(name + " delegate created.")
    groups = [each for each in interpreter._get_ops_details()[before:] if each["op_name"] == "DELEGATE"]
    if groups:
        nodes = total
        print("VERBOSE: Replacing %d out of %d node(s) with delegate (%s) node, yielding %d partitions for subgraph 0."
              % (nodes, total, shown, 2 * len(groups)), flush=True)
        coverage = "completely executed by the delegate." if nodes == total else (
            "partially executed by the delegate w/ %d delegate kernels." % len(groups))
        say("Explicitly applied " + name + " delegate, and the model graph will be " + coverage)
    else:
        say("Though " + name + " delegate is explicitly applied, the model graph will not be executed by the delegate.")
inputs = interpreter.get_input_details()
names = [each for each in flags.get("input_layer", "").split(",") if each]
shapes = [[int(size) for size in each.split(",")] for each in flags.get("input_layer_shape", "").split(":") if each]
if len(names) != len(shapes):
    fail("The number of items in --input_layer_shape must match --input_layer")
if names and len(names) != len(inputs):
    fatal("Inputs mismatch: Model inputs #:%d expected: %d" % (len(names), len(inputs)))
for detail, name, shape in zip(inputs, names, shapes):
    if name != detail["name"]:
        print("WARN: Tensor # %d is named %s but flags call it %s" % (detail["index"], detail["name"], name))
    if len(shape) != len(detail["shape"]):
        fail("Input tensor #%d should have %d dimensions!" % (detail["index"], len(detail["shape"])))
    if list(detail["shape"]) != shape:
        interpreter.resize_tensor_input(detail["index"], shape)
interpreter.allocate_tensors()
say("Initialized session in %gms." % (1000 * (time.perf_counter() - start)))
init_us = int(1e6 * (time.perf_counter() - start))
inputs = interpreter.get_input_details()
files = {{}}
for pair in filter(None, flags.get("input_layer_value_files", "").split(",")):
    name, _, path = pair.partition(":")
    if name not in names:
        fatal("Cannot find the corresponding input_layer name(" + name + ")")
    files[names.index(name)] = path
random = np.random.default_rng(5489)
values = []
for place, detail in enumerate(inputs):
    size = int(np.prod(detail["shape"])) * np.dtype(detail["dtype"]).itemsize
    if place in files:
        try:
            content = Path(files[place]).read_bytes()
        except OSError:
            fatal("Failed to read the input_layer_value_file:" + files[place])
        if len(content) != size:
            fatal("The size of %s is %d bytes. It should be %d bytes." % (files[place], len(content), size))
        values.append(np.frombuffer(content, detail["dtype"]).reshape(detail["shape"]))
    else:
        values.append(random.integers(0, 99, detail["shape"]).astype(detail["dtype"]))
try:
    number = int((FOLDER / "count").read_text()) + 1
except (OSError, ValueError):
    number = 1
(FOLDER / "count").write_text(str(number))
kind, _, every = ((FOLDER / "faults").read_text() if (FOLDER / "faults").exists() else "").partition(" ")
is_wrong = bool(kind) and number % int(every) == 0
if is_wrong and kind == "die":
    print("ERROR: the driver lost its context", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
if is_wrong and kind == "hang":
    time.sleep(600)
if is_wrong and kind == "fill":
    with open("../filler", "wb", 0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
if is_wrong and kind == "fail":
    fail("Node number 3 (CONV_2D) failed to invoke.")


def phase(runs, least):
    say("Running benchmark for at least %d iterations and at least %g seconds but terminate if exceeding 150 seconds."
        % (runs, least))
    times, begun = [], time.perf_counter()
    while len(times) < runs or time.perf_counter() - begun < least:
        for detail, value in zip(inputs, values):
            interpreter.set_tensor(detail["index"], value)
        before = time.perf_counter_ns()
        interpreter.invoke()
        times.append((time.perf_counter_ns() - before) // 1000)
    if not times:
        say("count=0")
    elif min(times) == max(times):
        say("count=%d curr=%d%s" % (len(times), times[0], "(all same)" if len(times) > 1 else ""))
    else:
        say("count=%d first=%d curr=%d min=%d max=%d avg=%g std=%d" % (
            len(times), times[0], times[-1], min(times), max(times), np.mean(times), np.std(times)))
    print(flush=True)
    return times


warm_up = phase(int(flags.get("warmup_runs", "1")), float(flags.get("warmup_min_secs", "0.5")))
regular = phase(int(flags.get("num_runs", "50")), float(flags.get("min_secs", "1")))
say("Inference timings in us: Init: %d, First inference: %d, Warmup (avg): %g, Inference (avg): %g" % (
    init_us, (warm_up or regular or [0])[0], np.mean(warm_up or [0]), np.mean(regular or [0])))
if "output_filepath" in flags:
    raw = b"".join(interpreter.get_tensor(each["index"]).tobytes() for each in interpreter.get_output_details())
    Path(flags["output_filepath"]).write_bytes(raw[:-1] if is_wrong and kind == "short" else raw)
"""


def write_benchmark_model(folder: Path, library: Path | None = None, options: str = "", leaves_out: str = "") -> Path:
    """Write the program into a folder; ``library`` is the delegate that its GPU is, with these options.

    It does not know the flags in ``leaves_out``, as LiteRT's own does not know those of files.
    """
    folder.mkdir(exist_ok=True)
    path, source = folder / "benchmark_model", folder / "program.py"
    text = _PROGRAM.format(
        folder=str(folder),
        known=[name for name in _FLAGS if name not in leaves_out.split()],
        library=str(library or ""),
        options=options,
    )
    source.write_text(text)
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(source))} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path
