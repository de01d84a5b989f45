"""``evaltools device run`` with native binaries and the benchmark app: programs that print native lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from evaltools.datasets import sample
from evaltools.native.logs.evaluation import NativeTask
from tests.cli.device import runs as device_runs
from tests.cli.evaluate.sample_runs import figures_here, imagenet
from tests.command import Completed
from tests.device.android_programs import add_android, kept
from tests.device.fixtures import Devices
from tests.device.native_stand_in import GPU_LINES, write_stand_in
from tests.device.real_device import Network, RealDevice

pytestmark = pytest.mark.once
PICTURES = 20
BENCHMARK = (f"--graph={sample.model_file('int8')}", "--num_runs=5", "--min_secs=0.01", "--warmup_min_secs=0.01")
_TIMES = """say "STARTING!"
say "count=9 first=9 curr=8 min=7 max=9 avg=8 std=1 p5=7 median=8 p95=9"
say "count=50 first=9 curr=8 min=7 max=9 avg=8 std=1 p5=7 median=8 p95=9"
say "Inference timings in us: Init: 100, First inference: 9, Warmup (avg): 8, Inference (avg): 8"
"""
_BENCHMARK_MODEL = f"""#!/bin/sh
# As benchmark_model on a device without a GPU.
say() {{ echo "INFO: $1"; }}
case "$*" in *--use_gpu=*) echo "WARN: GPU acceleration is unsupported on this platform." ;; esac
{_TIMES}"""
_LOGGING_BENCHMARK_MODEL = f"""#!/bin/sh
# As benchmark_model on Android, where all that it prints stands in the log as well.
say() {{ echo "INFO: $1"; echo "01-02 03:04:05.678  100  100 I tflite  : $1" >>/data/local/tmp/log; }}
echo "INFO: Created TensorFlow Lite XNNPACK delegate for CPU." >&2
: >/data/local/tmp/log
{_TIMES}echo "01-02 03:04:05.678  100  100 I tflite  : Replacing 3 out of 19 node(s) with delegate \
(TfLiteXNNPackDelegate) node, yielding 2 partitions for subgraph 0." >>/data/local/tmp/log
"""
_OF_ANOTHER_PROCESSOR = bytes.fromhex("7f454c4602010100") + bytes(8) + bytes.fromhex("0200b70001000000") + bytes(440)
"""The head of a program for 64 bit ARM."""
_LOGCAT = "#!/bin/sh\necho '--------- beginning of main'\ncat /data/local/tmp/log && rm /data/local/tmp/log\n"


def serials(devices: Devices) -> list[str]:
    return [device.serial for device in devices]


def run_native(network: Network, names: list[str], binary: Path, arguments: list[str], output: Path) -> Completed:
    command = device_runs.on_devices(network, names, arguments, f"--output_file_path={output}")
    command = [word for word in command if not word.startswith(("--device_python", "--label_check"))]
    return device_runs.run([*command, "--device_program=native", f"--native_binary={binary}"])


def test_a_native_classification_gives_what_this_computer_gives(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    expected = figures_here(imagenet("--compat=native", pictures=PICTURES), tmp_path / "here.json")
    binary = write_stand_in(tmp_path, "imagenet")
    arguments = imagenet("--config=gpu: use_gpu=true", "--config=plain:", pictures=PICTURES)
    output = tmp_path / "native.json"
    done = run_native(network, serials(devices), binary, arguments, output)
    assert done.code == 3, done.err
    result = json.loads(output.read_text())
    found = {entry["name"]: entry for entry in result["rows"]}
    here, there = ({entry["name"]: entry["figures"] for entry in each["rows"]} for each in (expected, result))
    for serial in serials(devices):
        assert {name: found[f"{name}@{serial}"]["status"] for name in ("reference", "gpu", "plain")} == {
            "reference": "measured", "gpu": "not measured", "plain": "measured",
        }  # fmt: skip
        assert "GPU acceleration is unsupported on this platform." in found[f"gpu@{serial}"]["reason"]
        for own, other in (("reference", "reference"), ("plain", "test")):
            assert there[f"{own}@{serial}"]["top1"]["value"] == here[other]["top1"]["value"]
    told = result["device_run"]
    assert (told["program"], told["left_out"]) == ("native", [])
    assert all("GPU acceleration is unsupported" in " ".join(work["delegate_lines"]) for work in told["work"])
    assert {work["serial"] for work in told["work"]} == {*serials(devices)}
    assert device_runs.left_runs(devices) == []


def test_a_binary_that_is_killed_once_is_tried_again(network: Network, devices: Devices, tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    plain, gpu = write_stand_in(tmp_path, "imagenet"), write_stand_in(tmp_path / "gpu", "imagenet", GPU_LINES)
    binary, count = tmp_path / "run_eval", tmp_path / "count"
    killed = f'echo >>{count}; [ "$(wc -l <{count})" -gt 1 ] || kill -9 $$'
    binary.write_text(f'#!/bin/sh\ncase "$*" in *gpu=true*) {killed}; exec {gpu} "$@" ;; esac\nexec {plain} "$@"\n')
    output = tmp_path / "native.json"
    arguments = imagenet("--config=x: use_gpu=true", pictures=4)
    done = run_native(network, serials(devices)[:1], binary, arguments, output)
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    assert [entry["status"] for entry in result["rows"]] == ["measured"] * 2
    (work,) = result["device_run"]["work"]
    (lost,) = work["lost"]
    assert "was killed there (SIGKILL), as Android does where memory runs out" in lost["reason"]


@pytest.fixture
def one_with_a_gpu(devices: Devices) -> Iterator[RealDevice]:
    """The first device, where :func:`write_both` runs the first of two programs."""
    marker = devices[0].folder / "has_gpu"
    marker.write_text("")
    yield devices[0]
    marker.unlink()


def write_both(folder: Path, task: NativeTask, *lines: Sequence[str]) -> Path:
    """A program that prints the first lines on the device of :func:`one_with_a_gpu`, the second ones on others."""
    first, second = (write_stand_in(make_folder(folder / str(index)), task, own) for index, own in enumerate(lines))
    path = folder / "run_eval"
    path.write_text(f'#!/bin/sh\n[ -e /data/local/tmp/has_gpu ] && exec {first} "$@"\nexec {second} "$@"\n')
    return path


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_each_device_has_a_row_of_its_own_with_what_its_gpu_took(
    network: Network, devices: Devices, one_with_a_gpu: RealDevice, tmp_path: Path
) -> None:
    fewer = [line.replace("Replacing 3 out", "Replacing 2 out") for line in GPU_LINES]
    binary = write_both(tmp_path, "imagenet", GPU_LINES, fewer)
    output = tmp_path / "native.json"
    arguments = imagenet("--config=g: use_gpu=true", "--reference=none", pictures=8)
    done = run_native(network, serials(devices), binary, arguments, output)
    assert (done.code, device_runs.device_run(output)["left_out"]) == (0, []), done.err
    found = json.loads(output.read_text())["rows"]
    assert {entry["name"]: entry["delegates"][0]["nodes"] for entry in found} == {
        f"g@{name}": nodes for name, nodes in zip(serials(devices), (3, 2), strict=True)
    }
    file = run_native(network, serials(devices), binary, arguments, tmp_path / "native.pb")
    assert (file.code, "what several places give is one result in JSON" in file.err) == (2, True)


def test_a_native_benchmark_that_fell_back_is_not_measured(network: Network, devices: Devices, tmp_path: Path) -> None:
    binary = tmp_path / "benchmark_model"
    binary.write_text(_BENCHMARK_MODEL)
    output = tmp_path / "native.json"
    arguments = ["benchmark", *BENCHMARK, "--config=cpu: use_xnnpack=false", "--config=gpu: use_gpu=true", "--rounds=2"]
    done = run_native(network, serials(devices)[:1], binary, arguments, output)
    assert done.code == 3, done.err
    rows = {row["name"]: row for row in json.loads(output.read_text())["rows"]}
    assert sorted(rows) == ["cpu", "gpu"]
    assert rows["cpu"]["counts"]["runs"] >= 10
    assert rows["cpu"]["counts"]["rounds"] == 2
    assert "GPU acceleration is unsupported on this platform" in rows["gpu"]["reason"]


def test_a_native_benchmark_that_android_logs_as_well(network: Network, devices: Devices, tmp_path: Path) -> None:
    """Its times are read once, the log is not a part of what the tool printed, and has the proof of its delegate."""
    devices[0].add_program("logcat", _LOGCAT)
    binary = tmp_path / "benchmark_model"
    binary.write_text(_LOGGING_BENCHMARK_MODEL)
    output = tmp_path / "native.json"
    arguments = ["benchmark", *BENCHMARK, "--use_xnnpack=true"]
    done = run_native(network, serials(devices)[:1], binary, arguments, output)
    assert done.code == 0, done.err
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["status"], row["counts"]["runs"], row["delegates"][0]["nodes"]) == ("measured", 50, 3)
    lines = done.out.splitlines()
    assert (len(lines), all(line.startswith("INFO: ") for line in lines)) == (4, True)


def test_a_binary_that_the_device_cannot_start(network: Network, devices: Devices, tmp_path: Path) -> None:
    path, said = tmp_path / "native_tool", "Exec format error"
    path.write_bytes(_OF_ANOTHER_PROCESSOR)
    output = tmp_path / "native.json"
    step = "the device's ABI is x86_64: build the binary for it with bazel build -c opt --config=android_x86_64"
    benchmarked = run_native(network, serials(devices)[:1], path, ["benchmark", *BENCHMARK], output)
    (row,) = json.loads(output.read_text())["rows"]
    evaluated = run_native(network, serials(devices)[:1], path, imagenet(pictures=4), output)
    reasons = [row["reason"], *(entry["reason"] for entry in json.loads(output.read_text())["rows"])]
    assert (benchmarked.code, benchmarked.out.strip(), evaluated.code, len(reasons)) == (3, "", 3, 3)
    assert all(said in reason and step in reason for reason in reasons), reasons


_OF_LITERT: Final = f"""#!/bin/sh
# As LiteRT's benchmark_model with an NPU, where its dispatch library is found.
say() {{ echo "INFO: $1"; }}
for word; do case "$word" in --dispatch_library_path=*) libraries="${{word#*=}}" ;; esac; done
case "$*" in *--npu_vendor*) exit 1 ;; *--use_npu=true*--qualcomm_htp_performance_mode=burst*) ;; *) exit 1 ;; esac
for folder in "$libraries" "$LD_LIBRARY_PATH" "$ADSP_LIBRARY_PATH"; do
  [ "$(cat "$folder/libLiteRtDispatch_Qualcomm.so")" = "a library" ] || exit 1
done
say "Replacing 3 out of 19 node(s) with delegate (DispatchDelegate) node, yielding 2 partitions for subgraph 0."
{_TIMES}"""


def test_a_benchmark_on_an_npu_by_litert_gets_its_libraries_and_flags(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "libLiteRtDispatch_Qualcomm.so").write_bytes(b"a library")
    binary, output = tmp_path / "benchmark_model", tmp_path / "out.json"
    binary.write_text(_OF_LITERT)
    npu = "--config=npu: use_npu=true npu_vendor=qualcomm qualcomm_htp_performance_mode=burst"
    words = ["benchmark", *BENCHMARK, npu]
    assert run_native(network, serials(devices)[:1], binary, words, output).code == 3, "there is no library"
    words.append(f"--device_libraries={tmp_path / 'libs'}")
    done = run_native(network, serials(devices)[:1], binary, words, output)
    assert done.code == 0, done.err
    (row,) = json.loads(output.read_text())["rows"]
    assert (row["status"], row["delegates"][0]["name"], row["delegates"][0]["nodes"]) == ("measured", "NPU", 3)


def test_the_benchmark_app(network: Network, devices: Devices, tmp_path: Path) -> None:
    phone = devices[1]
    add_android(phone, "org.tensorflow.lite.benchmark/.BenchmarkModelActivity")
    output = tmp_path / "app.json"
    command = device_runs.on_devices(network, [phone.serial], ["benchmark", *BENCHMARK], "--use_xnnpack=true")
    command = [word for word in command if not word.startswith("--device_python")]
    more = ["--device_program=app", f"--output_file_path={output}"]
    done = device_runs.run([*command, *more])
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    (row,) = result["rows"]
    assert (row["status"], row["counts"]["runs"] >= 5, row["delegates"][0]["name"]) == ("measured", True, "XNNPACK")
    assert result["device_run"]["program"] == "app"
    assert any("XNNPACK" in line for line in result["device_run"]["work"][0]["delegate_lines"])
    kept(phone, "installed").write_text("")
    missing = device_runs.run([*command, *more])
    assert missing.code == 3
    assert "the app org.tensorflow.lite.benchmark is not installed" in missing.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--device_program=native"], "--device_program=native needs --native_binary=PATH"),
        (["--device_program=native", "--native_binary=/none"], "--native_binary=/none: no such file"),
        (["--native_binary=gpu_numerics_check"], "--native_binary=gpu_numerics_check is gone: LiteRT's numerics"),
        (["--device_program=app"], "--device_program=app can only benchmark"),
        (
            ["--device_program=evaltools", "--native_binary=/bin/true"],
            "--native_binary has no effect without --device_program=native",
        ),
    ],
)
def test_flags_that_do_not_fit_together(more: list[str], message: str) -> None:
    done = device_runs.run(["device", "run", *imagenet(pictures=4), *more])
    assert (done.code, "Traceback" in done.err) == (2, False)
    assert message in done.err
