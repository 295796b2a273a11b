import json

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read
from rungwise.evaluation import EvaluationSettings, evaluate, positives_from_json, positives_from_labels
from rungwise.evaluation.judgements._positives import positives_from_lists

IMAGES, CAPTIONS = 5000, 6000


def big(seed=0):
    """As large as the protocols of COCO want."""
    generator = np.random.default_rng(seed)
    owners = np.sort(np.concatenate([np.arange(IMAGES), generator.integers(0, IMAGES, CAPTIONS - IMAGES)]))
    image = generator.standard_normal((IMAGES, 3), dtype=np.float32)
    return image, image[owners] + generator.standard_normal((CAPTIONS, 3), dtype=np.float32), owners


def slow_average_precisions(scores, right):
    """(MAP, MAP@R, R-precision, any hit at 1) of one query by the definitions; nothing of the package."""
    order = sorted(range(len(scores)), key=lambda candidate: (-scores[candidate], candidate))
    hits, full, at_r, inside = 0, 0.0, 0.0, 0
    for place, candidate in enumerate(order, start=1):
        if candidate in right:
            hits += 1
            full += hits / place
            if place <= len(right):
                at_r += hits / place
                inside += 1
    return [100 * value / len(right) for value in (full, at_r, inside)] + [100.0 * (order[0] in right)]


def test_positives_of_both_directions_are_apart_and_queries_without_any_are_left_out():
    image, text, owners = big()
    asked = {"i2t": {3: [0, 5999, 17], 4000: [1]}, "t2i": {7: [4999, 0, 2], 8: [3]}}
    lists = {
        "i2t": [asked["i2t"].get(query, []) for query in range(IMAGES)],
        "t2i": [asked["t2i"].get(query, []) for query in range(CAPTIONS)],
    }
    result = evaluate(
        image_embeddings=image,
        text_embeddings=text,
        image_of_caption=owners,
        protocol="eccv",
        measures=["MAP", "MAP@R", "RPrecision", "R@1"],
        settings=EvaluationSettings(positives={way: positives_from_lists(own) for way, own in lists.items()}),
    )
    similarity = image @ text.T
    for way, scores in (("i2t", similarity), ("t2i", similarity.T)):
        wanted = np.mean([slow_average_precisions(scores[q], set(own)) for q, own in asked[way].items()], axis=0)
        got = [result[f"{way}/{measure}"] for measure in ("MAP", "MAP@R", "RPrecision", "R@1")]
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
        assert result.remarks[f"{way}/MAP"] == {"no positive, left out": result.queries[way] - 2}


def test_own_captions_as_positives_give_what_the_full_protocol_gives():
    image, text, owners = big(1)
    own = {
        "i2t": positives_from_lists([np.flatnonzero(owners == query) for query in range(IMAGES)]),
        "t2i": positives_from_lists([[owner] for owner in owners]),
    }
    given = {"image_embeddings": image, "text_embeddings": text, "image_of_caption": owners}
    measures = ["R@1", "Recall@5", "MedR", "MAP", "rsum"]
    full = evaluate(**given, measures=measures)
    assert (
        evaluate(**given, measures=measures, protocol="cxc", settings=EvaluationSettings(positives=own)).numbers
        == full.numbers
    )


@pytest.mark.parametrize("classes", [2, 40])  # with two classes, a query has more positives than are counted singly
def test_labels_are_judged_over_the_full_list(classes):
    generator = np.random.default_rng(2)
    labels = generator.integers(0, classes, 150)
    similarity = generator.integers(0, 30, (150, 150)) / 30.0
    result = evaluate(
        similarity=similarity,
        image_of_caption=np.arange(150),
        protocol="labels",
        settings=EvaluationSettings(positives=positives_from_labels(labels.tolist(), np.arange(150))),
    )
    for way, scores in (("i2t", similarity), ("t2i", similarity.T)):
        right = [set(np.flatnonzero(labels == label).tolist()) for label in labels]
        wanted = np.mean([slow_average_precisions(scores[query], right[query])[0] for query in range(150)])
        assert result[f"{way}/MAP"] == pytest.approx(wanted, rel=1e-9)


def test_captions_may_have_labels_of_their_own():
    found = positives_from_labels([("a", "b"), ("c",)], caption_labels=["b", "c", "d"])
    assert found["i2t"].candidate.tolist() == [0, 1]
    assert found["t2i"].counts.tolist() == [1, 1, 0]


def test_ids_that_the_collection_lacks_are_listed_or_refused(tmp_path):
    data = ImageCaptions(
        tuple(f"COCO_val2014_{n:012d}.jpg" for n in range(200)),
        ("x",) * 200,
        np.arange(200),
        caption_ids=tuple(str(1000 + n) for n in range(200)),
    )
    forth = {str(n): [1000 + n] for n in range(200)} | {"7": [1007, 9999]}
    (tmp_path / "i2t.json").write_text(json.dumps(forth))
    (tmp_path / "t2i.json").write_text('{"1000": [0, 1]}')
    found, issues = positives_from_json(tmp_path / "i2t.json", tmp_path / "t2i.json", data)
    assert found["i2t"].counts.tolist() == [1] * 200
    assert [issue.detail for issue in issues] == ["'9999'"]
    (tmp_path / "i2t.json").write_text('{"7": [9999], "0": [1000]}')
    with pytest.raises(UserError, match=r"i2t.json: '9999' is not in collection, one of 1 such ids"):
        positives_from_json(tmp_path / "i2t.json", tmp_path / "t2i.json", data)


@pytest.mark.parametrize(
    ("protocol", "positives", "said"),
    [
        ("labels", None, "protocol labels needs items that share a class label; give positives="),
        ("cxc", None, "protocol cxc needs CxC's positives; give positives="),
        ("full", {}, "protocol full takes the captions written for the image as right; leave positives out"),
        ("labels", {}, "there are none for i2t"),
        ("labels", dict.fromkeys(("i2t", "t2i"), positives_from_lists([[0]])), "1 queries"),
        (
            "labels",
            dict.fromkeys(("i2t", "t2i"), positives_from_lists([[0], [7]])),
            "candidate 7 does not exist among 2",
        ),
    ],
)
def test_positives_that_do_not_fit_are_refused(protocol, positives, said):
    settings = EvaluationSettings(positives=positives)
    with pytest.raises(UserError, match=said):
        evaluate(similarity=np.eye(2), image_of_caption=[0, 1], protocol=protocol, settings=settings)


def first_hundred(scores):
    some = np.argpartition(-scores, 100, axis=1)[:, :100]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1)
    return np.take_along_axis(some, order, axis=1)


@pytest.mark.real_data
@pytest.mark.slow
def test_cxc_and_eccv_equal_the_authors_program(real_data):
    metrics = pytest.importorskip("eccv_caption").Metrics()
    folder = real_data / "coco5k"
    data = read(folder / "captions.tsv", captions_only=True)
    generator = np.random.default_rng(0)
    image = generator.standard_normal((len(data), 8), dtype=np.float32)
    noise = generator.standard_normal((len(data.captions), 8), dtype=np.float32)
    text = image[data.image_of_caption] + noise
    results = {}
    for name in ("cxc", "eccv"):
        files = (folder / f"{name}_image_to_caption.json", folder / f"{name}_caption_to_image.json")
        positives, issues = positives_from_json(*files, data)
        assert len(issues) == {"cxc": 0, "eccv": 2}[name]
        results[name] = evaluate(
            image_embeddings=image,
            text_embeddings=text,
            image_of_caption=data.image_of_caption,
            protocol=name,
            measures=["R@1", "R@5", "MAP@R", "RPrecision"],
            settings=EvaluationSettings(positives=positives),
        )
    image_numbers = [int(name.rpartition("_")[2].removesuffix(".jpg")) for name in data.image_ids]
    caption_numbers = np.array([int(name) for name in data.caption_ids])
    scores = image @ text.T
    first = caption_numbers[first_hundred(scores)].tolist()
    of_captions = np.array(image_numbers)[first_hundred(scores.T)].tolist()
    # Two of its captions are outside the gallery: the program counts them among R, though nobody can retrieve them.
    known = set(caption_numbers.tolist())
    checked = metrics.eccv_gts["i2t"]
    metrics.eccv_gts["i2t"] = {key: [one for one in own if one in known] for key, own in checked.items()}
    theirs = metrics.compute_all_metrics(
        dict(zip(image_numbers, first, strict=True)),
        dict(zip(caption_numbers.tolist(), of_captions, strict=True)),
        target_metrics=("cxc_recalls", "eccv_r1", "eccv_map_at_r", "eccv_rprecision"),
        Ks=(1, 5),
    )
    ours = {"cxc_r1": ("cxc", "R@1"), "cxc_r5": ("cxc", "R@5")} | {
        f"eccv_{name}": ("eccv", measure)
        for name, measure in (("r1", "R@1"), ("map_at_r", "MAP@R"), ("rprecision", "RPrecision"))
    }
    for name, (protocol, measure) in ours.items():
        for way in ("i2t", "t2i"):
            assert results[protocol][f"{way}/{measure}"] == pytest.approx(100 * theirs[name][way], rel=1e-9), name
