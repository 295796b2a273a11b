"""Both readings of R in a batch against nested loops, and every step asking the same block."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.losses import Ladder
from rungwise.models import JointEmbedding, Pairs, VSEConfig, captions_of
from rungwise.relevance import CIDErD, TfIdf
from rungwise.relevance.config import source_config
from rungwise.training.batches import BatchDegrees
from rungwise.training.config import DataConfig
from rungwise.training.distributed import Processes
from rungwise.training.engine import training_degrees
from rungwise.training.steps import Plain, StepContext
from rungwise.training.steps._strategies import CachedGradients, GlobalNegativesStep, Step

CAPTIONS = (
    "a dog in snow",
    "a cat asleep",
    "a white dog runs",
    "two cats and a dog",
    "snow on a roof",
    "the dog sleeps",
    "a cat in snow",
    "a roof of tin",
    "dogs",
)
OWNERS = np.array([2, 0, 2, 1, 3, 2, 0, 3, 4])
SPLITS = ("train", "val", "train", "train", "train")


@pytest.fixture
def data() -> ImageCaptions:
    rows = FeatureRows(np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32))
    return ImageCaptions(tuple("abcde"), CAPTIONS, OWNERS, splits=SPLITS, features=rows)


@pytest.fixture
def model() -> JointEmbedding:
    torch.manual_seed(0)
    text = GRUConfig(word_dimension=4, min_count=1)
    return JointEmbedding.create(VSEConfig(image=FeatureConfig(width=4), text=text, dimension=6), CAPTIONS)


@pytest.fixture
def pairs(model: JointEmbedding, data: ImageCaptions) -> Pairs:
    """Of images 4, 0, 2 and 3 in this order: places among pairs are not places in the collection."""
    return model.read(data, np.array([4, 0, 2, 3]))


BATCH = np.array([6, 0, 3, 1, 5, 2])


def nested_loops(source: TfIdf, data: ImageCaptions, pairs: Pairs, batch: np.ndarray, by_caption: bool) -> np.ndarray:
    """R(t_q, t_p) of the batch, one pair at a time; where it is asked by image, the highest over its captions."""
    block = np.zeros((len(batch), len(batch)), np.float32)
    for row, query in enumerate(batch):
        for column, candidate in enumerate(batch):
            t_q, t_p = int(pairs.captions[query]), int(pairs.captions[candidate])
            if by_caption:
                block[row, column] = source.pair_block([t_q], [t_p])[0, 0]
            else:
                own = [one for one in range(len(CAPTIONS)) if OWNERS[one] == OWNERS[t_q]]
                block[row, column] = max(source.pair_block([one], [t_p])[0, 0] for one in own)
    return block


@pytest.mark.parametrize("by_caption", [False, True], ids=["image", "batch"])
def test_degrees_of_a_batch_against_nested_loops(by_caption: bool, data: ImageCaptions, pairs: Pairs) -> None:
    source = TfIdf(CAPTIONS, OWNERS, images=5)
    degrees = BatchDegrees(source, by_caption)
    assert degrees.by_caption == by_caption
    got = degrees.of_batch(pairs, BATCH, torch.device("cpu"))
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), nested_loops(source, data, pairs, BATCH, by_caption), atol=1e-6)


def test_the_two_readings_differ(data: ImageCaptions, pairs: Pairs) -> None:
    source = TfIdf(CAPTIONS, OWNERS, images=5)
    by_image, by_caption = (
        BatchDegrees(source, one).of_batch(pairs, BATCH, torch.device("cpu")) for one in (False, True)
    )
    assert (by_image >= by_caption - 1e-6).all()
    assert (by_image > by_caption + 0.1).any()
    torch.testing.assert_close(by_caption, by_caption.T)


STEPS: list[Step] = [Plain(), CachedGradients(chunk=2), GlobalNegativesStep(), GlobalNegativesStep(chunk=4)]


@pytest.mark.parametrize("by_caption", [False, True], ids=["image", "batch"])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_every_step_asks_the_same_block(
    step: Step, by_caption: bool, data: ImageCaptions, model: JointEmbedding, pairs: Pairs
) -> None:
    reference = "batch" if by_caption else "image"
    found = training_degrees(DataConfig(relevance="tfidf", reference=reference), data)
    assert found is not None
    asked: list[tuple[list[int], list[int]]] = []

    class Spy(BatchDegrees):
        def block(self, queries, captions):
            asked.append((np.asarray(queries).tolist(), np.asarray(captions).tolist()))
            return super().block(queries, captions)

    degrees = Spy(found, by_caption)
    batch = np.array([one for one in range(len(pairs)) if SPLITS[OWNERS[pairs.captions[one]]] == "train"])[::-1]
    work = StepContext(model, pairs, degrees, nullcontext, Processes(), list(model.parameters()))
    step.check(model, Ladder(), Processes(), False)
    value = step.backward(work, Ladder(thresholds=(0.3,)), batch, seed=1).value
    own = pairs.captions[batch]
    assert asked == [((own if by_caption else OWNERS[own]).tolist(), own.tolist())]
    gradients = [one.grad.clone() for one in model.parameters() if one.grad is not None]
    model.zero_grad()
    plain = Plain().backward(work, Ladder(thresholds=(0.3,)), batch, seed=1).value
    torch.testing.assert_close(value, plain)
    for one, other in zip(gradients, [p.grad for p in model.parameters() if p.grad is not None], strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    # And by hand: the source knows the training split alone.
    training = data.split("train")
    source = source_config("tfidf").build(training)
    place = {name: at for at, name in enumerate(training.caption_ids)}
    for row, t_q in enumerate(own):
        for column, t_p in enumerate(own):
            first = (
                [data.caption_ids[t_q]]
                if by_caption
                else [data.caption_ids[one] for one in range(len(CAPTIONS)) if OWNERS[one] == OWNERS[t_q]]
            )
            expected = max(source.pair_block([place[one]], [place[data.caption_ids[t_p]]])[0, 0] for one in first)
            assert degrees.of_batch(pairs, batch, torch.device("cpu"))[row, column] == pytest.approx(expected, abs=1e-6)


def test_a_source_without_caption_pairs_is_one_line(data: ImageCaptions, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="CIDErD: has no degrees of captions with captions; tfidf, cbow"):
        BatchDegrees(CIDErD(CAPTIONS, OWNERS, images=5), by_caption=True)
    training = data.split("train")
    TfIdf(training.captions, training.image_of_caption, images=len(training)).save(tmp_path / "saved")
    for relevance in ("cider-d", str(tmp_path / "saved")):
        config = DataConfig(relevance=relevance, reference="batch")
        with pytest.raises(UserError, match="has no degrees of captions with captions") as caught:
            BatchDegrees(training_degrees(config, data), by_caption=True)
        message = str(caught.value)
        assert "\n" not in message
        assert relevance in message
        assert "_PartOf" not in message


def test_all_pairs_by_image(data: ImageCaptions) -> None:
    source = TfIdf(CAPTIONS, OWNERS, images=5)
    np.testing.assert_array_equal(BatchDegrees(source).dense(), source.dense())
    assert captions_of(data, np.array([2])).tolist() == [0, 2, 5]
    assert replace(DataConfig(), reference="batch").reference == "batch"
