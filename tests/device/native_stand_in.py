"""A program that behaves as a native evaluation binary does, and is ours inside: for tests without such a binary.

It reads the native flags, prints the native lines and writes the native protobuf, by running evaltools with
``--compat=native``. As a native tool it warns of flags that it does not know and goes on, ends at a picture that is no
JPEG, and measures the CPU without more than a warning where there is no GPU. What it was asked before on the same
files it answers as before: only latencies would differ.
"""

from __future__ import annotations

import json
import stat
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from evaltools.delegates import PARAMETERS
from evaltools.device.native_inputs import NATIVE_ENDINGS
from evaltools.native.logs.evaluation import NativeTask

GPU_WARNINGS: Final = (
    "WARN: The GPU delegate compile options are only supported on Android or iOS platforms or when the tool was built "
    "with -DCL_DELEGATE_NO_GL.",
    "WARN: GPU acceleration is unsupported on this platform.",
)
XNNPACK_LINE: Final = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU."
GPU_LINES: Final = (
    "INFO: Created TensorFlow Lite delegate for GPU.",
    "VERBOSE: Replacing 3 out of 4 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions for "
    "subgraph 0.",
    "INFO: Created 1 GPU delegate kernels.",
)
"""What a log says where a GPU took nodes."""
_TASK_FLAGS: Final[dict[NativeTask, tuple[str, ...]]] = {
    "imagenet": (
        "ground_truth_images_path", "ground_truth_labels", "model_output_labels", "denylist_file_path", "num_images",
    ),
    "coco": ("ground_truth_images_path", "ground_truth_proto", "model_output_labels", "debug_mode"),
    "inference_diff": ("num_runs",),
}  # fmt: skip
_COMMON_FLAGS: Final = ("model_file", "output_file_path", "num_interpreter_threads")
_KEPT: Final = ("use_xnnpack",)
"""Delegate flags that evaltools gets too; the other delegates are not there."""
_SCRIPT: Final = """#!/bin/sh
"exec" {quoted} "$0" "$@"  # Python reads a text here; its path may have blanks
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

given = [word[2:].partition("=") for word in sys.argv[1:] if word.startswith("--") and "=" in word]
known = {known!r}
unconsumed = [word for word in sys.argv[1:] if not word.startswith("--") or word[2:].partition("=")[0] not in known]
flags = dict(reversed([(name, text) for name, _, text in given]))


def fail(reason):
    if reason:
        print("E0000 00:00:1795264829.665144   29281 stand_in.cc:1] " + reason, file=sys.stderr)
    print("ERROR: Could not run the task evaluation!", file=sys.stderr)
    sys.exit(1)


if unconsumed:
    print("WARN: Unconsumed cmdline flags: " + " ".join(unconsumed), flush=True)
if flags.get("use_gpu") == "true" and not {delegate_lines!r}:
    print({gpu_warnings!r}, flush=True)
if flags.get("use_xnnpack") != "false":
    print({xnnpack_line!r}, file=sys.stderr, flush=True)
for line in {delegate_lines!r}:
    print(line, file=sys.stderr, flush=True)
if not Path(flags.get("model_file", "")).is_file():
    fail("Model file not found")
if "ground_truth_images_path" in flags:
    for picture in sorted(Path(flags["ground_truth_images_path"]).iterdir()):
        if picture.suffix.lower() not in {endings!r}:
            fail("Extension " + picture.suffix + " is not supported")
kept = {{name: flags[name] for name in {kept!r} if name in flags}}
output = kept.pop("output_file_path")
words = [*{command!r}, "--compat=native", "--progress=none", *("--" + name + "=" + kept[name] for name in kept)]


def content(text):
    path = Path(text)
    if path.is_dir():
        return [(picture.name, picture.read_bytes()) for picture in sorted(path.iterdir())]
    return path.read_bytes() if path.is_file() else text


asked = [{command!r}, [(name, content(kept[name])) for name in sorted(kept)]]
answer = Path({answers!r}, hashlib.sha256(repr(asked).encode()).hexdigest())
if not answer.exists():
    made = Path(tempfile.mkdtemp(dir={answers!r}))
    command = [{python!r}, "-m", "evaltools.cli.main", *words, "--output_file_path=" + str(made / "result.pb")]
    ended = subprocess.run(command, capture_output=True)
    if ended.returncode:
        fail(ended.stderr.decode(errors="replace").strip().replace("\\n", " "))
    (made / "printed.txt").write_bytes(ended.stdout)
    try:
        made.rename(answer)
    except OSError:
        pass  # another device was as fast
shutil.copy(answer / "result.pb", output)
sys.stdout.buffer.write((answer / "printed.txt").read_bytes())
"""


@cache
def answers() -> tempfile.TemporaryDirectory[str]:
    """Where the programs of these tests keep what they have measured, until the tests end."""
    return tempfile.TemporaryDirectory(prefix="evaltools-stand-in-")


def write_stand_in(folder: Path, task: NativeTask, delegate_lines: Sequence[str] = ()) -> Path:
    """Write the program into a folder; it prints ``delegate_lines`` to stderr, as a device with a delegate does."""
    words = {
        "imagenet": ["imagenet", "--reference=none", "--workers=1", "--label_check=false"],
        "coco": ["coco", "--reference=none", "--workers=1", "--bootstrap_resamples=0"],
        "inference_diff": ["inference-diff"],
    }
    own = (*_COMMON_FLAGS, *_TASK_FLAGS[task])
    known = {
        *own,
        "delegate",
        "num_threads",
        *(name for name, parameter in PARAMETERS.items() if parameter.not_native is None),
    }
    path = folder / f"{task}_run_eval"
    path.write_text(
        _SCRIPT.format(
            quoted=json.dumps(sys.executable),
            python=sys.executable,
            known=sorted(known),
            delegate_lines=list(delegate_lines),
            gpu_warnings="\n".join(GPU_WARNINGS),
            xnnpack_line=XNNPACK_LINE,
            endings=sorted(NATIVE_ENDINGS),
            kept=(*own, *_KEPT),
            command=words[task],
            answers=answers().name,
        )
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path
