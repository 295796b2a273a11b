"""What people called right, counted beside the annotation. Also tests rungwise.evaluation.judgements._record."""

import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import digest_of
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions
from rungwise.evaluation import (
    EvaluationSettings,
    Fold,
    HumanPositives,
    Result,
    compare,
    diagnose,
    evaluate,
    evaluate_with_people,
    find_false_negatives,
    positives_from_labels,
    published_beside,
    read_human_positives,
)
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.metrics import positives_of
from rungwise.relevance.human import Judgement, add_judgement, now

IMAGES, EACH = 12, 3
OWNERS = np.repeat(np.arange(IMAGES), EACH)
SCORES = np.random.default_rng(3).normal(size=(IMAGES, IMAGES * EACH))
PAIRS = np.unique(np.random.default_rng(4).integers(0, [IMAGES, IMAGES * EACH], size=(25, 2)), axis=0)
SAID = HumanPositives(PAIRS, ("Ada", "Bo"), 3.0, {"judgements.jsonl": "5eed"})


def slow_recall(scores: np.ndarray, right: list[set[int]], k: int) -> float:
    """The share of queries, in percent, of which a right candidate is among the first k."""
    hits = []
    for row, own in zip(scores, right, strict=True):
        order = sorted(range(len(row)), key=lambda candidate: -row[candidate])
        hits.append(any(candidate in own for candidate in order[:k]))
    return 100 * sum(hits) / len(hits)


def slow_ap(row: np.ndarray, own: set[int]) -> float:
    order = sorted(range(len(row)), key=lambda candidate: -row[candidate])
    found, total = 0, 0.0
    for rank, candidate in enumerate(order, start=1):
        if candidate in own:
            found += 1
            total += found / rank
    return 100 * total / len(own)


def right_sets(pairs: np.ndarray, images: range, captions: range) -> tuple[list[set[int]], list[set[int]]]:
    """The right candidates of both directions, in places of a gallery."""
    of_images: list[set[int]] = [set() for _ in images]
    of_captions: list[set[int]] = [set() for _ in captions]
    every = [(int(OWNERS[caption]), caption) for caption in captions] + [tuple(pair) for pair in pairs.tolist()]
    for image, caption in every:
        if image in images and caption in captions:
            of_images[image - images[0]].add(caption - captions[0])
            of_captions[caption - captions[0]].add(image - images[0])
    return of_images, of_captions


def test_numbers_are_those_of_nested_loops() -> None:
    result = evaluate(
        similarity=SCORES,
        image_of_caption=OWNERS,
        measures=["R@1", "R@5", "MAP"],
        settings=EvaluationSettings(human_positives=SAID),
    )
    of_images, of_captions = right_sets(PAIRS, range(IMAGES), range(IMAGES * EACH))
    for k in (1, 5):
        assert result[f"i2t/R@{k}"] == pytest.approx(slow_recall(SCORES, of_images, k))
        assert result[f"t2i/R@{k}"] == pytest.approx(slow_recall(SCORES.T, of_captions, k))
    values = [slow_ap(row, own) for row, own in zip(SCORES.T, of_captions, strict=True)]
    assert result["t2i/MAP"] == pytest.approx(np.mean(values))
    assert result.judgements is not None
    others = sum(OWNERS[caption] != image for image, caption in PAIRS.tolist())
    assert result.judgements.added == {"i2t": others, "t2i": others}
    assert 0 < others < len(PAIRS)
    assert result.judgements.called_right == len(PAIRS)
    assert result.right == f"captions written for the image, and {SAID}"


def test_several_galleries_have_their_own_right_answers() -> None:
    halves = ConsecutiveFolds("halves", count=2, size=IMAGES // 2)
    result = evaluate(
        similarity=SCORES,
        image_of_caption=OWNERS,
        measures=["R@1"],
        protocol=halves,
        settings=EvaluationSettings(human_positives=SAID),
    )
    recalls, added = [], 0
    for start in (0, IMAGES // 2):
        images = range(start, start + IMAGES // 2)
        captions = range(start * EACH, (start + IMAGES // 2) * EACH)
        own, _ = right_sets(PAIRS, images, captions)
        block = SCORES[images[0] : images[-1] + 1, captions[0] : captions[-1] + 1]
        recalls.append(slow_recall(block, own, 1))
        added += sum(map(len, own)) - len(captions)
    assert result["i2t/R@1"] == pytest.approx(np.mean(recalls))
    assert result.judgements is not None
    assert result.judgements.added["i2t"] == added


def test_one_caption_an_image_leaves_out_pairs_of_the_others() -> None:
    said = HumanPositives(np.array([[0, 3], [0, 4]]))  # captions 3 and 4 are the first and second of image 1
    protocol = "one-caption-per-image"
    result = evaluate(
        similarity=SCORES,
        image_of_caption=OWNERS,
        measures=["R@1"],
        protocol=protocol,
        settings=EvaluationSettings(human_positives=said),
    )
    assert result.judgements is not None
    assert result.judgements.added == {"i2t": 1, "t2i": 1}


def test_they_stand_beside_given_positives() -> None:
    labels = [str(image % 4) for image in range(IMAGES)]
    given = positives_from_labels(labels, OWNERS)
    result = evaluate(
        similarity=SCORES,
        image_of_caption=OWNERS,
        measures=["MAP"],
        protocol="labels",
        settings=EvaluationSettings(positives=given, human_positives=SAID),
    )
    values = []
    for image in range(IMAGES):
        own = {caption for caption in range(IMAGES * EACH) if OWNERS[caption] % 4 == image % 4}
        own |= {caption for other, caption in PAIRS.tolist() if other == image}
        values.append(slow_ap(SCORES[image], own))
    assert result["i2t/MAP"] == pytest.approx(np.mean(values))


def test_nobody_said_anything_new() -> None:
    own = HumanPositives(np.stack([OWNERS, np.arange(IMAGES * EACH)], axis=1))
    plain = evaluate(similarity=SCORES, image_of_caption=OWNERS)
    result = evaluate_with_people(own, similarity=SCORES, image_of_caption=OWNERS)
    assert result.judgements is not None
    assert result.judgements.added == {"i2t": 0, "t2i": 0}
    assert dict(result.numbers) == dict(plain.numbers) == dict(result.judgements.before)


def test_the_numbers_of_both_are_kept_and_read_back(tmp_path: Path) -> None:
    result = evaluate_with_people(SAID, similarity=SCORES, image_of_caption=OWNERS, measures=["R@1", "MedR"])
    alone = evaluate(similarity=SCORES, image_of_caption=OWNERS, measures=["R@1", "MedR"])
    assert result.judgements is not None
    assert dict(result.judgements.before) == dict(alone.numbers)
    result.to_json(tmp_path / "result.json")
    read = Result.from_json(tmp_path / "result.json")
    assert read.judgements == result.judgements
    content = json.loads((tmp_path / "result.json").read_text())
    assert content["judgements"]["hashes"] == {"judgements.jsonl": "5eed"}
    assert content["judgements"]["graders"] == ["Ada", "Bo"]
    content["judgements"]["added"]["i2t"] += 1
    (tmp_path / "result.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="altered after it was written"):
        Result.from_json(tmp_path / "result.json")
    assert result.of_measures(["MedR"]).judgements.before.keys() == {"i2t/MedR", "t2i/MedR"}  # type: ignore[union-attr]


def test_results_with_and_without_are_not_compared() -> None:
    plain = evaluate(similarity=SCORES, image_of_caption=OWNERS)
    judged = evaluate(similarity=SCORES, image_of_caption=OWNERS, settings=EvaluationSettings(human_positives=SAID))
    with pytest.raises(UserError, match="right answers"):
        compare([plain, judged])


def test_no_printed_row_stands_beside_them() -> None:
    scores = np.random.default_rng(0).normal(size=(1000, 1000))
    own = np.arange(1000)
    plain = evaluate(similarity=scores, image_of_caption=own, protocol="one-caption-per-image", measures=["R@1"])
    judged = evaluate(
        similarity=scores,
        image_of_caption=own,
        protocol="one-caption-per-image",
        measures=["R@1"],
        settings=EvaluationSettings(human_positives=SAID),
    )
    assert published_beside(plain, "ladder_loss", dataset="flickr30k")
    with pytest.raises(UserError, match="printed rows count the annotation alone"):
        published_beside(judged, "ladder_loss", dataset="flickr30k")


def test_what_people_called_right_is_no_false_negative() -> None:
    data = ImageCaptions(tuple("abc"), ("x", "y", "z"), np.arange(3))
    scores = np.array([[0.5, 0.9, 0.1], [0.1, 0.9, 0.2], [0.9, 0.1, 0.5]])
    degrees = np.ones((3, 3))
    said = HumanPositives(np.array([[0, 1]]))
    found = []
    for human in (None, said):
        diagnosed = diagnose({"similarity": scores}, data, relevance=degrees, human_positives=human)
        wrong = find_false_negatives(diagnosed.lists["i2t"], top=1)
        found.append([(one.query, one.candidate) for one in wrong])
    assert found == [[(0, 1), (2, 0)], [(2, 0)]]


def test_a_gallery_may_lack_everything_that_was_judged() -> None:
    nothing = SAID.beside(positives_of(np.array([0]), 1), Fold(np.array([11]), np.array([33])))
    assert nothing["i2t"].candidate.tolist() == [0]


def test_files_are_read_with_their_own_bound(tmp_path: Path) -> None:
    data = ImageCaptions(tuple("abc"), ("x", "y", "z"), np.arange(3))
    path = tmp_path / "judgements.jsonl"
    for image, caption, grade, who in (("a", 1, 4, "Ada"), ("a", 1, 2, "Bo"), ("b", 2, 2, "Ada"), ("c", 0, 4, "Bo")):
        text = hash_of_text(data.captions[caption])
        add_judgement(path, Judgement(image, data.caption_ids[caption], grade, who, now(), text))
    found = read_human_positives(path, data)
    assert found.pairs.tolist() == [[0, 1], [2, 0]]
    assert (found.right_from, found.graders, found.hashes) == (
        3.0,
        ("Ada", "Bo"),
        {"judgements.jsonl": digest_of(path)},
    )
    assert read_human_positives([path], data, 2).pairs.tolist() == [[0, 1], [1, 2], [2, 0]]
    assert read_human_positives(str(path), data).pairs.tolist() == found.pairs.tolist()
    with pytest.raises(UserError, match="right_from must be a number"):
        read_human_positives(path, data, float("nan"))
