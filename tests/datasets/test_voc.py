"""Pascal VOC folders: a file worked out by hand, categories, sizes, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from evaltools.datasets.object_annotations import Category, ObjectAnnotation
from evaltools.datasets.picture_files import AnnotatedFolder
from evaltools.datasets.voc import VOC_CLASSES, categories_of, parse_annotation, read_voc
from evaltools.errors import DataError

# As VOC2012 has it, with the parts of a person, which are no objects of their own.
PERSON_AND_DOG = """\
<annotation>
    <folder>VOC2012</folder>
    <filename>2007_000027.jpg</filename>
    <size><width>486</width><height>500</height><depth>3</depth></size>
    <object>
        <name>person</name>
        <pose>Unspecified</pose>
        <difficult>0</difficult>
        <bndbox><xmin>174</xmin><ymin>101</ymin><xmax>349</xmax><ymax>351</ymax></bndbox>
        <part><name>head</name><bndbox><xmin>169</xmin><ymin>104</ymin><xmax>209</xmax><ymax>146</ymax></bndbox></part>
    </object>
    <object>
        <name>dog</name>
        <difficult>1</difficult>
        <bndbox><ymin>1</ymin><xmin>1</xmin><ymax>500.5</ymax><xmax>10.25</xmax></bndbox>
    </object>
</annotation>
"""


def one_object(name: str = "cat", box: tuple[object, ...] = (1, 1, 5, 5), more: str = "", head: str = "") -> str:
    sides = "".join(
        f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    size = "<size><width>8</width><height>6</height></size>"
    return f"<annotation>{head or size}<object><name>{name}</name>{more}<bndbox>{sides}</bndbox></object></annotation>"


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for stem, content in files.items():
        (folder / f"{stem}.xml").write_text(content)
    return folder


def read_one(tmp_path: Path, content: str) -> AnnotatedFolder:
    return read_voc(write(tmp_path / "Annotations", a=content))


def test_an_annotation_worked_out_by_hand(tmp_path: Path) -> None:
    """Pixels count from 1 and both ends belong to the box: 174..349 starts 173 pixels in and is 176 wide."""
    found = read_voc(write(tmp_path / "Annotations", **{"2007_000027": PERSON_AND_DOG}))
    (image,) = found.data.images
    assert (image.id, image.file_name, image.width, image.height) == (1, "2007_000027.jpg", 486, 500)
    person, dog = VOC_CLASSES.index("person") + 1, VOC_CLASSES.index("dog") + 1
    assert (person, dog) == (15, 12)
    assert image.annotations == (
        ObjectAnnotation(person, (173, 100, 176, 251), 176 * 251),
        ObjectAnnotation(dog, (0, 0, 10.25, 500.5), 10.25 * 500.5, is_crowd=True),
    )
    assert found.data.categories == tuple(Category(number + 1, name) for number, name in enumerate(VOC_CLASSES))
    assert found.pictures == ()
    assert found.remarks == ()


def test_other_classes_are_numbered_in_order_of_their_names(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", a=one_object("zebra"), b=one_object("cat"), c=one_object("ant"))
    found = read_voc(folder)
    assert [(category.id, category.name) for category in found.data.categories] == [
        (1, "ant"),
        (2, "cat"),
        (3, "zebra"),
    ]
    assert [image.annotations[0].category_id for image in found.data.images] == [3, 2, 1]


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        (["zebra", "cat"], {"zebra": 1, "cat": 2}),
        (["???", "cat", "???", "zebra"], {"cat": 1, "zebra": 3}),
        (["background", "zebra", "cat"], {"background": 0, "zebra": 1, "cat": 2}),
        (["Background", "zebra", "cat"], {"Background": 0, "zebra": 1, "cat": 2}),
        (["__background__", "zebra", "cat"], {"__background__": 0, "zebra": 1, "cat": 2}),
    ],
)
def test_a_label_file_numbers_the_classes(labels: list[str], ids: dict[str, int]) -> None:
    assert {category.name: category.id for category in categories_of(["cat", "zebra"], labels)} == ids


def test_a_label_file_that_lacks_a_class_is_refused() -> None:
    with pytest.raises(DataError, match="lacks 1 of the 2 classes of the objects, such as 'zebra'"):
        categories_of(["cat", "zebra"], ["cat"])


def test_an_image_set_chooses_and_orders(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", x=one_object(), y=one_object(), z=one_object())
    (tmp_path / "val.txt").write_text("z -1\nx  1\n\n")
    found = read_voc(folder, image_set_file=tmp_path / "val.txt")
    assert [image.file_name for image in found.data.images] == ["z.jpg", "x.jpg"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x\nw\n", "names 'w', but .* has no w.xml"),
        ("../a/x\n", "has no ../a/x.xml"),
        ("x\nx\n", "names 'x' more than once"),
        ("\n", "names no picture"),
    ],
)
def test_a_wrong_image_set_is_refused(tmp_path: Path, content: str, message: str) -> None:
    folder = write(tmp_path / "a", x=one_object())
    (tmp_path / "val.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_voc(folder, image_set_file=tmp_path / "val.txt")


def test_pictures_are_found_by_name_then_by_that_of_the_annotation(tmp_path: Path) -> None:
    size = "<size><width>8</width><height>6</height></size>"
    folder = write(
        tmp_path / "a",
        x=one_object(head=f"<filename>named.png</filename>{size}"),
        y=one_object(head=f"<filename>gone.jpg</filename>{size}"),
        z=one_object(),
    )
    images = tmp_path / "images"
    images.mkdir()
    for name in ("named.png", "x.jpg", "y.JPEG", "z.png"):
        Image.new("RGB", (8, 6)).save(images / name)
    found = read_voc(folder, images)
    assert [image.file_name for image in found.data.images] == ["named.png", "y.JPEG", "z.png"]
    assert found.pictures == tuple(images / name for name in ("named.png", "y.JPEG", "z.png"))
    alone = read_voc(folder)
    assert [image.file_name for image in alone.data.images] == ["named.png", "gone.jpg", "z.jpg"]


@pytest.mark.parametrize("size", ["", "<size><width>0</width><height>0</height></size>", "<size/>"])
def test_a_size_that_is_not_stated_is_that_of_the_picture(tmp_path: Path, size: str) -> None:
    folder = write(tmp_path / "a", x=one_object(head=size or "<folder/>"))
    with pytest.raises(DataError, match=r"x.xml has no <size> .* give --images_folder"):
        read_voc(folder)
    images = tmp_path / "images"
    images.mkdir()
    Image.new("RGB", (7, 9)).save(images / "x.jpg")
    (image,) = read_voc(folder, images).data.images
    assert (image.width, image.height) == (7, 9)


def test_the_size_is_that_of_the_picture_also_where_another_is_stated(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", x=one_object(), y=one_object(), z=one_object())
    images = tmp_path / "images"
    images.mkdir()
    for name, size in (("x.jpg", (8, 6)), ("y.jpg", (6, 8)), ("z.jpg", (16, 12))):
        Image.new("RGB", size).save(images / name)
    found = read_voc(folder, images)
    assert [(image.width, image.height) for image in found.data.images] == [(8, 6), (6, 8), (16, 12)]
    (remark,) = found.remarks
    assert remark.startswith(
        "2 annotation files, such as y.xml, state another <size> than that of their pictures (8x6, but y.jpg has 6x8), "
        "which is taken"
    )
    alone = read_voc(folder)
    assert {(image.width, image.height) for image in alone.data.images} == {(8, 6)}
    assert alone.remarks == ()


@pytest.mark.parametrize("stated", ["", "<filename>gone.jpg</filename>", "<filename>a</filename>"])
def test_two_pictures_for_one_annotation_are_refused(tmp_path: Path, stated: str) -> None:
    size = "<size><width>8</width><height>6</height></size>"
    folder = write(tmp_path / "a", a=one_object(head=stated + size))
    images = tmp_path / "images"
    images.mkdir()
    for name in ("a.jpg", "a.png"):
        Image.new("RGB", (8, 6)).save(images / name)
    with pytest.raises(DataError, match=r"a.jpg and a.png would share the annotation file a.xml"):
        read_voc(folder, images)
    write(folder, a=one_object(head=f"<filename>a.png</filename>{size}"))
    assert read_voc(folder, images).pictures == (images / "a.png",)


def test_boxes_that_count_from_zero_are_remarked(tmp_path: Path) -> None:
    found = read_one(tmp_path, one_object(box=(0, 3, 5, 5)))
    assert list(found.data.images[0].annotations[0].bbox) == [-1, 2, 6, 3]
    assert found.remarks[0].startswith("1 boxes, such as one of a.jpg, begin left of or above pixel 1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (one_object(box=(5, 1, 4, 5)), r"object 1 \(cat\) has the box xmin 5, ymin 1, xmax 4, ymax 5; the maxima"),
        (one_object(box=(1, 5, 5, 4)), "the maxima must not be less than the minima"),
        (one_object(box=("x", 1, 5, 5)), "<bndbox> has 'x' for <xmin>"),
        (one_object(box=("1" * 400, 1, 5, 5)), "<bndbox> has '111"),
        (one_object(box=("inf", 1, 5, 5)), "<bndbox> has 'inf' for <xmin>"),
        (one_object().replace("<ymax>5</ymax>", ""), "<bndbox> has nothing for <ymax>"),
        (one_object(name=" "), "object 1 has no <name>"),
        (one_object(more="<difficult>yes</difficult>"), "<difficult> is 'yes'; it is 0 or 1"),
        (one_object()[:-20], "a.xml is not valid XML"),
        ("", "a.xml is not valid XML"),
        ('<?xml version="1.0" encoding="nonsense"?><annotation/>', "a.xml is not valid XML"),
        ("<html/>", "not a VOC annotation: its root is <html>"),
        (one_object(head="<filename>../../etc/passwd.jpg</filename>"), "names the picture '../../etc/passwd.jpg'"),
        (one_object(head="<filename>/etc/passwd.jpg</filename>"), "names the picture '/etc/passwd.jpg'"),
        (one_object(head=r"<filename>C:\a.jpg</filename>"), "names the picture"),
    ],
)
def test_a_wrong_annotation_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_one(tmp_path, content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_document_type_is_refused_before_its_entities_are_read(encoding: str) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 30))
    bomb = f'<!DOCTYPE annotation [<!ENTITY a0 "ha">{entities}]><annotation><filename>&a29;</filename></annotation>'
    with pytest.raises(DataError, match=r"a.xml declares a document type"):
        parse_annotation(bomb.encode(encoding), "a.xml")


def test_a_document_type_that_reads_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    text = f'<!DOCTYPE a [<!ENTITY x SYSTEM "{tmp_path / "secret.txt"}">]>{one_object(name="&x;")}'
    with pytest.raises(DataError, match="declares a document type"):
        parse_annotation(text.encode(), "a.xml")


def test_a_folder_without_annotations_is_refused_with_the_one_inside(tmp_path: Path) -> None:
    write(tmp_path / "Annotations", a=one_object())
    with pytest.raises(DataError, match="has no .xml files among its 1 entries.*Annotations looks like it"):
        read_voc(tmp_path)
    with pytest.raises(DataError, match="cannot be listed"):
        read_voc(tmp_path / "nowhere")
