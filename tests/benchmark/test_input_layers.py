"""The texts of ``--input_layer`` and its companions."""

from __future__ import annotations

import pytest

from evaltools.benchmark.input_layers import InputLayer, read_layers
from evaltools.errors import UsageError


def test_all_that_flags_say_is_read() -> None:
    found = read_layers("a:0,b,c", "1, 224 ,3::+2", "c,-5,+9:a::0,0,1", "b:C::\\x.bin,a::0:y")
    assert found == (
        InputLayer("a:0", (1, 224, 3), (0, 1), "y"),
        InputLayer("b", (), None, "C:\\x.bin"),
        InputLayer("c", (2,), (-5, 9), ""),
    )


@pytest.mark.parametrize(
    ("item", "name", "file"), [("a:::b", "a:", "b"), ("a::::b:c", "a::b", "c"), ("a:b::", "a", "b:")]
)
def test_a_colon_is_written_twice(item: str, name: str, file: str) -> None:
    assert read_layers(name, "1", "", item) == (InputLayer(name, (1,), None, file),)


NAMES_AND_SHAPES = (
    "The number of items in --input_layer_shape ({}) must match the number of items in --input_layer ({}). "
    "For example --input_layer=input1,input2 --input_layer_shape=1,224,224,4:1,20"
)
UNKNOWN = "Any unknown sizes in the shapes (-1's) must be replaced with the size you want to benchmark with."


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("a,b", "1,2"), NAMES_AND_SHAPES.format("1,2, with 1 items", "a,b, with 2 items")),
        (("", "1,2"), NAMES_AND_SHAPES.format("1,2, with 1 items", ", with 0 items")),
        (("a", "1,x"), "Incorrect size string specified: 1,x; "),
        (("a", "1,2,"), "Incorrect size string specified: 1,2,; "),
        (("a", "12abc"), "Incorrect size string specified: 12abc; "),
        (("a", "2147483648"), "Incorrect size string specified: 2147483648; "),
        (("a", "1,-1"), f"{UNKNOWN} --input_layer_shape has 1,-1; "),
        (("a", "-2"), f"{UNKNOWN} --input_layer_shape has -2; "),
        (("a", "1", "a,0"), "Wrong input value range item specified: a,0; "),
        (("a", "1", "a,0,1:"), "Wrong input value range item specified: ; "),
        (("a", "1", "a,2,1"), "Wrong low and high value of the input value range specified: a,2,1; "),
        (("a", "1", "a,0.5,1"), "Wrong low and high value of the input value range specified: a,0.5,1; "),
        (("a", "1", "a,0,2147483648"), "Wrong low and high value of the input value range specified: a,0,2147483648; "),
        (("a", "1", "b,0,1"), "Cannot find the corresponding input_layer name(b) in --input_layer as a; "),
        (("", "", "b,0,1"), "Cannot find the corresponding input_layer name(b) in --input_layer as ; "),
        (("a", "1", "a,0,1:a,0,2"), "--input_layer_value_range: a is given twice; keep one"),
        (("a,a", "1:1", "a,0,1"), "--input_layer_value_range: --input_layer gives 2 inputs the name a; "),
        (("a", "1", "", "f"), "Wrong input value file item specified: f; f doesn't contain any delimiter. "),
        (("a", "1", "", "a:"), "Wrong input value file item specified: a:; a: doesn't contain any delimiter. "),
        (("a", "1", "", "a:f:g"), "Wrong input value file item specified: a:f:g; a:f:g contains more than one delim"),
        (("a", "1", "", "a:f,"), "Wrong input value file item specified: ;  doesn't contain any delimiter. "),
        (("a", "1", "", "b:f"), "Cannot find the corresponding input_layer name(b) in --input_layer as a; "),
        (("a", "1", "", "a:f,a:g"), "--input_layer_value_files: a is given twice; keep one"),
    ],
)
def test_flags_that_make_no_sense_are_refused_in_the_native_words(flags: tuple[str, ...], words: str) -> None:
    texts = (*flags, "", "")[:4]
    with pytest.raises(UsageError) as caught:
        read_layers(*texts)
    assert str(caught.value).startswith(words)
