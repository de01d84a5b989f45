"""The options that tasks have in common, so that one word means one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from msgspec.structs import replace

from evaltools.datasets.order import Order
from evaltools.gates.units import DEFAULT_MARGIN
from evaltools.parameter import NotNative, Parameter

MODEL_FILE: Final = Parameter(
    "model_file",
    "The .tflite model; it may also stand without a flag, as MODEL.tflite, and there may be several. Required.",
    role="input_file",
    required=True,
    short="model",
    positional=True,
)
REFERENCE_MODEL_FILE: Final = Parameter(
    "reference_model_file",
    "Another model for the reference, such as the float one.",
    role="input_file",
    only_with=("load_reference=",),
    not_native=NotNative("the native tool compares a model with itself"),
    short="reference_model",
)
CANDIDATES: Final = (
    Parameter(
        "config",
        'One more configuration, "NAME: flag=value flag=value". May be repeated. Where nothing says what to test, and '
        "it is this machine that runs it, every delegate that works is tried.",
        repeatable=True,
        about="configurations",
    ),
    Parameter(
        "configs",
        "YAML file that maps names to flags. May be repeated.",
        repeatable=True,
        role="input_file",
        about="configurations",
    ),
    Parameter(
        "sweep",
        'Values to combine, as in "threads:1,2,4 use_xnnpack:true,false", each a configuration. May be repeated.',
        repeatable=True,
        about="configurations",
    ),
)
ALLOW_FALLBACK: Final = Parameter(
    "allow_fallback",
    "Measure a configuration on the CPU where its delegate cannot be created or takes nothing; the result says so.",
    default=False,
)
CONFIGURATIONS: Final = (
    *CANDIDATES,
    Parameter(
        "reference",
        "Flags of the configuration that the others are compared with; builtin kernels and one thread unless stated. "
        "none: no reference.",
        only_with=("load_reference=",),
    ),
    ALLOW_FALLBACK,
    Parameter(
        "compat",
        "native: do what the native tool does also where that is a trap (docs/compare.md).",
        choices=("", "native"),
    ),
)
_EXECUTOR: Final = "the devices are the executor"
_ALL_EXAMPLES: Final = "every device does all examples"
_SILENT: Final = "nothing is printed anyway"
_SAVED: Final = "call .save() of the result"
_SHARED: Final = (
    Parameter(
        "example_timeout",
        "Seconds after which an example, or loading the model, counts as hanging; once examples are done, a hundred "
        "times the longest, 30 at least.",
        default=300.0,
        about="execution",
        not_native=NotNative("a native run is bounded as a whole, by --device_timeout"),
    ),
    Parameter(
        "max_crashes",
        "Give a configuration up after so many examples in a row at which its process died or hung.",
        default=3,
        not_native=NotNative("a native tool that dies ends its run"),
    ),
    Parameter(
        "run_dir",
        "Folder for the journal of this run: the same command, or evaltools resume, goes on where it ended.",
        role="output_folder",
        about="run",
        not_native=NotNative("a native tool keeps no journal to go on from"),
    ),
    Parameter(
        "shard_index",
        "Evaluate part i (from 0) of --shard_count; evaltools merge joins them.",
        default=0,
        about="run",
        only_with=("executor=local",),
        refused_on_devices=_ALL_EXAMPLES,
    ),
    Parameter(
        "shard_count",
        "Number of parts, one per host.",
        default=1,
        about="run",
        only_with=("executor=local",),
        refused_on_devices=_ALL_EXAMPLES,
    ),
    Parameter(
        "executor",
        "Where the work is done: local, or ray: as shards on a Ray cluster (pip install 'evaltools[ray]').",
        default="local",
        choices=("local", "ray"),
        about="run",
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "at",
        "Another place: arm64, or arm64:CORE, such as arm64:cortex-a76, runs it as a phone's CPU in "
        "QEMU (evaltools doctor --install=arm64), without latencies; here is this computer. adb:SERIAL is a device, "
        "where --native_binary runs the model. May be repeated: the same examples at each place.",
        repeatable=True,
        about="run",
        only_with=("executor=local", "shard_count=1"),
        refused_on_devices=_EXECUTOR,
        not_native=NotNative("a native tool runs where it is started"),
    ),
    Parameter(
        "ray_address",
        "Address of the Ray cluster; without it, Ray is started here.",
        about="execution",
        only_with=("executor=ray",),
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "ray_tasks",
        "Number of shards on the cluster; 0: one per CPU.",
        default=0,
        about="execution",
        only_with=("executor=ray",),
        refused_on_devices=_EXECUTOR,
    ),
    Parameter(
        "latency_examples",
        "Examples of the quiet latency phase; -1: a tenth, 10 to 100 (with two workers 40 where these say enough), and "
        "none with one worker, whose pass is quiet.",
        default=-1,
        about="execution",
        only_with=("executor=local",),
        not_native=NotNative("the native tool times every example"),
    ),
    Parameter(
        "output_format",
        "Format of the result file, whatever its name ends in; without it, the ending says which.",
        choices=("", "json", "html", "md", "csv", "pb"),
        about="result",
        only_with=("output_file_path",),
        in_python=_SAVED,
    ),
    Parameter(
        "progress",
        "Progress on stderr: auto (a bar on a terminal, else lines), lines, json (one object per line), none.",
        default="auto",
        choices=("auto", "lines", "json", "none"),
        about="result",
    ),
    Parameter(
        "plot",
        "PNG or SVG file: accuracy against latency and size, else latencies; of several models together.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "report",
        "One page to forward: FILE.html, or FILE.md for its first screen; of several models together.",
        role="output_file",
        about="result",
        in_python="call .report(path) of the result",
    ),
    Parameter(
        "quiet", "Show only the answer, no tables and no progress.", default=False, about="result", in_python=_SILENT
    ),
    Parameter("verbose", "Show all that is known of the run.", default=False, about="result", in_python=_SILENT),
    Parameter(
        "trace",
        "Write where the time went, for ui.perfetto.dev or chrome://tracing (JSON).",
        role="output_file",
        about="execution",
        only_with=("executor=local",),
        refused_on_devices="it is of one process on one machine",
    ),
)
_WORKERS: Final = Parameter(
    "workers",
    "Examples at a time, each with sessions of its own: a number, or auto: one per core.",
    default="auto",
    about="execution",
    only_with=("executor=local",),
    not_native=NotNative("a native tool has one worker", ("1", "auto")),
)
EXECUTION: Final = (_WORKERS, *_SHARED)
EXECUTION_WITH_ONE_WORKER: Final = (replace(_WORKERS, default="1"), *_SHARED)
"""For a task whose latency is of all of its examples."""
ENDS_AT_FAILURE: Final = NotNative("the native tool ends at the first example that fails", (0,))
IMAGES_PATH: Final = Parameter(
    "ground_truth_images_path",
    "Folder of pictures, taken in order of their names. Required.",
    role="pictures",
    required=True,
    short="images",
)
PICTURES: Final = ("images", IMAGES_PATH.name)
"""The options by which tasks that come with evaltools take pictures."""
OUTPUT_FILE_PATH: Final = Parameter(
    "output_file_path",
    "Result file: .json, .html or .md (pages), .csv, or the native tool's protobuf: .pb, .bin, any with "
    "--compat=native.",
    role="output_file",
    about="result",
    short="output",
    in_python=_SAVED,
)
NUM_IMAGES: Final = Parameter("num_images", "Evaluate the first N pictures; 0: all.", default=0)
_IN_ORDER: Final = "the native tool runs all pictures in the order of their names"
ORDER: Final = Parameter(
    "order",
    "native: one after the other, as they are listed; random: shuffled, so that the first N are a fair sample.",
    default="native",
    choices=("native", "random"),
    not_native=NotNative(_IN_ORDER, ("native",)),
)
SEED: Final = Parameter(
    "seed",
    "Seed of the random order: the same one takes the same examples.",
    default=1,
    only_with=("order=random",),
    not_native=NotNative(_IN_ORDER),
)
NORMALIZATION: Final = Parameter(
    "normalization",
    "Input values: auto (model metadata, else native), native (-1..1), unit (0..1), none (0..255), imagenet, or "
    '"mean=M[,M,M];std=S[,S,S]".',
    default="auto",
    not_native=NotNative("the native tool feeds values of its own, -1..1 to float models"),
)
INPUT_LAYOUT: Final = Parameter(
    "input_layout",
    "Layout of a picture's input: nhwc [1,height,width,3], nchw [1,3,height,width] (PyTorch). auto: the one that fits, "
    "nhwc where both do.",
    default="auto",
    choices=("auto", "nhwc", "nchw"),
    not_native=NotNative("the native tool feeds NHWC", ("auto", "nhwc")),
)
CHANNEL_ORDER: Final = Parameter(
    "channel_order",
    "Order of a picture's channels: rgb, or bgr (Caffe, OpenCV).",
    default="rgb",
    choices=("rgb", "bgr"),
    not_native=NotNative("the native tool feeds RGB", ("rgb",)),
)
Images = Annotated[Path, "Folder of pictures, taken in order of their names."]
NumImages = Annotated[int, NUM_IMAGES.help]
ExampleOrder = Annotated[Order, ORDER]
Seed = Annotated[int, SEED]
Normalized = Annotated[str, NORMALIZATION.help]
"""The same options as parameters of a task's function."""
MARGIN: Final = Parameter(
    "margin",
    "Change that counts as none in the verdict, with its unit: '0.5 points' is 5 of 1000 examples; of a metric that is "
    "no share a number in its own unit, and 1 % of the reference's value where it is not given.",
    default=f"{100 * DEFAULT_MARGIN:g} points",
    about="result",
)
MAX_FAILED_EXAMPLES: Final = Parameter(
    "max_failed_examples",
    "Stop once more than this many examples have failed; -1: no limit.",
    default=-1,
    not_native=ENDS_AT_FAILURE,
)
