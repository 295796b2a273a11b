"""Every sampler can be named, and gives what its function gives."""

import numpy as np
import pytest

from rungwise.core import UserError, from_plain
from rungwise.training.batches import ByLength, Drawn, Sampler, Shuffled
from rungwise.training.batches._sampling import LabelLists, OneCaptionPerImageBatches, RelevanceAware
from rungwise.training.config import TrainConfig

IMAGE = np.repeat(np.arange(20), 3)


class Rings:
    """Neighbours in number describe each other somewhat."""

    def block(self, images, captions):
        apart = np.abs(np.subtract.outer(np.asarray(images), IMAGE[np.asarray(captions)]))
        return np.where(apart == 0, 1.0, np.where(apart == 1, 0.7, 0.0)).astype(np.float32)

    def dense(self):
        return self.block(np.arange(20), np.arange(60))


def drawn(**changes) -> Drawn:
    values = {
        "lengths": np.arange(60) % 7 + 3,
        "image": IMAGE,
        "labels": [["even"] if number % 2 == 0 else ["odd"] for number in range(20)],
        "relevance": Rings(),
        "batch_size": 8,
        "seed": 3,
    }
    return Drawn(**values | changes)


@pytest.mark.parametrize(
    "sampler", [Shuffled(), ByLength(pool=3), OneCaptionPerImageBatches(), RelevanceAware()], ids=repr
)
def test_an_epoch_goes_through_every_pair_once_and_is_repeated_exactly(sampler: Sampler) -> None:
    first, again, next_one = (sampler.epochs(drawn())(epoch) for epoch in (0, 0, 1))
    assert sorted(np.concatenate(first).tolist()) == list(range(60))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in next_one]
    assert max(len(batch) for batch in first) <= 8


def test_each_does_what_it_is_for() -> None:
    def spread(sampler: Sampler) -> float:
        asked = drawn()
        return float(np.mean([asked.lengths[batch].std() for batch in sampler.epochs(asked)(0)]))

    assert spread(ByLength()) < 0.5 * spread(Shuffled())
    assert all(len(set(IMAGE[batch])) == len(batch) for batch in OneCaptionPerImageBatches().epochs(drawn())(0))

    def near(sampler: Sampler) -> float:
        degrees = [Rings().block(IMAGE[batch], batch) for batch in sampler.epochs(drawn())(0)]
        return float(np.mean([np.mean((block > 0) & (block < 1)) for block in degrees]))

    assert near(RelevanceAware(at_least=0.5, below=1.0)) > 1.5 * near(Shuffled())
    lists = LabelLists(irrelevant=2).epochs(drawn())(0)
    assert sum(len(batch) for batch in lists) == 60
    assert all((IMAGE[batch.captions_of_images[:, 1:]] % 2 != batch.images[:, None] % 2).all() for batch in lists)


def test_options_that_cannot_be_met_are_one_line() -> None:
    with pytest.raises(UserError, match="by_length.pool: must be at least 1"):
        ByLength(pool=0)
    with pytest.raises(UserError, match="relevance_aware reads relevance degrees"):
        RelevanceAware().epochs(drawn(relevance=None))
    with pytest.raises(UserError, match="no class labels"):
        LabelLists().epochs(drawn(labels=[]))(0)


@pytest.mark.parametrize(
    ("value", "sampler"),
    [
        ("shuffled", Shuffled()),
        ({"kind": "by_length", "pool": 5}, ByLength(pool=5)),
        ("one_caption_per_image", OneCaptionPerImageBatches()),
        ({"kind": "relevance_aware", "at_least": 0.3}, RelevanceAware(at_least=0.3)),
        ({"kind": "label_lists", "irrelevant": 9}, LabelLists(irrelevant=9)),
    ],
)
def test_a_configuration_names_it(value: object, sampler: Sampler) -> None:
    config = from_plain(TrainConfig, {"sampler": value}, "run.yaml")
    assert config.sampler == sampler
    assert config.needs_relevance == isinstance(sampler, RelevanceAware)
