"""A model on a benchmark: the whole way from a folder to numbers, in Python and by the command."""

import json

import numpy as np
import pytest

import rungwise
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.evaluation.benchmarks import BenchmarkResult
from rungwise.models import PairScorer
from tests.benchmark_folders import FOLDERS, circo, mmeb, sugarcrepe, winoground
from tests.colour_model import ColourModel


class PairsOfColours(PairScorer):
    """The scores of the colour model, without its vectors."""

    fingerprint = "pairs of colours"

    def __init__(self) -> None:
        self.asked = 0

    def block(self, images, captions):
        self.asked += len(images)
        return ColourModel().block(images, captions)


def test_winoground_by_vectors_and_by_pairs(tmp_path):
    winoground(tmp_path)
    by_vectors = rungwise.evaluate(ColourModel(), tmp_path, quiet=True)
    assert isinstance(by_vectors, BenchmarkResult)
    assert by_vectors.per_question["text"] == (100, 0, 0)  # exchanged captions are wrong, and so are ties
    assert by_vectors.per_question["image"][:2] == (100, 0)
    assert by_vectors.per_question["group"] == (100, 0, 0)
    assert by_vectors["group(Object)"] == 50
    pairs = PairsOfColours()
    by_pairs = rungwise.evaluate(pairs, tmp_path, quiet=True)
    assert by_pairs.numbers == by_vectors.numbers
    assert pairs.asked == 6  # each picture once
    assert by_pairs.model_hash == "pairs of colours"


def test_parquet_is_measured_alike(tmp_path):
    plain = rungwise.evaluate(ColourModel(), winoground(tmp_path / "a"), quiet=True)
    packed = rungwise.evaluate(ColourModel(), winoground(tmp_path / "b", parquet=True), quiet=True)
    assert packed.numbers == plain.numbers


def test_sugarcrepe(tmp_path):
    result = rungwise.evaluate(ColourModel(), sugarcrepe(tmp_path), quiet=True)
    assert dict(result) == {
        "accuracy": pytest.approx(60),
        "accuracy(add_att)": 100, "accuracy(add_obj)": 50, "accuracy(swap_att)": 0,
        "accuracy(add)": 75, "accuracy(swap)": 0,
    }  # fmt: skip
    assert rungwise.evaluate(PairsOfColours(), tmp_path, quiet=True).numbers == result.numbers


def test_circo_is_asked_with_the_sum_of_picture_and_text(tmp_path):
    result = rungwise.evaluate(ColourModel(), circo(tmp_path), quiet=True)
    model = ColourModel()
    places = {int(path.stem): path for path in tmp_path.rglob("*.jpg")}
    asked = json.loads((tmp_path / "annotations/val.json").read_text())
    gallery = sorted(places)
    vectors = model.encode_image([places[number] for number in gallery]).vectors
    for at, entry in enumerate(asked):
        query = model.encode_text([entry["relative_caption"]])[0] + vectors[gallery.index(entry["reference_img_id"])]
        scores = vectors @ (query / np.linalg.norm(query))
        precision = 0.0
        order = sorted(range(len(gallery)), key=lambda one: (-scores[one], gallery[one] in entry["gt_img_ids"]))
        found = 0
        for place, one in enumerate(order[:5]):
            if gallery[one] in entry["gt_img_ids"]:
                found += 1
                precision += found / (place + 1)
        assert result.per_question["mAP@5"][at] == pytest.approx(100 * precision / len(entry["gt_img_ids"]), abs=1e-4)
    assert rungwise.evaluate(model, tmp_path, split="val", quiet=True) == result
    with pytest.raises(UserError, match="needs a model with vectors.*give a dual encoder"):
        rungwise.evaluate(PairsOfColours(), tmp_path, quiet=True)


def test_mmeb(tmp_path):
    result = rungwise.evaluate(ColourModel(), mmeb(tmp_path), quiet=True)
    assert result.per_question["P@1(Colours)"] == (100, 0)
    assert set(result) == {"P@1", "P@1(Colours)", "P@1(Changed)"}


@pytest.mark.parametrize("model", [ColourModel, PairsOfColours])
def test_a_picture_that_cannot_be_read_is_counted(model, tmp_path, capsys):
    winoground(tmp_path)
    (tmp_path / "images/ex_2_img_1.png").write_bytes(b"no picture")
    result = rungwise.evaluate(model(), tmp_path)
    assert result.left_out == {"unreadable picture": 1}
    assert len(result.per_question["group"]) == 2
    assert "1 of 6 pictures could not be read; their examples are left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"measures": ["R@1"]}, "measures= is of collections, and .* is a benchmark .winoground."),
        ({"protocol": "coco-5k"}, "protocol= is of collections"),
        ({"split": "val"}, "split= is of collections"),
        ({"report": "page.html"}, "report= is of collections"),
        ({"layout": "sugarcrepe"}, "has no files of SugarCrepe"),
    ],
)
def test_options_of_collections_are_refused(options, said, tmp_path):
    with pytest.raises(UserError, match=said) as caught:
        rungwise.evaluate(ColourModel(), winoground(tmp_path), quiet=True, **options)
    assert "\n" not in str(caught.value)


def test_a_layout_that_is_named_is_an_order(tmp_path):
    winoground(tmp_path)
    assert rungwise.evaluate(ColourModel(), tmp_path, layout="winoground", quiet=True).benchmark == "winoground"
    with pytest.raises(UserError):  # as pictures without captions, which nobody guesses
        rungwise.evaluate(ColourModel(), tmp_path, layout="folder", quiet=True)


@pytest.mark.parametrize("layout", FOLDERS)
def test_the_command_prints_a_table_and_writes_the_result(layout, tmp_path, monkeypatch, capsys):
    folder = FOLDERS[layout](tmp_path / "data")
    monkeypatch.setattr("rungwise.jobs.evaluation._benchmark.read_model", lambda *_, **__: ColourModel())
    out = tmp_path / "result.json"
    assert main(["evaluate", "MODEL", str(folder), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    result = BenchmarkResult.from_json(out)
    assert f"data, {layout}" in printed
    assert all(name in printed for name in result.numbers)
    assert main(["evaluate", "MODEL", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["benchmark"] == layout
    assert main(["verify", str(out)]) == 0
    assert main(["evaluate", str(folder)]) != 0
