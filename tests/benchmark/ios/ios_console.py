"""The console of Xcode while TensorFlow's benchmark app ran, put together after public ones (TensorFlow 44369, 66025).

The runtime's lines come twice there, by the system's log and by stderr; the benchmark's own come once.
"""

from __future__ import annotations

BUNDLE = "/private/var/containers/Bundle/Application/1D088489-D83E-4A30-B2A8-26180514520A/TFLiteBenchmark.app"
LOGGED = "2022-09-06 13:15:37.049363-0700 TFLiteBenchmark[54612:4020499] "
ON_METAL = (
    f"{LOGGED}Created TensorFlow Lite delegate for Metal.\n"
    "INFO: Created TensorFlow Lite delegate for Metal.\n"
    f"{LOGGED}Metal API Validation Enabled\n"
    "INFO: GPU delegate created.\n"
    f"{LOGGED}Replacing 17 node(s) with delegate (TfLiteMetalDelegate) node, yielding 3 partitions.\n"
    "INFO: Replacing 17 node(s) with delegate (TfLiteMetalDelegate) node, yielding 3 partitions.\n"
    "INFO: Explicitly applied GPU delegate, and the model graph will be partially executed by the delegate w/ 2 "
    "delegate kernels.\n"
)


def started(*stated: str, delegates: str = "", average: float = 1847.4, model: str = "float32.tflite") -> str:
    """What a press of the button gives; ``stated`` are further parameters, as ``Use gpu: [1]``."""
    parameters = "".join(f"INFO: {line}\n" for line in stated)
    return (
        "INFO: Log parameter values verbosely: [0]\nINFO: Min num runs: [50]\n"
        f"INFO: Benchmark name: [some_benchmark]\nINFO: Graph: [{BUNDLE}/{model}]\nINFO: Input layers: [in0]\n"
        f"{parameters}INFO: Loaded model {BUNDLE}/{model}\n"
        f"{LOGGED}Initialized TensorFlow Lite runtime.\nINFO: Initialized TensorFlow Lite runtime.\n{delegates}"
        "INFO: The input model file size (MB): 0.25\nINFO: Initialized session in 120.5ms.\n"
        "INFO: Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding 150 "
        "seconds.\nINFO: count=26 first=37888 curr=1859 min=1796 max=37888 avg=3709.4 std=3689\n\n"
        "INFO: Running benchmark for at least 50 iterations and at least 1 seconds but terminate if exceeding 150 "
        f"seconds.\nINFO: count=54 first=1877 curr=1818 min=1817 max=1911 avg={average} std=41\n\n"
        "INFO: Inference timings in us: Init: 120500, First inference: 37888, Warmup (avg): 3709.4, Inference (avg): "
        f"{average}\nINFO: Memory footprint delta from the start of the tool (MB): init=10.5 overall=12.25\n"
    )
