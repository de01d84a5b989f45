"""``evaltools device run`` on real photos and models, with the real adb client and a real daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.cli.device import runs as device_runs
from tests.cli.evaluate.sample_runs import figures, figures_here
from tests.device.fixtures import Devices
from tests.device.real_device import Network

PHOTOS: Final = 60


def serials(devices: Devices) -> list[str]:
    return [device.serial for device in devices]


def imagenet(photos: Path, zoo: Path) -> list[str]:
    return [
        "imagenet",
        f"--model_file={zoo / 'mobilenet_v1_0.25_128_quant.tflite'}",
        f"--ground_truth_images_path={photos / 'images'}",
        f"--ground_truth_labels={photos / 'validation_labels_wnid.txt'}",
        f"--model_output_labels={photos / 'model_labels_1001_wnid.txt'}",
        f"--num_images={PHOTOS}",
        "--record_examples=true",
        "--kernels=default",
    ]


def test_photos_on_a_device_give_the_result_of_this_computer(
    network: Network, devices: Devices, photos: Path, zoo: Path, tmp_path: Path
) -> None:
    expected = figures_here(imagenet(photos, zoo), tmp_path / "here.json")
    output = tmp_path / "devices.json"
    flags = [*imagenet(photos, zoo), f"--output_file_path={output}"]
    command = device_runs.on_devices(network, serials(devices)[:1], flags)
    done = device_runs.run(command)
    assert done.code == 0, done.err
    found = figures(output)
    assert found["examples_done"] == PHOTOS
    assert found == expected
