"""Which captions go with which rows, when images are missing, unreadable or asked for in any order."""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from rungwise.data import ImageCaptions, Issue
from rungwise.data.files import FeatureRows
from rungwise.models import TrainableEncoder, captions_of
from rungwise.models._training_pairs import pair_up
from rungwise.similarity import Inner
from tests.models.test_contracts import Letters

OWNERS = [5, 0, 2, 0, 1, 5, 3, 2, 0]  # image 4 has no captions


@dataclass(frozen=True)
class SomeRows:
    """Rows of the images at ``kept`` among those asked for."""

    kept: np.ndarray
    issues: tuple[Issue, ...] = ()
    computed: int = 0
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.kept)

    def take(self, positions: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.kept[positions])


def collection(**more: object) -> ImageCaptions:
    captions = tuple(f"{'word ' * number}of {owner}" for number, owner in enumerate(OWNERS))
    return ImageCaptions(
        tuple("abcdef"), captions, np.array(OWNERS), caption_ids=tuple("stuvwxyz!"), name="six", **more
    )


def words(texts: list[str]) -> list[list[str]]:
    return [text.split() for text in texts]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        ([0, 1, 2, 3, 4, 5], [0, 2, 3, 4]),
        ([5, 4, 0, 2], [0, 1, 2, 3]),
        ([5, 4, 0, 2], [0, 3]),
        ([4], [0]),
        ([3, 1], []),
    ],
)
def test_every_caption_comes_with_its_own_row(asked: list[int], kept: list[int]) -> None:
    data = collection()
    pairs = pair_up(data, np.array(asked), SomeRows(np.array(kept, np.int64)), words)
    readable = [asked[one] for one in kept]
    assert pairs.images.tolist() == readable
    assert pairs.captions.tolist() == [caption for caption, owner in enumerate(OWNERS) if owner in readable]
    assert len(pairs) == len(pairs.captions) == len(pairs.texts) == len(pairs.image)
    for number, caption in enumerate(pairs.captions):
        assert pairs.images[pairs.image[number]] == OWNERS[caption]
        # The row is that of the caption's image: SomeRows gives the position among those asked for.
        assert asked[int(pairs.rows.take(pairs.image[[number]])[0])] == OWNERS[caption]
        assert pairs.texts[number] == data.captions[caption].split()
    assert pairs.lengths.tolist() == [len(data.captions[caption].split()) for caption in pairs.captions]


def test_captions_of_some_images() -> None:
    data = collection()
    assert captions_of(data, np.array([2, 0])).tolist() == [1, 2, 3, 7, 8]
    assert captions_of(data, np.array([4])).tolist() == []
    assert captions_of(data, np.array([], int)).tolist() == []


@pytest.mark.parametrize("kind", ["files", "features", "neither"])
def test_pairs_as_a_collection_of_their_own(kind: str) -> None:
    more = {
        "files": {"paths": tuple(Path(name) for name in "abcdef"), "splits": ("train",) * 6},
        "features": {"features": FeatureRows(np.eye(6, 2, dtype=np.float32))},
        "neither": {},
    }[kind]
    data = collection(**more)
    pairs = pair_up(data, np.array([5, 4, 0, 2]), SomeRows(np.array([0, 1, 3])), words)
    part = pairs.collection
    assert part.image_ids == ("f", "e", "c")
    assert part.caption_ids == tuple("suxz")
    assert part.captions == tuple(data.captions[caption] for caption in pairs.captions)
    assert [part.image_ids[owner] for owner in part.image_of_caption] == [
        data.image_ids[data.image_of_caption[caption]] for caption in pairs.captions
    ]
    assert part.name == "six"
    if kind == "files":
        assert part.paths == (Path("f"), Path("e"), Path("c"))
        assert part.splits == ("train",) * 3
    elif kind == "features":
        assert part.features is not None
        assert data.features is not None
        np.testing.assert_array_equal(part.features[:], data.features[[5, 4, 2]])
    else:
        assert not part.has_pictures


class Trainable(Letters):
    """As far as the default of a trained encoder goes."""

    scores_of = TrainableEncoder.scores_of


def test_scores_for_validation_are_those_of_the_pairs(tmp_path: Path) -> None:
    paths = tuple(tmp_path / name for name in "abcdef")
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number + 1]))
    data = collection(paths=paths)
    pairs = pair_up(data, np.array([5, 4, 0, 2]), SomeRows(np.array([0, 1, 3])), words)
    model, opened = Trainable(Inner()), []

    @contextmanager
    def autocast():
        opened.append("opened")
        yield
        opened.append("closed")

    scores = model.scores_of(pairs, autocast)
    assert opened == ["opened", "closed"]
    assert scores.shape == (3, len(pairs))
    for number, caption in enumerate(pairs.captions):
        expected = model.block([paths[image] for image in pairs.images], [data.captions[caption]])[:, 0]
        np.testing.assert_allclose(scores.block(np.arange(3), [number])[:, 0], expected, atol=1e-6)
    np.testing.assert_array_equal(scores.data.image_of_caption, pairs.image)


def test_scores_for_validation_leave_out_what_can_no_longer_be_read(tmp_path: Path) -> None:
    paths = tuple(tmp_path / name for name in "abcdef")
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number + 1]))
    data = collection(paths=paths)
    pairs = pair_up(data, np.arange(6), SomeRows(np.arange(6)), words)
    paths[0].write_bytes(b"")
    scores = Trainable(Inner()).scores_of(pairs, contextmanager(lambda: iter([None])))
    assert scores.data.image_ids == ("b", "c", "d", "e", "f")
    assert scores.shape == (5, 6)
    assert scores.block(np.arange(5), np.arange(6)).shape == (5, 6)
