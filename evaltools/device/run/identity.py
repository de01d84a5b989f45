"""What must stay the same for a run on devices to be resumed."""

from __future__ import annotations

from evaltools.device.files.store import sha256_of
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.request import DeviceRequest
from evaltools.engine.run_folder import RunIdentity, digest
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.run_identity import files_below, with_files


def identity_of(flags: DeviceFlags, sent: DeviceRequest) -> RunIdentity:
    """The identity of a run on devices.

    Files count by their content: the path of a file on devices contains its checksum.
    """
    folders = [path for below in sent.folders.values() for path in files_below([below])]
    found = RunIdentity(
        {
            "the executor": "devices",
            "the task": sent.request.task,
            "the files": digest([*sent.files.values(), *map(sha256_of, folders)]),
        },
        options={"--split": flags.split, "--taskset": flags.taskset, **flags_to_repeat(sent.request.options)},
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in sent.request.configurations},
    )
    for option, pictures in sent.pictures.items():
        found = with_files(found, f"the files of --{option}", files_below([pictures]))
    return found
