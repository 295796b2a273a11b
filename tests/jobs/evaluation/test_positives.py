"""``rungwise evaluate --positives`` with people's judgements, published files, and both."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.core.disk import digest_of
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.evaluation import Result, evaluate
from rungwise.relevance.human import Judgement, add_judgement, now

VECTORS = ("--image-embeddings", "DIR/image.npy", "--text-embeddings", "DIR/text.npy", "DIR/scenes", "--split", "all")


def run(world, *arguments):
    folder, _ = world
    return main(["evaluate", *(str(one).replace("DIR", str(folder)) for one in arguments)])


def alone(world):
    folder, data = world
    vectors = {f"{name}_embeddings": np.load(folder / f"{name}.npy") for name in ("image", "text")}
    return evaluate(**vectors, image_of_caption=data.image_of_caption)


@pytest.fixture
def judged(world, tmp_path: Path) -> Path:
    """Two people who called the best wrong caption of the first ten images right, with minor errors."""
    folder, data = world
    scores = np.load(folder / "image.npy") @ np.load(folder / "text.npy").T
    path = tmp_path / "judgements.jsonl"
    for image in range(10):
        others = np.where(data.image_of_caption == image, -np.inf, scores[image])
        caption = int(np.argmax(others))
        for who, grade in (("Ada", 4), ("Bo", 2 if image < 9 else 1)):
            text = hash_of_text(data.captions[caption])
            add_judgement(
                path, Judgement(data.image_ids[image], data.caption_ids[caption], grade, who, now(), text, "i2t")
            )
    return path


def test_numbers_before_and_after_are_printed_and_kept(world, judged, tmp_path, capsys):
    out, report = tmp_path / "result.json", tmp_path / "report.html"
    assert run(world, *VECTORS, "--positives", judged, "--out", out, "--report", report) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "what the judgements changed" in printed
    assert "9 pairs were called right by Ada, Bo (mean grade from 3)" in printed
    result = Result.from_json(out)
    assert result.judgements is not None
    assert dict(result.judgements.before) == dict(alone(world).numbers)
    assert result["i2t/R@1"] >= result.judgements.before["i2t/R@1"]
    assert result["rsum"] > result.judgements.before["rsum"]
    assert (result.judgements.called_right, result.judgements.graders) == (9, ("Ada", "Bo"))
    assert result.judgements.hashes == {"judgements.jsonl": digest_of(judged)}
    assert "9 pairs that 2 people called right" in result.right
    assert "9 pairs that 2 people called right" in report.read_text()


def test_the_bound_is_the_users(world, judged, tmp_path, capsys):
    for bound, pairs in ((2.5, 10), (3, 9), (3.5, 0)):
        out = tmp_path / f"{bound}.json"
        assert run(world, *VECTORS, "--positives", judged, "--right-from", bound, "--out", out) == 0
        assert json.loads(out.read_text())["judgements"]["called_right"] == pairs


def test_what_people_called_right_is_no_longer_listed_as_a_false_negative(world, judged, tmp_path, capsys):
    rows = []
    for more in ((), ("--positives", judged)):
        out = tmp_path / "wrong.csv"
        assert run(world, *VECTORS, "--relevance", "DIR/relevance.npy", "--false-negatives", out, *more) == 0
        with out.open(encoding="utf-8") as file:
            rows.append({(row["image"], row["caption"]) for row in csv.DictReader(file)})
    lines = [json.loads(line) for line in judged.read_text().splitlines()]
    called = {(line["image"], line["caption"]) for line in lines[:18]}  # the last two people's mean is too low
    assert rows[0] & called
    assert not rows[1] & called


def test_they_stand_beside_published_positives(world, judged, tmp_path, capsys):
    _, data = world
    first = {data.image_ids[0]: [data.caption_ids[0]]}
    (tmp_path / "i2t.json").write_text(json.dumps(first))
    (tmp_path / "t2i.json").write_text(json.dumps({data.caption_ids[0]: [data.image_ids[0]]}))
    files = (tmp_path / "i2t.json", judged, tmp_path / "t2i.json")
    out = tmp_path / "result.json"
    assert run(world, *VECTORS, "--protocol", "labels", "--positives", *files, "--out", out) == 0
    found = Result.from_json(out)
    assert found.judgements is not None
    assert found.judgements.added == {"i2t": 9, "t2i": 9}
    assert ", hash " in found.right
    assert "9 pairs that 2 people called right" in found.right


def test_judgements_of_other_captions_are_refused(world, judged, tmp_path, capsys):
    lines = [json.loads(line) for line in judged.read_text().splitlines()]
    other = tmp_path / "other.jsonl"
    for line in lines:
        line.pop("seal")
        add_judgement(other, Judgement(**{**line, "text_hash": hash_of_text("another text")}))
    assert run(world, *VECTORS, "--positives", other) == 2
    assert "20 of its 20 judgements are of other captions, the first at line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--paper", "vsepp"), "--paper and --positives with judgements: printed rows count the annotation alone"),
        (("--positives", "JUDGED", "DIR/relevance.npy"), "--positives takes two files"),
        (("--right-from", "nan"), "right_from must be a number"),
    ],
)
def test_mistakes_are_one_line(world, judged, capsys, more, said):
    words = [str(judged) if word == "JUDGED" else word for word in more]
    given = words if "--positives" in words else ["--positives", judged, *words]
    assert run(world, *VECTORS, *given) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_judgements_need_data(world, judged, capsys):
    given = ("--image-embeddings", "DIR/image.npy", "--text-embeddings", "DIR/text.npy", "--captions-per-image", 3)
    assert run(world, *given, "--positives", judged) == 2
    assert "--positives names ids; give DATA" in capsys.readouterr().err
