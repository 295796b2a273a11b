import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import (
    EvaluationSettings,
    HumanPositives,
    RankedLists,
    galleries,
    protocol_named,
    read_ranked_lists,
    similarity_source,
    write_degrees,
    write_levels,
    write_qrels,
    write_run,
)
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.evaluation.inputs import checked_degrees, read_degree_lines
from rungwise.evaluation.report import _trec_files

OWNERS = np.array([0, 0, 1, 3, 3, 3, 2])
IDS = (("i0", "i 1", "i2", "i3"), tuple(f"c{number}" for number in range(7)))
SHAPE = (4, 7)


@pytest.fixture
def scores():
    """Many ties, half of them below 0."""
    return np.random.default_rng(0).integers(-2, 2, SHAPE).astype(np.float32)


@pytest.fixture(params=[1, 10, 1 << 22])
def _blocks(request, monkeypatch):
    monkeypatch.setattr(_trec_files, "_BLOCK_VALUES", request.param)


def of(scores, protocol="full", **settings):
    source = (
        scores if isinstance(scores, RankedLists) else similarity_source(similarity=scores, image_of_caption=OWNERS)
    )
    rule = protocol_named(protocol)
    return list(galleries(source, OWNERS, rule.folds(OWNERS, 4), EvaluationSettings(**settings)))


def lines(files):
    return {file.name: file.read_text(encoding="utf-8").splitlines() for file in files}


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("depth", [1, 3, 1000])
def test_a_run_has_the_candidates_in_our_order_with_scores_that_float32_tells_apart(scores, tmp_path, depth):
    found = lines(write_run(tmp_path / "run.trec", of(scores), IDS, depth))
    written = [one.replace(" ", "%20") for one in IDS[0]]
    for name, matrix, queries, candidates in (
        ("run.i2t.trec", scores, written, IDS[1]),
        ("run.t2i.trec", scores.T, IDS[1], written),
    ):
        wanted = []
        for query, row in zip(queries, matrix.tolist(), strict=True):
            order = sorted(range(len(row)), key=lambda candidate: (-row[candidate], candidate))[:depth]
            for rank, candidate in enumerate(order, 1):
                wanted.append(f"{query} Q0 {candidates[candidate]} {rank} {len(order) - rank + 1} rungwise")
        assert sorted(found[name]) == sorted(wanted)


def test_the_scores_of_the_deepest_run_differ_in_float32():
    ends = np.array([1, 2, _trec_files.DEEPEST - 1, _trec_files.DEEPEST])
    assert len(set(ends.astype(np.float32).tolist())) == 4
    assert np.float32(_trec_files.DEEPEST + 1) == np.float32(_trec_files.DEEPEST)


@pytest.mark.parametrize("depth", [0, -1, (1 << 24) + 1])
def test_a_depth_beyond_float32_is_refused(scores, tmp_path, depth):
    with pytest.raises(UserError, match="^depth must be from 1 to 16,777,216, beyond which float32"):
        write_run(tmp_path / "run.trec", of(scores), IDS, depth)
    assert not list(tmp_path.iterdir())


def test_a_run_reads_back_as_the_rankings_that_it_was_written_from(scores, tmp_path):
    files = write_run(tmp_path / "run.trec", of(scores), IDS)
    lists = read_ranked_lists(files, *IDS)
    again = write_run(tmp_path / "again.trec", of(lists), IDS)
    assert [one.read_text() for one in files] == [one.read_text() for one in again]


def test_of_short_lists_of_one_direction_no_more_is_written(tmp_path):
    lists = RankedLists({"i2t": [[2, 0], [], [6], [3, 4, 5]]}, SHAPE)
    assert lines(write_run(tmp_path / "run", of(lists), IDS)) == {
        "run.i2t": [
            "i0 Q0 c2 1 2 rungwise", "i0 Q0 c0 2 1 rungwise", "i2 Q0 c6 1 1 rungwise", "i3 Q0 c3 1 3 rungwise",
            "i3 Q0 c4 2 2 rungwise", "i3 Q0 c5 3 1 rungwise",
        ]
    }  # fmt: skip


def test_qrels_are_what_counts_as_right(scores, tmp_path):
    found = lines(write_qrels(tmp_path / "q.qrels", of(scores), IDS))
    assert found["q.t2i.qrels"] == [f"c{c} 0 {'i%201' if i == 1 else f'i{i}'} 1" for c, i in enumerate(OWNERS)]
    assert found["q.i2t.qrels"][:3] == ["i0 0 c0 1", "i0 0 c1 1", "i%201 0 c2 1"]
    human = HumanPositives(np.array([[0, 6]]))
    found = lines(write_qrels(tmp_path / "h.qrels", of(scores, human_positives=human), IDS))
    assert "i0 0 c6 1" in found["h.i2t.qrels"]
    assert "c6 0 i0 1" in found["h.t2i.qrels"]
    assert len(found["h.t2i.qrels"]) == 8


def test_every_gallery_has_its_own_candidates(scores, tmp_path):
    folds = ConsecutiveFolds("halves", count=2, size=2).folds(OWNERS, 4)
    source = similarity_source(similarity=scores, image_of_caption=OWNERS)
    ranked = list(galleries(source, OWNERS, folds, EvaluationSettings()))
    found = lines(write_run(tmp_path / "run.trec", ranked, IDS))
    pairs = {(query, candidate) for line in found["run.i2t.trec"] for query, _, candidate, *_ in [line.split()]}
    first, second = ("c0", "c1", "c2"), ("c3", "c4", "c5", "c6")
    assert pairs == {
        (image, caption)
        for images, captions in ((("i0", "i%201"), first), (("i2", "i3"), second))
        for image in images
        for caption in captions
    }


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("levels", [1, 2, 7])
def test_levels_are_the_nearest_whole_numbers(scores, tmp_path, levels):
    degrees = np.random.default_rng(1).random(SHAPE) * 2.5 - 0.5
    degrees[0, 0] = np.nan
    files, largest = write_levels(
        tmp_path / "q.qrels", of(scores), IDS, checked_degrees(degrees, SHAPE, gaps=True), levels
    )
    assert largest == np.nanmax(degrees)
    wanted = {}
    for image in range(4):
        for caption in range(7):
            degree = degrees[image, caption]
            for level in range(1, levels + 1):
                if degree >= (level - 0.5) * largest / levels:
                    wanted[IDS[0][image].replace(" ", "%20"), f"c{caption}"] = level
    found = lines(files)
    assert {(q, c): int(v) for q, _, c, v in map(str.split, found["q.i2t.qrels"])} == wanted
    assert {(c, q): int(v) for q, _, c, v in map(str.split, found["q.t2i.qrels"])} == wanted


def test_no_level_is_written_of_nothing(scores, tmp_path):
    for degrees, levels, said in ((np.zeros(SHAPE), 2, "no degree of relevance is above 0"), (scores, 0, "at least 1")):
        with pytest.raises(UserError, match=said):
            write_levels(tmp_path / "q", of(scores), IDS, checked_degrees(degrees, SHAPE), levels)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_degrees_come_back_to_the_last_bit(tmp_path, kind):
    degrees = np.random.default_rng(2).normal(size=SHAPE).astype(kind) * kind(1e-3)
    degrees[1, :4] = 0
    pairs = write_degrees(tmp_path / "degrees.tsv", checked_degrees(degrees, SHAPE), SHAPE, IDS)
    assert pairs == 24
    np.testing.assert_array_equal(read_degree_lines(tmp_path / "degrees.tsv", *IDS), degrees)


def test_a_pair_without_a_degree_is_not_written_as_0(tmp_path):
    degrees = np.ones(SHAPE)
    degrees[2, 3] = np.nan
    with pytest.raises(UserError, match="relevance, row 2: a value is nan"):
        write_degrees(tmp_path / "degrees.tsv", checked_degrees(degrees, SHAPE), SHAPE, IDS)
    assert not list(tmp_path.iterdir())
