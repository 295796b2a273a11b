"""What is recognised, and what a user is told of a mistake.

Also tests rungwise.evaluation.benchmarks._caption_choice and rungwise.evaluation.benchmarks._composed.
"""

import json
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.evaluation.benchmarks import BENCHMARKS, benchmark_layout, read_benchmark
from tests.benchmark_folders import FOLDERS, circo, mmeb, sugarcrepe, winoground
from tests.colour_model import colour_pictures


def lines(path: Path) -> list:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path: Path, change) -> None:
    """Change the entries of a JSON or JSONL file."""
    if path.suffix == ".jsonl":
        entries = lines(path)
        change(entries)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("layout", BENCHMARKS)
def test_each_layout_is_recognised_and_no_other_folder(layout, tmp_path):
    assert benchmark_layout(FOLDERS[layout](tmp_path / "one")) == layout
    colour_pictures(tmp_path / "photos", ["red", "blue"])
    (tmp_path / "photos/captions.json").write_text('[{"image": "0-red.png", "caption": "A red thing."}]')
    assert benchmark_layout(tmp_path / "photos") is None
    with pytest.raises(UserError, match="no benchmark is recognised here"):
        read_benchmark(tmp_path / "photos")
    with pytest.raises(UserError, match="has no files of"):
        read_benchmark(tmp_path / "photos", layout)
    with pytest.raises(UserError, match="no such benchmark; there are winoground"):
        read_benchmark(tmp_path / "photos", "coco")


def test_winoground_in_parquet_asks_the_same(tmp_path):
    plain, packed = read_benchmark(winoground(tmp_path / "a")), read_benchmark(winoground(tmp_path / "b", parquet=True))
    assert packed.texts == plain.texts
    assert [(one.example, one.group, one.tags) for one in packed.questions] == [
        (one.example, one.group, one.tags) for one in plain.questions
    ]
    assert [one.read() for one in packed.pictures] == [one.read_bytes() for one in plain.pictures]
    assert packed.crosses
    assert plain.crosses


def test_only_composed_questions_need_vectors(tmp_path):
    assert read_benchmark(sugarcrepe(tmp_path / "s")).crosses
    assert not read_benchmark(circo(tmp_path / "c")).crosses
    assert not read_benchmark(mmeb(tmp_path / "m")).crosses
    (tmp_path / "m/Changed/test-00000-of-00001.parquet").unlink()
    assert read_benchmark(tmp_path / "m").crosses


def test_one_file_may_be_given(tmp_path):
    mmeb(tmp_path)
    found = read_benchmark(tmp_path / "Colours.jsonl")
    assert {one.group for one in found.questions} == {"Colours"}


def test_a_missing_picture_leaves_its_questions_out_and_is_listed(tmp_path):
    winoground(tmp_path)
    (tmp_path / "images/ex_1_img_0.png").unlink()
    found = read_benchmark(tmp_path)
    assert found.left_out == {"missing picture": 1}
    assert {one.example for one in found.questions} == {"0", "2"}
    (issue,) = found.issues
    assert (issue.kind, issue.where) == ("missing picture", "examples.jsonl, line 2")
    assert issue.detail == "ex_1_img_0: no picture of this name"
    assert not any("yellow" in text for text in found.texts)


@pytest.mark.parametrize(
    ("make", "file", "change", "said"),
    [
        (winoground, "examples.jsonl", lambda found: found[0].pop("caption_1"), "no 'caption_1'"),
        (winoground, "examples.jsonl", lambda found: found[0].update(caption_1=""), "an empty text"),
        (winoground, "examples.jsonl", lambda found: found[0].update(caption_1=[]), "list where a text is needed"),
        (winoground, "examples.jsonl", lambda found: found[0].update(image_1="ex_0_img_0"), "are the same"),
        (sugarcrepe, "add_att.json", lambda found: found["0"].pop("negative_caption"), "no 'negative_caption'"),
        (sugarcrepe, "add_att.json", lambda found: found.update({"0": None}), "is no object"),
        (sugarcrepe, "add_att.json", lambda found: found["0"].update(caption="a green car"), "are the same"),
        (circo, "annotations/val.json", lambda found: found[0].pop("relative_caption"), "no 'relative_caption'"),
        (circo, "annotations/val.json", lambda found: found[0].update(gt_img_ids={}), "gt_img_ids is no list"),
        (circo, "annotations/val.json", lambda found: found[0].update(gt_img_ids=[13, "a"]), "no whole number"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(tgt_text=[], tgt_img_path=[]), "0 texts and 0 pictures"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(tgt_text=None, tgt_img_path=None), "no list 'tgt_text'"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(tgt_text=["red"]), "1 texts and 3 pictures"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(tgt_text=["red"] * 3), "no candidate is wrong"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(qry_text=7), "is no text"),
        (mmeb, "Colours.jsonl", lambda found: found[0].update(qry_img_path=""), "neither text nor picture"),
    ],
)  # fmt: skip
def test_an_unusable_entry_is_left_out_and_listed(make, file, change, said, tmp_path):
    make(tmp_path)
    rewrite(tmp_path / file, change)
    found = read_benchmark(tmp_path)
    assert found.left_out == {"unusable entry": 1}
    assert said in found.issues[0].detail
    assert found.issues[0].where.startswith(Path(file).name)


def test_a_file_that_is_no_json_is_refused_with_its_line(tmp_path):
    winoground(tmp_path)
    with (tmp_path / "examples.jsonl").open("a") as file:
        file.write("{")
    with pytest.raises(UserError, match=r"examples.jsonl, line 4: not valid JSON"):
        read_benchmark(tmp_path)


def test_a_benchmark_without_its_pictures_says_what_to_do(tmp_path):
    sugarcrepe(tmp_path)
    for picture in (tmp_path / "val2017").iterdir():
        picture.unlink()
    with pytest.raises(UserError, match="5 with missing picture.*put or link the pictures into the folder") as caught:
        read_benchmark(tmp_path)
    assert "\n" not in str(caught.value)


def test_the_test_split_of_circo_has_no_answers(tmp_path):
    circo(tmp_path)
    (tmp_path / "annotations/val.json").unlink()
    with pytest.raises(UserError, match="test.json: holds no answers.*measure val.json here.*authors' server"):
        read_benchmark(tmp_path)


def test_the_gallery_of_circo_is_counted(tmp_path):
    circo(tmp_path)
    gallery = tmp_path / "COCO2017_unlabeled/unlabeled2017"
    (gallery / f"{16:012d}.jpg").rename(gallery / f"{99:012d}.jpg")
    found = read_benchmark(tmp_path)
    assert "1 of 6 pictures of the gallery are missing: it is easier so" in found.warnings
    assert found.left_out == {"missing picture": 1}
    assert found.issues[0].detail == "000000000016: no picture of this number"
    assert len(found.questions[0].candidates) == 5
    for picture in gallery.iterdir():
        picture.unlink()
    with pytest.raises(UserError, match="no pictures such as unlabeled2017/000000000042.jpg"):
        read_benchmark(tmp_path)


def test_circos_list_of_pictures_may_be_damaged(tmp_path):
    circo(tmp_path)
    info = tmp_path / "COCO2017_unlabeled/annotations/image_info_unlabeled2017.json"
    for content in ([], {"images": [{"id": "a"}]}):
        info.write_text(json.dumps(content))
        with pytest.raises(UserError, match="has no list images with an id each"):
            read_benchmark(tmp_path)
    info.unlink()
    rewrite(tmp_path / "annotations/val.json", lambda found: found.clear())
    with pytest.raises(UserError, match="its files hold no questions"):
        read_benchmark(tmp_path, "circo")


@pytest.mark.parametrize(("make", "file"), [(winoground, "examples.jsonl"), (mmeb, "Colours.jsonl")])
def test_a_named_layout_says_which_name_every_entry_lacks(make, file, tmp_path):
    make(tmp_path)
    (tmp_path / file).write_text('{"a": 1}\n')
    if make is mmeb:
        (tmp_path / "Changed/test-00000-of-00001.parquet").unlink()
    assert benchmark_layout(tmp_path) is None
    with pytest.raises(UserError, match=f"1 with unusable entry.*the first: {file}, line 1"):
        read_benchmark(tmp_path, make.__name__)
