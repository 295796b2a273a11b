"""What sources share, and those that read captions.

Also tests rungwise.relevance._captions.
"""

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import CaptionPairSource, Relevance


class Table(CaptionPairSource):
    """Scores of caption with caption from a table; counts the largest block that was asked."""

    def __init__(self, table, owners, **options):
        super().__init__([str(position) for position in range(len(owners))], owners, **options)
        self.table = table
        self.largest = 0

    def pair_block(self, first, second):
        self.largest = max(self.largest, len(first) * len(second))
        return self.table[np.ix_(first, second)].astype(np.float32)


def by_hand(table, owners, images, reference, leave_one_out, paired=None):
    out = np.zeros((images, len(owners)))
    for image in range(images):
        group = [c for c, owner in enumerate(owners) if owner == image]
        if reference == "paired":
            group = group[:1] if paired is None else [c for c in [paired[image]] if c >= 0]
        for caption in range(len(owners)):
            scores = [table[r, caption] for r in group if not (leave_one_out and r == caption)]
            if scores:
                out[image, caption] = np.mean(scores) if reference == "mean" else max(scores)
    return out


def limit_chunks(monkeypatch, chunk_bytes):
    for module in ("_base", "_captions"):
        monkeypatch.setattr(f"rungwise.relevance.{module}.CHUNK_BYTES", chunk_bytes)


@pytest.mark.parametrize("reference", ["paired", "max", "mean"])
@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 300, 10**6])
def test_reference_choices_equal_a_loop(reference, leave_one_out, chunk_bytes, monkeypatch):
    limit_chunks(monkeypatch, chunk_bytes)
    draw = np.random.default_rng(0)
    owners = draw.integers(0, 9, 30).tolist()
    table = draw.normal(size=(30, 30))
    source = Table(table, owners, reference=reference, leave_one_out=leave_one_out, images=11)
    expected = by_hand(table, owners, 11, reference, leave_one_out)
    np.testing.assert_allclose(source.dense(), expected, rtol=1e-5, atol=1e-6)
    rows, columns = draw.integers(0, 11, 7), draw.integers(0, 30, 13)
    np.testing.assert_allclose(source.block(rows, columns), expected[np.ix_(rows, columns)], rtol=1e-5, atol=1e-6)


def test_the_paired_caption_can_be_given():
    draw = np.random.default_rng(0)
    table, owners = draw.normal(size=(6, 6)), [0, 0, 1, 1, 2, 2]
    paired = [1, -1, 4]
    source = Table(table, owners, reference=paired)
    np.testing.assert_allclose(source.dense(), by_hand(table, owners, 3, "paired", False, paired), rtol=1e-5)


def test_memory_is_bounded_by_the_chunk(monkeypatch):
    limit_chunks(monkeypatch, 4 * 1000)
    source = Table(np.ones((100, 100)), np.repeat(np.arange(20), 5))
    source.topk(3)
    assert source.largest <= 1000


def test_content_hash_tells_data_and_options_apart():
    table = np.eye(4)
    hashes = {
        Table(table, owners, reference=reference, leave_one_out=left).content_hash()
        for owners in ([0, 0, 1, 1], [0, 1, 0, 1])
        for reference in ("max", "mean")
        for left in (False, True)
    }
    assert len(hashes) == 8
    assert Table(table, [0, 0, 1, 1]).content_hash() == Table(table, [0, 0, 1, 1]).content_hash()


def test_a_source_is_a_relevance():
    assert isinstance(Table(np.eye(2), [0, 1]), Relevance)


@pytest.mark.parametrize(
    ("owners", "options", "message"),
    [
        ([0, -1], {}, "positions must lie in 0"),
        ([0, 5], {"images": 3}, "there are 3 images"),
        (
            [0, 1],
            {"reference": "best"},
            "reference must be 'paired', 'max', 'mean' or positions of captions, got 'best'",
        ),
        ([0, 1], {"reference": [0]}, "give one"),
        ([0, 1], {"reference": [0, 2]}, "names caption 2"),
    ],
)
def test_bad_input_gets_one_line(owners, options, message):
    with pytest.raises(UserError, match=message) as caught:
        Table(np.eye(2), owners, **options)
    assert "\n" not in str(caught.value)
