import math

import pytest

from rungwise.core import UserError
from rungwise.evaluation import Result, matching, printed
from rungwise.evaluation.tables import Ours, paper_table, published_beside


def result_of(numbers, protocol="coco-1k-5fold", images=(1000,) * 5, per_image=5, **more):
    captions = tuple(per_image * size for size in images)
    facts = {"dataset": "coco", "split": "test"} | more
    return Result(
        numbers=numbers,
        units=dict.fromkeys(numbers, "percent"),
        protocol=protocol,
        gallery={"i2t": captions, "t2i": images},
        queries={"i2t": sum(images), "t2i": sum(captions)},
        captions_per_image={"min": per_image, "mean": per_image, "max": per_image},
        **facts,
    )


def ours(reference, *results, name="mine", notes=()):
    return Ours(name, results, matching(reference), notes)


ROW = {"paper": "vsepp", "table": "1", "row": "1.11"}
RECALLS = {"i2t/R@1": 60.0, "i2t/R@10": 90.0, "i2t/MedR": 1.0, "t2i/R@1": 50.0, "t2i/R@10": 91.0, "t2i/MedR": 1.0}


def own_lines(table):
    return [(block.title, line.name) for block in table.blocks for line in block.lines if line.ours]


@pytest.mark.parametrize("paper", ["vsepp", "ladder_loss", "sam", "convse", "cmal2r"])
def test_every_printed_number_stands_in_one_block(paper):
    for table in {row.table for row in printed(paper)}:
        found = paper_table(paper, table)
        rows = [row for row in printed(paper) if row.table == table]
        cells = [cell for block in found.blocks for line in block.lines for cell in line.cells.values()]
        assert sorted(cell.value for cell in cells) == sorted(value for row in rows for value in row.numbers.values())
        assert found.left_out == ()


def test_blocks_do_not_mix_protocols_galleries_or_degrees():
    found = paper_table("ladder_loss", "1")
    assert [block.title for block in found.blocks] == [
        "coco, 1,000 images, protocol coco-1k-one-caption",
        "coco, 1,000 images, protocol coco-1k",
        "coco, 5,000 images, protocol one-caption-per-image",
        "coco, 5,000 images, protocol coco-5k",
    ]
    for block in found.blocks:
        graded = {name.rpartition("/")[2].startswith("CS@") for name in block.names}
        assert len(graded) == 1
    titles = [block.title for block in paper_table("sam", "2").blocks]
    assert any(title.endswith("degrees by SPICE") for title in titles)
    assert len(titles) == len(set(titles)) == 4


def test_a_run_stands_below_its_row_and_only_there():
    found = paper_table("vsepp", "1", [ours(ROW, result_of(RECALLS), notes=("epochs [2]",))])
    assert own_lines(found) == [("coco, 1,000 images, protocol coco-1k-5fold", "mine")]
    block = found.blocks[1]
    place = next(at for at, line in enumerate(block.lines) if line.ours)
    assert block.lines[place - 1].name.startswith("1.11 VSE++, ResNet152, fine-tuned")
    assert block.lines[place].cells["i2t/R@1"].value == 60.0
    assert found.notes == ("epochs [2]",)
    assert block.lines[place].notes == (1,)


def test_ranks_that_were_measured_with_two_sources_of_degrees_stand_once():
    row = {"paper": "sam", "table": "3", "method": "SGR+SAM", "dataset": "coco", "test_images": "1000"}
    both = [
        result_of({"i2t/R@1": 30.0}, "coco-1k", (1000,), relevance=name) for name in ("SPICE, hash 1", "TfIdf, hash 2")
    ]
    assert len(own_lines(paper_table("sam", "3", [ours(row, one) for one in both]))) == 1


def test_several_seeds_have_mean_and_deviation():
    results = [result_of({"i2t/R@1": value}) for value in (58.0, 60.0, 62.0)]
    found = paper_table("vsepp", "1", [ours(ROW, *results)])
    cell = next(line for line in found.blocks[1].lines if line.ours).cells["i2t/R@1"]
    assert (cell.value, cell.deviation) == (60.0, pytest.approx(2.0))


def test_sums_and_means_of_both_directions_are_made_of_their_terms():
    recalls = {f"{way}/R@{k}": 10.0 * k for way in ("i2t", "t2i") for k in (1, 5, 10)}
    reference = {"paper": "convse", "table": "III", "method": "MVN", "dataset": "coco"}
    found = paper_table("convse", "III", [ours(reference, result_of(recalls))])
    line = next(line for block in found.blocks for line in block.lines if line.ours)
    assert line.cells["rsum"].value == pytest.approx(320.0)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (result_of(RECALLS, split="val"), "of test splits, this result is of split 'val'"),
        (result_of(RECALLS, dataset=""), "its rows are of coco, this result of other data"),
        (result_of(RECALLS, "full", (1000,), dataset="flickr8k"), "has no rows of flickr8k"),
        (result_of(RECALLS, "full", (1000,)), "made under protocol coco-1k-5fold, this result under full"),
        (result_of(RECALLS, "coco-5k", (5000,)), "rows are of 1000 images, this result is of 5000"),
        (result_of(RECALLS, per_image=1), "are of 5 captions an image"),
        (result_of({"i2t/R@7": 3.0}), "none of i2t/R@1, "),
    ],
)
def test_what_fits_no_row_is_listed_with_the_reason(result, said):
    found = paper_table("vsepp", "1", [ours(ROW, result)])
    assert own_lines(found) == []
    (line,) = found.left_out
    assert line.startswith("mine: vsepp: ")
    assert said in line


def test_a_row_of_another_table_is_none_of_this_one():
    found = paper_table("vsepp", "2", [ours(ROW, result_of(RECALLS))])
    assert found.left_out == ("mine: vsepp: it stands for no row of this table",)


def test_degrees_by_another_source_are_not_set_beside_spice():
    reference = {"paper": "sam", "table": "2", "method": "CVSE+SAM", "train_set": "3%"}
    graded = {"i2t/NCS@1": 40.0, "i2t/R@1": 30.0}
    by_cider = result_of(graded, "coco-1k", (1000,), relevance="CIDEr-D")
    found = paper_table("sam", "2", [ours(reference, by_cider)])
    assert own_lines(found) == [("coco, 1,000 images, protocol coco-1k", "mine")]
    by_spice = result_of(graded, "coco-1k", (1000,), relevance="SPICE of tuples")
    found = paper_table("sam", "2", [ours(reference, by_spice)])
    assert len(own_lines(found)) == 2
    assert "degrees of i2t/NCS@1: SPICE of tuples" in found.notes


CS = {"i2t/CS@100": 0.2, "t2i/CS@100": 0.1}
LADDER = {"paper": "ladder_loss", "table": "1", "method": "CVSE++", "backbone": "ResNet152", "finetuned": "no"}


@pytest.mark.parametrize("reference", ["max", "mean", ""])
def test_coherent_scores_of_another_reference_stand_in_no_block(reference):
    measured = result_of(CS, "coco-1k-one-caption", (1000,), 1, relevance="BiEncoder, hash 1", reference=reference)
    found = paper_table("ladder_loss", "1", [ours(LADDER, measured)])
    assert own_lines(found) == []
    (line,) = found.left_out
    said = reference or "captions that they do not name"
    assert said in line
    assert "--reference paired" in line
    with pytest.raises(UserError, match="--reference paired"):
        published_beside(measured, "ladder_loss", dataset="coco", split="test")


def test_coherent_scores_of_the_caption_that_comes_with_the_image_stand_beside_the_papers():
    measured = result_of(CS, "coco-1k-one-caption", (1000,), 1, relevance="BiEncoder, hash 1", reference="paired")
    found = paper_table("ladder_loss", "1", [ours(LADDER, measured)])
    assert own_lines(found) == [("coco, 1,000 images, protocol coco-1k-one-caption", "mine")]
    assert "degrees of i2t/CS@100, t2i/CS@100: BiEncoder, hash 1, reference paired" in found.notes
    assert published_beside(measured, "ladder_loss", dataset="coco", split="test")


def test_the_median_run_stands_beside_a_row_of_a_median_run():
    row = {"paper": "convse", "table": "III", "method": "ConVSE", "dataset": "coco"}
    recalls = {f"{way}/R@{k}": 10.0 * k for way in ("i2t", "t2i") for k in (1, 5, 10)}
    runs = [result_of(recalls | {"i2t/R@1": 10.0 + more}, seed=seed) for seed, more in enumerate((5, 1, 3, 4, 2))]
    found = paper_table("convse", "III", [ours(row, *runs)])
    line = next(line for block in found.blocks for line in block.lines if line.ours)
    assert (line.cells["i2t/R@1"].value, line.cells["i2t/R@1"].deviation) == (13.0, None)
    assert "the median of 5 runs by rsum, seed 2; the paper says that it prints that of five" in found.notes
    found = paper_table("convse", "III", [ours(row, runs[0])])
    assert "one run, where the paper says that it prints the median of five by rsum" in found.notes
    found = paper_table("convse", "III", [ours(row | {"method": "MVN"}, *runs)])
    line = next(line for block in found.blocks for line in block.lines if line.ours)
    assert line.cells["i2t/R@1"].deviation is not None


def test_other_features_stand_apart_even_in_a_gallery_of_that_size():
    reference = {"paper": "cmal2r", "table": "1", "dataset": "wikipedia", "method": "CMAL2R"}
    maps = {"i2t/MAP": 27.0, "t2i/MAP": 21.0}
    for images in (693, 866):
        result = result_of(maps, "labels", (images,), 1, dataset="wikipedia")
        found = paper_table("cmal2r", "1", [ours(reference, result)])
        assert own_lines(found) == [(f"ours, of other features: wikipedia, {images} images, protocol labels", "mine")]
        assert found.blocks[-1].lines[0].cells["MAP"].value == 24.0
    refused = result_of(maps, "full", (693,), 1, dataset="wikipedia")
    found = paper_table("cmal2r", "1", [ours(reference, refused)])
    assert "protocol full" in found.left_out[0]


def test_numbers_that_were_not_measured_are_left_out():
    found = paper_table("vsepp", "1", [ours(ROW, result_of({"i2t/R@1": 60.0, "t2i/R@1": math.nan}))])
    line = next(line for line in found.blocks[1].lines if line.ours)
    assert list(line.cells) == ["i2t/R@1"]


def test_an_unknown_table_is_refused():
    with pytest.raises(UserError, match="there are sam:1, sam:2"):
        paper_table("sam", "8")
