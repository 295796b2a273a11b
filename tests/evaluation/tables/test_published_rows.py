import csv
from importlib import resources

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import PAPERS, PROTOCOLS, evaluate, printed, published, published_beside
from rungwise.evaluation.tables import TODAY, paper_table, sources_of
from rungwise.metrics import parse


def result_of(protocol="full", images=4, per_image=5):
    owners, vectors = np.arange(images).repeat(per_image), np.eye(images, 4, dtype=np.float32)
    return evaluate(
        image_embeddings=vectors,
        text_embeddings=vectors[owners],
        image_of_caption=owners,
        protocol=protocol,
        measures=["R@1"],
    )


def test_every_number_of_the_file_stands_in_a_row_once():
    text = resources.files("rungwise.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    cells = list(csv.DictReader(text.splitlines()))
    assert {one["paper"] for one in cells} == set(PAPERS)
    left_out = sum(one["metric"] == "pearson_r" or "stat=std" in one["setting"] for one in cells)
    held = sum(len(row.numbers) for paper in PAPERS for row in published(paper))
    assert held == len(cells) - left_out


def test_names_are_canonical_and_numbers_lie_in_their_bounds():
    names = {protocol.name for protocol in PROTOCOLS}
    for paper in PAPERS:
        for row in published(paper):
            assert row.protocol in names
            for name, value in row.numbers.items():
                low, high = parse(name.rpartition("/")[2] if "/" in name else name).bounds
                assert low <= value <= high, (row, name)


def test_rows_of_the_same_protocol_are_found():
    rows = published_beside(result_of("coco-1k-one-caption", 5000), "ladder_loss")
    assert {row.protocol for row in rows} == {"coco-1k-one-caption"}
    assert any(row.numbers.get("i2t/CS@100") == 0.235 for row in rows)
    fives = published_beside(result_of("coco-1k-5fold", 5000), "vsepp")
    assert all(row.test_images == 1000 and row.dataset == "coco" for row in fives)
    assert any(row.numbers["i2t/R@1"] == 64.6 for row in fives)
    assert published_beside(result_of("flickr30k-1k", 1000), "sam", split="test")
    assert published_beside(result_of("coco-1k", 5000), "sam")


@pytest.mark.parametrize(
    ("given", "asked", "said"),
    [
        ({}, {"paper": "nature"}, "paper 'nature' is not known"),
        ({}, {"paper": "sam"}, "protocol full does not say which test set"),
        ({}, {"paper": "sam", "dataset": "coco"}, "rows are of 1000 or 5000 images, this result is of 4"),
        ({}, {"paper": "vsepp", "dataset": "wikipedia"}, "has no rows of wikipedia"),
        ({"images": 1000}, {"paper": "convse", "dataset": "coco"}, "made under protocol coco-1k-5fold"),
        (
            {"images": 1000},
            {"paper": "sam", "dataset": "coco"},
            "made under protocol coco-1k, this result under full",
        ),
        ({"protocol": "coco-5k", "images": 5000}, {"paper": "convse"}, "rows are of 1000 images"),
        ({"protocol": "flickr30k-1k", "images": 1000}, {"paper": "sam", "dataset": "coco"}, "is flickr30k's"),
        ({"protocol": "flickr30k-1k", "images": 1000}, {"paper": "sam", "split": "val"}, "of test splits"),
    ],
)
def test_protocols_are_not_mixed(given, asked, said):
    with pytest.raises(UserError, match=said) as caught:
        published_beside(result_of(**given), **asked)
    assert "\n" not in str(caught.value)


def test_a_mean_of_runs_has_its_deviation():
    rows = [row for row in published("convse") if row.deviations]
    assert [row.facts["stat"] for row in rows] == ["mean"] * 4
    assert all(row.deviations.keys() == row.numbers.keys() for row in rows)
    runs = [row for row in published("convse") if row.facts.get("run") and row.dataset == "coco"]
    own = [row.numbers["rsum"] for row in runs if row.facts["method"] == "ConVSE"]
    mean = next(row for row in rows if row.facts["method"] == "ConVSE" and row.dataset == "coco")
    assert mean.numbers["rsum"] == pytest.approx(np.mean(own), abs=0.1)


def test_numbers_that_contradict_their_table_are_marked():
    doubted = [(row.facts["method"], name, why) for row in published("cmal2r") for name, why in row.doubts.items()]
    assert doubted == [("ml-CCA", "MAP", "mean of parts=0.3200")]


def test_degrees_by_another_source_stand_in_a_row_of_their_own():
    rows = [row for row in published("sam") if row.table == "Table 2" and row.facts["method"] == "CVSE"]
    assert {(row.relevance, "Nsum" in row.numbers) for row in rows} == {("", False), ("SPICE", True)}


def test_correlations_with_people_are_printed_and_are_no_rankings():
    ratings = [row for row in printed("sam") if row.table == "Table 1"]
    assert ratings[0].numbers == {"Pearson(all)": 0.711, "Pearson(non_gt)": 0.0}
    assert not [row for row in published("sam") if row.table == "Table 1"]


def test_rows_of_fixed_features_say_so():
    assert all(bool(row.features) == (paper == "cmal2r") for paper in PAPERS for row in published(paper))


def test_rows_of_today_say_where_they_come_from_and_which_were_not_looked_up():
    rows = published(TODAY)
    assert all(row.source and row.looked_up for row in rows)
    assert all(bool(row.date) == (row.looked_up != "from notes, not looked up") for row in rows)
    assert [row.facts["method"] for row in rows if not row.date] == ["DFN"]
    assert not any(row.origin for paper in PAPERS if paper != TODAY for row in printed(paper))


def test_sums_of_today_are_those_of_their_recalls():
    rows = [row for row in published(TODAY) if "rsum" in row.numbers]
    assert len(rows) == 6
    for row in rows:
        recalls = [value for name, value in row.numbers.items() if "/R@" in name]
        assert len(recalls) == 6
        assert row.numbers["rsum"] == pytest.approx(sum(recalls), abs=0.11), row


def test_rows_of_today_stand_beside_a_result_of_their_protocol_alone():
    rows = published_beside(result_of("coco-5k", 5000), TODAY)
    assert {row.facts["method"] for row in rows} >= {"CLIP", "SigLIP 2", "PE core", "BEiT-3", "D2S-VSE"}
    assert {(row.dataset, row.test_images) for row in rows} == {("coco", 5000)}
    assert {row.facts["finetuned"] for row in rows} == {"yes", "no"}
    with pytest.raises(UserError, match="coco-5k is coco.s, not flickr30k"):
        published_beside(result_of("coco-5k", 5000), TODAY, dataset="flickr30k")


def test_a_table_of_today_notes_each_source():
    table = paper_table(TODAY, "2")
    notes = [table.notes[note - 1] for block in table.blocks for line in block.lines for note in line.notes]
    assert set(notes) == set(table.notes) == {row.origin for row in published(TODAY) if row.table == "Table 2"}


def test_a_result_beside_rows_of_today_names_their_sources():
    rows = published_beside(result_of("flickr30k-1k", 1000), TODAY)
    below = sources_of(rows)
    assert below[0].startswith("today: ")
    assert any(line.startswith("VSE-infinity: README of woodfrog/vse_infty on GitHub") for line in below)
