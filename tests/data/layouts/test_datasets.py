import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.data import ImageCaptions, dataset_of, read
from rungwise.scenes import SceneConfig, generate


def collection(*ids: str, layout: str = "", name: str = "collection") -> ImageCaptions:
    return ImageCaptions(ids, ("a dog",), np.array([0]), layout=layout, name=name)


@pytest.mark.parametrize(
    ("data", "dataset"),
    [
        (collection("1000268201_693b08cb0e.jpg", layout="flickr8k", name="photos"), "flickr8k"),
        (collection("1000092795.jpg", "10002456.jpg", layout="flickr8k", name="photos"), "flickr30k"),
        (collection("1000092795.jpg", layout="table", name="flickr30k"), ""),
        (collection("COCO_val2014_000000000042.jpg", layout="table"), "coco"),
        (collection("000000000042.jpg", layout="coco"), "coco"),
        (collection("holiday.jpg", layout="coco", name="coco"), ""),
        (collection("000000000042.jpg", "holiday.jpg", layout="coco"), ""),
        (collection("train/0", layout="precomputed", name="f30k_precomp"), "flickr30k"),
        (collection("train/0", layout="precomputed", name="coco_precomp/train"), "coco"),
        (collection("train/0", layout="precomputed", name="mine"), ""),
        (collection("a", layout="wikipedia", name="anything"), "wikipedia"),
        (collection("a", layout="folder", name="wikipedia"), ""),
    ],
)
def test_a_dataset_is_recognised_by_layout_name_and_pictures(data: ImageCaptions, dataset: str) -> None:
    assert dataset_of(data) == dataset


@pytest.mark.parametrize(
    ("named", "dataset"), [("flickr30k", "flickr30k"), ("coco", "coco"), ("mine", ""), ("a\x1b[2Jcoco", ""), (7, "")]
)
def test_a_file_of_karpathy_says_which_dataset_it_is(named: object, dataset: str, tmp_path: Path) -> None:
    images = [{"filename": "a.jpg", "split": "train", "sentences": [{"raw": "a dog"}]}]
    (tmp_path / "splits.json").write_text(json.dumps({"dataset": named, "images": images}))
    data = read(tmp_path)
    assert dataset_of(data) == dataset
    assert data.name.isprintable()


def test_generated_scenes_are_recognised(tmp_path: Path) -> None:
    generate(tmp_path / "drawn", SceneConfig(pictures=4, side=32, val_share=0.25, test_share=0.25))
    assert dataset_of(read(tmp_path / "drawn")) == "scenes"
