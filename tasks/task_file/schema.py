"""What stands in a task.yaml. These types are its schema, from which editors know what may be written."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Level = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Rate = Annotated[int, msgspec.Meta(ge=1)]


class Preprocess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a picture becomes the input, in this order: cropped or put into a letterbox, resized, normalised.

    ``crop`` keeps that share of the shorter side, from the middle. ``letterbox`` keeps the aspect ratio and fills the
    rest with ``fill``. ``normalization`` is written as for ``--normalization``.
    """

    crop: _Share | None = None
    letterbox: Literal["center", "top_left"] | None = None
    fill: _Level = 114
    normalization: str = "auto"
    channels: Literal["rgb", "bgr"] = "rgb"


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A part of the file, whose ``kind`` says which others it has."""


class Pictures(_Part, frozen=True, tag="pictures"):
    """The pictures of a folder, in the order of their names."""

    path: str
    preprocess: Preprocess = msgspec.field(default_factory=Preprocess)


class Recordings(_Part, frozen=True, tag="recordings"):
    """A folder with folders of WAV files, in the order of the names."""

    path: str
    sample_rate: _Rate = 16000


class Rows(_Part, frozen=True, tag="rows"):
    """The rows of a CSV file, with a column of numbers for each input of the model by its name."""

    path: str


class Arrays(_Part, frozen=True, tag="arrays"):
    """The .npz files of a folder, with an array for each input of the model by its name; .npy files for one input."""

    path: str


class Lines(_Part, frozen=True, tag="lines"):
    """A text file: line i is right for example i.

    ``labels`` is a file whose line n names label n; without it lines are numbers.
    """

    path: str
    labels: str = ""


class Files(_Part, frozen=True, tag="files"):
    """A folder with a file for each example, of the same stem: a mask, a picture, or a .npy file."""

    path: str


class Folders(_Part, frozen=True, tag="folders"):
    """The folder that a recording is in is its label; ``labels`` is a file whose line n names label n."""

    labels: str


class Column(_Part, frozen=True, tag="column"):
    """A column of the CSV file of the inputs, with numbers."""

    name: str


class Array(_Part, frozen=True, tag="array"):
    """An array in the .npz file of the input."""

    name: str


class Scores(_Part, frozen=True, tag="scores"):
    """A score for each label. ``index`` is the number of the output, from 0, here and below."""

    index: _Count = 0


class Number(_Part, frozen=True, tag="number"):
    """One number."""

    index: _Count = 0


class Embedding(_Part, frozen=True, tag="embedding"):
    """A vector, which is near to those of the same label."""

    index: _Count = 0


class Classes(_Part, frozen=True, tag="classes"):
    """The class of each pixel; ``mask_values`` and ``class_offset`` as of ``evaltools segmentation``."""

    mask_values: Literal["voc", "ade"] = "voc"
    class_offset: int = 0
    index: _Count = 0


class Picture(_Part, frozen=True, tag="picture"):
    """A picture; ``values`` says what black and white are: unit 0..1, native -1..1, none 0..255."""

    values: Literal["unit", "native", "none"] = "unit"
    index: _Count = 0


class Values(_Part, frozen=True, tag="values"):
    """Any numbers, each of which has a right one."""

    index: _Count = 0


Inputs = Pictures | Recordings | Rows | Arrays
Truth = Lines | Files | Folders | Column | Array
Output = Scores | Number | Embedding | Classes | Picture | Values


class TaskFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task: its ``inputs``, what is right for each (``truth``), what the ``output`` means, which ``metrics`` count.

    Without a truth the outputs are compared only with the reference's. Without metrics there are all that the output
    has. Paths are meant from the folder of the file.
    """

    inputs: Inputs
    output: Output
    truth: Truth | None = None
    metrics: list[str] = []
    summary: str = ""
