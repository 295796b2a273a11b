"""What a file of weights says of itself: values of the expected form are compared, all else is passed over."""

from dataclasses import replace
from typing import Any

import pytest

from rungwise.encoders.untrusted import WeightsMetadata

SAYS = {"mean": "0.5", "std": "0.5", "input": "224", "pad_type": "same", "timm": "mobilenetv2_100"}
"""Metadata of a file of MobileNetV2's weights that was trained with the padding of TensorFlow."""
AGREES = WeightsMetadata("mobilenetv2_100", "same", 224, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def test_all_five_values_are_read() -> None:
    assert WeightsMetadata.of(SAYS) == AGREES
    assert WeightsMetadata.of({"format": "pt"}) == WeightsMetadata.of({}) == WeightsMetadata()


@pytest.mark.parametrize(
    "text", ["0.485, 0.456, 0.406", "[0.485, 0.456, 0.406]", "(0.485,0.456,0.406)", " .485  .456 .406 "]
)
def test_three_numbers_are_read_however_they_are_separated(text: str) -> None:
    assert WeightsMetadata.of({"mean": text, "std": text}).mean == (0.485, 0.456, 0.406)
    assert WeightsMetadata.of({"mean": text, "std": text}).std == (0.485, 0.456, 0.406)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("mean", text) for text in ("", "half", "nan", "inf", "1e-3", "-0.5", "127.5", "0.5 0.5", "0.5 0.5 0.5 0.5")),
        *(("mean", text) for text in ("0." + "5" * 300, "0x1", "0.5\x1b[31m", "[[0.5]]", "٠.٥")),
        *(("std", text) for text in ("0", "0 0.5 0.5", "2", "-1")),
        *(("input", text) for text in ("0", "-224", "224.0", "3 224 224", "9999", "9" * 5000, "٢٢٤", "true")),
        *(("pad_type", text) for text in ("", "SAME", "same\n", "{pad_type: same}", "same'; rm", "x" * 9999)),
        *(("timm", text) for text in ("", "hf-hub:somebody/evil", "../up", "a b", "net\x1b[2J", "x" * 9999, "a..b")),
    ],
)
def test_what_has_another_form_says_nothing(name: str, text: str) -> None:
    found = WeightsMetadata.of({name: text})
    assert found == WeightsMetadata() or text.strip() == "same"
    assert not found.warning("f.safetensors", replace(AGREES, **{name: None}), {})


@pytest.mark.parametrize(
    "ours",
    [
        AGREES,
        replace(AGREES, timm="mobilenetv2_100.ra_in1k"),
        replace(AGREES, mean=(0.5, 0.5004, 0.4999)),
        WeightsMetadata(),
    ],
)
def test_nothing_is_said_where_all_agrees(ours: WeightsMetadata) -> None:
    assert WeightsMetadata.of(SAYS).warning("f.safetensors", ours, {"pad_type": "same"}) == ""
    assert WeightsMetadata.of({}).warning("f.safetensors", ours, {}) == ""


@pytest.mark.parametrize(
    ("changes", "says", "has", "flag"),
    [
        ({"timm": "mobilenetv2_110d"}, "timm mobilenetv2_100", "timm mobilenetv2_110d", "backbone mobilenetv2_100"),
        ({"pad_type": "symmetric"}, "pad_type same", "pad_type symmetric", "options '{pad_type: same}'"),
        ({"input": 192}, "input 224", "input 192", "size 224"),
        ({"mean": (0.485, 0.456, 0.406)}, "mean 0.5 0.5 0.5", "mean 0.485 0.456 0.406", "mean 0.5 0.5 0.5"),
        ({"std": (0.229, 0.224, 0.225)}, "std 0.5 0.5 0.5", "std 0.229 0.224 0.225", "std 0.5 0.5 0.5"),
    ],
)
def test_each_difference_is_said_with_its_remedy(changes: dict[str, Any], says: str, has: str, flag: str) -> None:
    said = WeightsMetadata.of(SAYS).warning("f.safetensors", replace(AGREES, **changes), {})
    assert said == (
        f"weights 'f.safetensors' say {says}, and the configuration has {has}: features of pictures may be poor; to do"
        f" as the file says, train with --model.image.{flag}"
    )


def test_several_differences_are_one_sentence_and_other_options_stay() -> None:
    ours = WeightsMetadata("mobilenetv2_100", "valid", 224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    said = WeightsMetadata.of(SAYS).warning("f.safetensors", ours, {"drop_rate": 0.1, "pad_type": "valid"})
    assert said.endswith(
        "train with --model.image.options '{drop_rate: 0.1, pad_type: same}' --model.image.mean 0.5 0.5 0.5"
        " --model.image.std 0.5 0.5 0.5"
    )
    assert "timm" not in said
    assert "input" not in said


def test_the_name_of_the_file_cannot_write_to_the_terminal() -> None:
    said = WeightsMetadata.of(SAYS).warning("a\x1b[2J\n" * 99, replace(AGREES, input=64), {})
    assert said.isprintable()
    assert len(said) < 600
