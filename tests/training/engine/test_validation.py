from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, evaluate, positives_from_labels
from rungwise.models import JointEmbedding, Pairs
from rungwise.relevance import Degrees
from rungwise.relevance._array import ArrayRelevance
from rungwise.training.config import BestEpoch
from rungwise.training.engine import Validation
from rungwise.training.engine import _validation as validation

VALIDATION = np.arange(36, 48)


@pytest.fixture(scope="module")
def model(coloured: ImageCaptions) -> JointEmbedding:
    from tests.training.conftest import GRUConfig, ImageConfig, VSEConfig

    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=24)
    config = VSEConfig(image=image, text=GRUConfig(word_dimension=8, min_count=1), dimension=16)
    return JointEmbedding.create(config, coloured.captions)


@pytest.fixture(scope="module")
def pairs(model: JointEmbedding, coloured: ImageCaptions, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    return model.read(coloured, VALIDATION, cache=tmp_path_factory.mktemp("cache"))


def degrees(data: ImageCaptions) -> Degrees:
    """Random degrees of the validation pairs; no others are known."""
    matrix = np.full((len(data), len(data.captions)), np.nan, np.float32)
    draw = np.random.default_rng(0)
    captions = np.flatnonzero(data.image_of_caption >= 36)
    matrix[np.ix_(VALIDATION, captions)] = draw.random((len(VALIDATION), len(captions)))
    return ArrayRelevance(matrix, data.image_of_caption, len(data))


def test_numbers_are_those_of_an_evaluation(model: JointEmbedding, pairs: Pairs, coloured: ImageCaptions) -> None:
    numbers = Validation(BestEpoch(), pairs, nullcontext).measure(model)
    part = pairs.collection
    expected = evaluate(**model.on(part).for_evaluation(), image_of_caption=part.image_of_caption)
    assert numbers["rsum"] == expected["rsum"]
    assert numbers["t2i/R@5"] == expected["t2i/R@5"]
    assert list(numbers) == ["rsum", *(f"{way}/R@{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))]


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("measure", ["t2i/CS@10", "nDCG@5", "Nsum"])
def test_graded_measures_read_the_degrees_of_the_validation_split(
    measure: str,
    in_memory: bool,
    model: JointEmbedding,
    pairs: Pairs,
    coloured: ImageCaptions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not in_memory:
        monkeypatch.setattr(validation, "IN_MEMORY", 10)
    source = degrees(coloured)
    numbers = Validation(BestEpoch(measure=measure), pairs, nullcontext, source).measure(model)
    part = pairs.collection
    expected = evaluate(
        **model.on(part).for_evaluation(),
        image_of_caption=part.image_of_caption,
        relevance=source.block(pairs.images, pairs.captions),
        measures=["rsum", measure.rpartition("/")[2]],
    )
    assert numbers["rsum"] == expected["rsum"]
    if measure == "nDCG@5":
        assert numbers[measure] == pytest.approx((expected["i2t/nDCG@5"] + expected["t2i/nDCG@5"]) / 2)
        assert numbers["i2t/nDCG@5"] == expected["i2t/nDCG@5"]
    else:
        assert numbers[measure] == expected[measure]


def test_a_protocol_says_what_is_right(model: JointEmbedding, pairs: Pairs, coloured: ImageCaptions) -> None:
    labelled = replace(coloured, labels=tuple((str(number % 4),) for number in range(48)))
    of_labels = replace(pairs, data=labelled)
    numbers = Validation(BestEpoch(measure="MAP", protocol="labels"), of_labels, nullcontext).measure(model)
    part = of_labels.collection
    expected = evaluate(
        **model.on(part).for_evaluation(),
        image_of_caption=part.image_of_caption,
        protocol="labels",
        settings=EvaluationSettings(positives=positives_from_labels(part.labels, part.image_of_caption)),
    )
    assert numbers["labels/MAP"] == pytest.approx((expected["i2t/MAP"] + expected["t2i/MAP"]) / 2)
    assert numbers["labels/i2t/MAP"] == expected["i2t/MAP"]
    assert numbers["rsum"] == Validation(BestEpoch(), pairs, nullcontext).measure(model)["rsum"]
    with pytest.raises(UserError, match="snapshot.protocol: protocol labels: .* has no class labels"):
        Validation(BestEpoch(measure="MAP", protocol="labels"), pairs, nullcontext)


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        (BestEpoch(measure="nDCG@10"), "snapshot.measure: nDCG@10 needs degrees of relevance .* there are none; name"),
        (BestEpoch(measure="t2i/R@13"), "t2i/R@13 reads 13 candidates of a query, .* t2i has 12; take a smaller K"),
        (BestEpoch(measure="R@13"), "R@13 reads 13 candidates of a query, and in the validation split t2i has 12"),
        (BestEpoch(measure="rsum", protocol="coco-5k"), "snapshot.protocol: protocol coco-5k does not fit the data"),
        (BestEpoch(measure="rsum", protocol="eccv"), "snapshot.protocol: protocol eccv needs"),
    ],
)
def test_what_no_epoch_could_be_measured_with_is_one_line(snapshot: BestEpoch, message: str, pairs: Pairs) -> None:
    with pytest.raises(UserError, match=message) as caught:
        Validation(snapshot, pairs, nullcontext)
    assert "\n" not in str(caught.value)


def test_degrees_that_a_measure_refuses_are_one_line(pairs: Pairs, coloured: ImageCaptions) -> None:
    matrix = degrees(coloured).dense() - 0.5
    source = ArrayRelevance(matrix, coloured.image_of_caption, len(coloured))
    with pytest.raises(UserError, match="nDCG@5 cannot be had with these degrees: .* is negative, .*unit_interval: tr"):
        Validation(BestEpoch(measure="nDCG@5"), pairs, nullcontext, source)
    Validation(BestEpoch(measure="CS@5"), pairs, nullcontext, source)


def test_degrees_that_are_not_known_are_one_line(pairs: Pairs, coloured: ImageCaptions) -> None:
    matrix = degrees(coloured).dense()
    matrix[40, pairs.captions[3]] = np.nan
    source = ArrayRelevance(matrix, coloured.image_of_caption, len(coloured))
    with pytest.raises(UserError, match="1 of .* have none; name a source in snapshot.relevance"):
        Validation(BestEpoch(measure="CS@5"), pairs, nullcontext, source)
