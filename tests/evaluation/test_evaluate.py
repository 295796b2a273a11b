"""Also tests rungwise.evaluation.inputs._scores."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, ndcg_score

from rungwise.core import UserError
from rungwise.evaluation import (
    EvaluationSettings,
    Provenance,
    Reranked,
    Result,
    evaluate,
    refuse_own_opinion,
    similarity_source,
)
from rungwise.metrics import R
from rungwise.metrics import _streaming as streaming
from rungwise.relevance import ModelScores, TfIdf, Visual
from rungwise.relevance.combine import mean


def world(images=30, per_image=3, width=16, seed=0):
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(images), per_image)
    image = generator.standard_normal((images, width), dtype=np.float32)
    text = image[owners] + 2 * generator.standard_normal((len(owners), width), dtype=np.float32)
    return image, text, owners


class Blocks:
    """A relevance that answers blocks and counts what it was asked for."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.asked = 0

    def block(self, images, captions):
        self.asked += len(images) * len(captions)
        return self.matrix[np.ix_(images, captions)].astype(np.float32)


def test_every_kind_of_input_gives_the_same_numbers(tmp_path):
    image, text, owners = world()
    similarity = image @ text.T
    relevance = np.random.default_rng(1).random(similarity.shape).astype(np.float32)
    asked = {"image_of_caption": owners, "measures": ["R@1", "rsum", "MedR", "CS@10", "nDCG@5"]}
    wanted = evaluate(similarity=similarity, relevance=relevance, **asked)

    np.save(tmp_path / "s.npy", similarity)
    np.save(tmp_path / "i.npy", image)
    np.save(tmp_path / "t.npy", text)
    mapped = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "sit"}
    inputs = [
        {"similarity": torch.from_numpy(similarity)},
        {"similarity": torch.from_numpy(similarity).requires_grad_()},
        {"similarity": similarity.tolist()},
        {"similarity": mapped["s"]},
        {"similarity": lambda images, captions: similarity[np.ix_(images, captions)]},
        {"similarity": lambda images, captions: torch.from_numpy(similarity)[images][:, captions]},
        {"image_embeddings": image, "text_embeddings": text},
        {"image_embeddings": mapped["i"], "text_embeddings": mapped["t"]},
        {"image_embeddings": torch.from_numpy(image), "text_embeddings": torch.from_numpy(text)},
        {"image_embeddings": image.astype(np.float64), "text_embeddings": text.astype(np.float64)},
        {"image_embeddings": image, "text_embeddings": text, "similarity_function": lambda a, b: a @ b.T},
    ]
    degrees = [relevance, torch.from_numpy(relevance), Blocks(relevance), relevance.tolist()]
    for position, given in enumerate(inputs):
        result = evaluate(**given, relevance=degrees[position % len(degrees)], **asked)
        assert result.numbers == pytest.approx(wanted.numbers, rel=1e-12), position


def test_half_precision_embeddings_are_read_as_float32():
    image, text, owners = (one.astype(np.float16) if one.dtype == np.float32 else one for one in world())
    wanted = evaluate(
        image_embeddings=image.astype(np.float32), text_embeddings=text.astype(np.float32), image_of_caption=owners
    )
    for a, b in ((image, text), (torch.from_numpy(image), torch.from_numpy(text))):
        assert evaluate(image_embeddings=a, text_embeddings=b, image_of_caption=owners).numbers == wanted.numbers
    brain = [torch.from_numpy(x.astype(np.float32)).bfloat16() for x in (image, text)]
    rounded = evaluate(image_embeddings=brain[0].float(), text_embeddings=brain[1].float(), image_of_caption=owners)
    assert (
        evaluate(image_embeddings=brain[0], text_embeddings=brain[1], image_of_caption=owners).numbers
        == rounded.numbers
    )


def test_double_precision_similarity_is_not_rounded():
    similarity = np.array([[1.0, 1.0 + 1e-12]])
    result = evaluate(similarity=similarity, image_of_caption=[0, 0], relevance=[[0.0, 1.0]], measures=["nDCG@1"])
    assert result["i2t/nDCG@1"] == 100.0


def test_totals_are_sums_over_both_directions():
    image, text, owners = world()
    result = evaluate(
        image_embeddings=image,
        text_embeddings=text,
        image_of_caption=owners,
        relevance=np.abs(image @ text.T),
        measures=["rsum", "Nsum", "Nsum(non_gt)"],
    )
    for total, family, option in (("rsum", "R", ""), ("Nsum", "NCS", ""), ("Nsum(non_gt)", "NCS", "(non_gt)")):
        parts = [result[f"{way}/{family}@{k}{option}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
        assert result[total] == pytest.approx(sum(parts))


def test_ndcg_and_average_precision_are_scikit_learns():
    image, text, owners = world()
    similarity = image @ text.T
    relevance = np.random.default_rng(1).random(similarity.shape)
    result = evaluate(
        similarity=similarity, image_of_caption=owners, relevance=relevance, measures=["nDCG@7", "MAP", "nDCG@90"]
    )
    assert result["i2t/nDCG@7"] == pytest.approx(100 * ndcg_score(relevance, similarity, k=7), rel=1e-9)
    assert result["t2i/nDCG@90"] == pytest.approx(100 * ndcg_score(relevance.T, similarity.T), rel=1e-9)
    precisions = [average_precision_score(owners == i, similarity[i]) for i in range(len(image))]
    np.testing.assert_allclose(result.per_query("i2t/MAP"), 100 * np.array(precisions), rtol=1e-9)


def test_graded_measures_ask_the_relevance_once_or_for_long_lists_twice(monkeypatch):
    image, text, owners = world()
    source = Blocks(np.ones((30, 90)))
    evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=owners, relevance=source)
    assert source.asked == 0
    evaluate(
        image_embeddings=image,
        text_embeddings=text,
        image_of_caption=owners,
        relevance=source,
        measures=["NCS@1", "CS@5", "SR@3"],
        settings=EvaluationSettings(chunk=7),
    )
    assert source.asked == 30 * 90  # short lists of captions are kept while the images go by
    monkeypatch.setattr(streaming, "_KEPT", 20)
    evaluate(
        image_embeddings=image, text_embeddings=text, image_of_caption=owners, relevance=source, measures=["CS@25"]
    )
    assert source.asked == (1 + 2) * 30 * 90


def test_embeddings_are_compared_as_they_come():
    image, text = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.9, 0.1], [30.0, 20.0]])
    inner = evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=[0, 1], measures=["R@1"])
    assert inner["i2t/R@1"] == 50.0  # image 0 prefers the long caption


def test_embeddings_that_are_not_normalised_are_warned_of_with_their_norms():
    image, text, owners = world()
    unit = text / np.linalg.norm(text, axis=1, keepdims=True)
    result = evaluate(image_embeddings=image, text_embeddings=unit.astype(np.float16), image_of_caption=owners)
    norms = np.linalg.norm(image, axis=1)
    [warning] = result.warnings
    assert warning.startswith(f"image_embeddings are not normalised (norms {norms.min():.3g} to {norms.max():.3g})")
    image /= norms[:, None]
    assert evaluate(image_embeddings=image, text_embeddings=unit, image_of_caption=owners).warnings == ()
    assert evaluate(similarity=3 * image @ unit.T, image_of_caption=owners).warnings == ()


def test_queries_carry_the_ids_that_were_given():
    image, text, owners = world()
    known = Provenance(image_ids=[f"i{n}.jpg" for n in range(30)], caption_ids=range(100, 190))
    result = evaluate(
        similarity=image @ text.T, image_of_caption=owners, protocol="one-caption-per-image", provenance=known
    )
    assert result.query_ids("i2t")[:2] == ("i0.jpg", "i1.jpg")
    assert result.query_ids("t2i")[:2] == ("100", "103")
    np.testing.assert_array_equal(result.image_of_query("t2i"), np.arange(30))


GOOD = {"similarity": np.eye(3), "image_of_caption": [0, 1, 2]}
NAN = np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"similarity": np.zeros((6, 2)), "image_of_caption": [0, 0, 0, 1, 1, 1]}, "is transposed"),
        ({"similarity": np.zeros((2, 5)), "image_of_caption": [0, 0, 0, 1, 1, 1]}, "names 6 captions"),
        ({"similarity": np.zeros(6), "image_of_caption": [0] * 6}, "two axes"),
        (
            {
                "similarity": np.eye(3),
                "image_of_caption": [0, 1, 2],
                "provenance": Provenance(image_ids=["a", "b", "a"]),
            },
            "image_ids: 'a' stands 2 times, at 0 and 2",
        ),
        (
            {"similarity": np.eye(3), "image_of_caption": [0, 1, 2], "provenance": Provenance(caption_ids=["a", "b"])},
            "caption_ids name 2 captions but there are 3",
        ),
        ({"similarity": np.eye(3), "image_of_caption": [0, 1, 3]}, "caption 2: image 3 does not exist among 3 images"),
        ({"similarity": np.eye(3), "image_of_caption": [0, 1, -1]}, "caption 2: -1 is negative"),
        ({"similarity": np.eye(3), "image_of_caption": [0.0, 1.0, 2.0]}, "whole number"),
        ({"similarity": np.eye(3), "image_of_caption": []}, "image_of_caption is empty"),
        ({"similarity": NAN, "image_of_caption": [0, 1, 3]}, "similarity, row 2: a value is nan"),
        ({"similarity": np.where(np.isnan(NAN), np.inf, 1), "image_of_caption": [0, 1, 3]}, "row 2: a value is inf"),
        ({"similarity": lambda i, c: NAN[i][:, c], "image_of_caption": [0, 1, 3]}, "similarity, row 2: a value is nan"),
        ({"similarity": lambda i, c: np.zeros((len(c), len(i))), "image_of_caption": [0, 1, 1]}, "answer \\(images"),
        ({"image_of_caption": [0]}, "either similarity, or"),
        ({**GOOD, "image_embeddings": np.eye(3)}, "either similarity, or"),
        ({"image_embeddings": np.eye(3), "image_of_caption": [0]}, "either similarity, or"),
        (
            {"image_embeddings": np.eye(3), "text_embeddings": np.eye(2), "image_of_caption": [0, 1]},
            "image_embeddings have 3 dimensions and text_embeddings 2",
        ),
        (
            {"image_embeddings": np.eye(3), "text_embeddings": np.eye(3), "image_of_caption": [0, 1]},
            "hold 3 captions but image_of_caption names 2",
        ),
        (
            {"image_embeddings": np.ones((4, 3)), "text_embeddings": NAN, "image_of_caption": [0, 1, 2, 3]},
            "text_embeddings, row 2: a value is nan",
        ),
        (
            {"image_embeddings": NAN, "text_embeddings": np.ones((4, 3)), "image_of_caption": [0, 1, 2, 3]},
            "image_embeddings, row 2: a value is nan",
        ),
        (
            {
                "image_embeddings": np.full((1, 2), 1e30),
                "text_embeddings": np.full((1, 2), 1e30),
                "image_of_caption": [0],
            },
            "overflow",
        ),
        ({**GOOD, "relevance": np.eye(4), "measures": ["CS@2"]}, "relevance has shape"),
        ({**GOOD, "relevance": np.ones((2, 3)), "measures": ["CS@2"]}, "relevance has shape"),
        ({**GOOD, "similarity": [[1, 2], [3]]}, "similarity: rows of different lengths"),
        ({**GOOD, "relevance": [[1, 2], [3]], "measures": ["CS@2"]}, "relevance: rows of different lengths"),
        (
            {**GOOD, "relevance": TfIdf(["a", "b"], [0, 1]), "measures": ["CS@2"]},
            r"relevance has shape \(2, 2\) but the similarity \(3, 3\); give the relevance of these data",
        ),
        ({**GOOD, "relevance": np.full((3, 3), np.nan), "measures": ["CS@2"]}, "relevance, row 0: a value is nan"),
        ({**GOOD, "measures": ["CS@2"]}, "CS@2 needs relevance degrees"),
        ({**GOOD, "measures": ["Q@2"]}, "there is no measure 'Q@2'"),
        ({**GOOD, "measures": [5]}, "measures: 5 is no measure; give names such as 'R@1', or objects such as"),
        ({**GOOD, "measures": [R]}, "measures: the class R is no measure; give names"),
        ({**GOOD, "similarity_function": "cosine"}, "similarity_function: str is no function; give a function of two"),
        ({**GOOD, "protocol": "half"}, "protocol 'half' is not known"),
    ],
)
def test_each_mistake_gets_its_one_line(given, message):
    with pytest.raises(UserError, match=message) as caught:
        evaluate(**given)
    assert "\n" not in str(caught.value)


def test_a_scorer_may_have_images_without_captions_at_the_end():
    similarity = np.array([[0.9, 0.1], [0.2, 0.3], [0.95, 0.1]])
    source = similarity_source(
        similarity=lambda images, captions: similarity[np.ix_(images, captions)], image_of_caption=[0, 1], images=3
    )
    result = evaluate(similarity=source, image_of_caption=[0, 1], measures=["R@1"])
    assert result["t2i/R@1"] == 50.0
    assert result.remarks == {"i2t/R@1": {"no positive, left out": 1}}


def test_a_model_is_not_judged_by_its_own_opinion():
    image, text, owners = world()
    own = ModelScores(image @ text.T, owners, model="5eed", images=30)
    words = TfIdf([f"caption {n}" for n in range(90)], owners)
    asked = {"image_embeddings": image, "text_embeddings": text, "image_of_caption": owners, "measures": ["CS@10"]}
    for relevance in (own, mean([words, own]), Visual(image, owners, through=mean([own, words]))):
        assert evaluate(relevance=relevance, **asked, provenance=Provenance(model_hash="other")).model_hash == "other"
        with pytest.raises(UserError, match=r"the opinion of the model that is judged \(5eed\)"):
            evaluate(relevance=relevance, **asked, provenance=Provenance(model_hash="5eed"))
    assert evaluate(relevance=words, **asked, provenance=Provenance(model_hash="5eed"))["i2t/CS@10"]
    first = similarity_source(similarity=image @ text.T, image_of_caption=owners)
    both = Reranked(first, image @ text.T, second_hash="5eed")
    with pytest.raises(UserError, match="the opinion of the model"):
        refuse_own_opinion(own, "other", both)


def test_the_beginning_of_a_fingerprint_names_a_model():
    image, _, owners = world()
    fingerprint = "5eed" * 16
    with pytest.raises(UserError, match="the opinion of the model that is judged"):
        refuse_own_opinion(Visual(image, owners, model=fingerprint[:12]), fingerprint)
    refuse_own_opinion(Visual(image, owners, model=fingerprint[:2]), fingerprint)
    refuse_own_opinion(Visual(image, owners, model=fingerprint[:11] + "0"), fingerprint)


@pytest.mark.parametrize("reference", ["max", "mean", "paired"])
def test_a_result_names_the_captions_that_its_degrees_compare_with(reference, tmp_path):
    degrees = TfIdf(["a red star", "a blue heart", "a red heart"], [0, 1, 1], reference=reference)
    given = {"similarity": np.eye(2, 3, dtype=np.float32), "image_of_caption": [0, 1, 1], "relevance": degrees}
    result = evaluate(**given, measures=["CS@2"])
    assert result.reference == reference
    assert f"degrees: {degrees.title()}, reference {reference}" in result.notes()
    result.to_json(tmp_path / "result.json")
    assert Result.from_json(tmp_path / "result.json").reference == reference
    assert evaluate(**given, measures=["R@1"]).reference == ""
    assert evaluate(**given | {"relevance": degrees.dense()}, measures=["CS@2"]).reference == ""
