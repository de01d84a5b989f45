"""Programs that print what LiteRT's numerics checks print, for tests without a GPU or an NPU.

Which lines in which order, and on which stream: ``litert/tools/gpu_numerics_check.cc`` and ``npu_numerics_check.cc``.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np

from tests.tflite_writer import Graph, Signature

GPU_TOOK: Final = (
    "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.",
    "INFO: Replacing 4 out of 4 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions for subgraph "
    "0.",
    "INFO: Replacing 3 out of 4 node(s) with delegate (LITERT_CL) node, yielding 2 partitions for subgraph 0.",
)
NPU_TOOK: Final = (
    "INFO: Replacing 4 out of 4 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions for subgraph "
    "0.",
    "INFO: Replacing 1 out of 3 node(s) with delegate (DispatchDelegate) node, yielding 2 partitions for subgraph 0.",
)
_KNOWN: Final = {
    "gpu": ("graph", "epsilon", "gpu_backend", "use_fp16"),
    "npu": (
        *("cpu_model", "npu_model", "dispatch_library_dir", "epsilon", "input_dir"),
        "qualcomm_htp_performance_mode",
    ),
}
_SCRIPT: Final = """#!{python}
import os
import sys
from pathlib import Path

flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:])
for name in flags:
    if name not in {known!r}:
        print("ERROR: Unknown command line flag '" + name + "'", file=sys.stderr)
        sys.exit(1)
for name in ("graph", "cpu_model", "npu_model"):
    if name in flags and not Path(flags[name]).is_file():
        print("E0000 00:00:1795264829.665144   29281 {which}_numerics_check.cc:620] Failed to read", file=sys.stderr)
        sys.exit(1)
for line in {delegate_lines!r}:
    print(line, file=sys.stderr)
folder = flags.get("dispatch_library_dir", "")
for name in ("LD_LIBRARY_PATH", "ADSP_LIBRARY_PATH"):
    if folder and folder not in os.environ.get(name, "") or folder and not list(Path(folder).glob("*.so")):
        sys.exit("the dispatch library is not found by " + name)
for name, size in {inputs!r}.items():
    if Path(flags["input_dir"], name).stat().st_size != size:
        sys.exit("Mismatched input size")
epsilon = float(flags["epsilon"])
for output, (cpu, other) in enumerate({outputs!r}):
    differences = [abs(one - two) for one, two in zip(cpu, other)]
    at = sorted(range(len(cpu)), key=lambda place: differences[place])
    print("I0000 00:00:1795264829.665144   29281 check.cc:330] Comparing output buffer %d:" % output, file=sys.stderr)
    for place, found in [pair for pair in enumerate(differences) if pair[1] > epsilon][:20]:
        print("Element #%d: CPU value - %g, {upper} value - %g, abs diff - %g"
              % (place, cpu[place], other[place], found))
    print("Max diff: %g" % differences[at[-1]])
    print("Min diff: %g" % differences[at[0]])
    for rank, place in enumerate(at[::-1][:20]):
        print("Top %d diff: %g @ element #: %d, CPU val: %g , {upper} val: %g"
              % (rank, differences[place], place, cpu[place], other[place]))
    if {which!r} == "npu":
        print("CPU magnitude: %g" % sum(one * one for one in cpu))
        print("NPU magnitude: %g" % sum(two * two for two in other))
    print("Mean diff: %g" % (sum(differences) / len(differences)))
    if {which!r} == "npu":
        print("Cosine similarity: 0.999987")
    print("MSE: %g" % (sum(found * found for found in differences) / len(differences)))
    if {which!r} == "npu":
        print("SNR: 40.1 dB\\nPSNR: 48.9 dB\\nPearson correlation: 0.99998")
    print("Total %d out of %d are different elements, for output #%d, threshold - %g"
          % (sum(found > epsilon for found in differences), len(differences), output, epsilon))
if {fails!r}:
    print("E0000 00:00:1795264829.665144   29281 check.cc:598] Numerical threshold check failed:\\n"
          "Output #0 max_abs_diff 0.5 exceeds threshold 0.0001", file=sys.stderr)
sys.exit({fails!r})
"""


def write_model(path: Path, operator: str = "ADD") -> Path:
    """Four nodes with two outputs, which the signature names the other way round; of an NPU: one compiled node."""
    graph = Graph()
    fed = graph.tensor("fed", (1, 4))
    one, two = graph.constant("one", np.ones(1, np.float32)), graph.constant("two", np.ones((1, 2), np.float32))
    if operator == "ADD":
        first = graph.node("ADD", [fed, one], graph.tensor("first", (1, 4)), "AddOptions")
    else:
        first = graph.node(operator, [fed], graph.tensor("first", (1, 4)), options=b"a program")
    second = graph.node("ADD", [two, one], graph.tensor("second", (1, 2)), "AddOptions")
    third = graph.node("ADD", [first, one], graph.tensor("third", (1, 4)), "AddOptions")
    outputs = [second, third]
    if operator == "ADD":
        outputs = [second, graph.node("ADD", [third, one], graph.tensor("fourth", (1, 4)), "AddOptions")]
    serve = Signature("serve", 0, {"x": fed}, {"wide": outputs[1], "narrow": outputs[0]})
    path.write_bytes(graph.to_bytes([fed], outputs, signatures=[serve]))
    return path


def write_numerics_check(
    folder: Path,
    which: Literal["gpu", "npu"],
    outputs: Sequence[tuple[Sequence[float], Sequence[float]]],
    delegate_lines: Sequence[str],
    fails: bool = False,
    inputs: Mapping[str, int] | None = None,
) -> Path:
    """Write the program.

    ``outputs`` are the values of the CPU and of the accelerator, ``inputs`` the files that there must be with their
    sizes in bytes. ``fails``: it ends above its limits.
    """
    path = folder / f"{which}_numerics_check"
    path.write_text(
        _SCRIPT.format(
            python=sys.executable,
            which=which,
            upper=which.upper(),
            known=_KNOWN[which],
            delegate_lines=list(delegate_lines),
            outputs=[(list(cpu), list(other)) for cpu, other in outputs],
            fails=int(fails),
            inputs=dict(inputs or {}),
        )
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path
