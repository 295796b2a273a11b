import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rungwise
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.integrations.trec import measured_by, qrels_of, run_of

MEASURES = ("R@1", "R@5", "R@10", "Recall@10", "MRR", "MAP", "P@10", "nDCG@10")
PICTURES = 100  # ranx takes minutes for the files of all 1,000
QUICK = ("ir_measures", "pytrec_eval")


@st.composite
def worlds(draw):
    """Few distinct scores, most of them tied and many negative; any number of captions an image; ids with blanks."""
    images, captions = draw(st.integers(1, 8)), draw(st.integers(1, 14))
    owners = draw(st.lists(st.integers(0, images - 1), min_size=captions, max_size=captions))
    cells = images * captions
    scores = draw(st.lists(st.integers(-3, 3), min_size=cells, max_size=cells))
    degrees = draw(st.lists(st.floats(0, 5, width=32), min_size=cells, max_size=cells))
    near = draw(st.sampled_from([1.0, 1e-12]))  # scores that differ in float64 alone
    data = ImageCaptions(
        tuple(f"picture {number}.jpg" for number in range(images)),
        tuple(f"caption {number}" for number in range(captions)),
        np.array(owners),
    )
    shape = (images, captions)
    return data, 0.9 + near * np.array(scores).reshape(shape), np.array(degrees).reshape(shape)


def assert_equal(ours, programs, folder, qrels, measures):
    for way in ("i2t", "t2i"):
        for program in programs:
            theirs = measured_by(program, folder / f"run.{way}.trec", folder / f"{qrels}.{way}.qrels", measures)
            for name, value in theirs.items():
                assert value == pytest.approx(ours[f"{way}/{name}"], abs=1e-6), (program, way, name)


def assert_programs_agree(world, programs):
    data, scores, degrees = world
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The annotation as degrees, so that nDCG reads what the qrels say.
        own = (np.arange(len(data))[:, None] == data.image_of_caption).astype(float)
        asked = {"data": data, "similarity": scores, "split": "all"}
        ours = rungwise.evaluate(
            **asked, relevance=own, measures=MEASURES, write_run=folder / "run.trec", write_qrels=folder / "right.qrels"
        )
        # An image without captions has 0 by our nDCG, and no line in the qrels.
        shared = MEASURES if own.any(axis=1).all() else MEASURES[:-1]
        assert_equal(ours, programs, folder, "right", shared)
        if degrees.max() > 0:
            rungwise.evaluate(
                **asked, relevance=degrees, measures=["R@1"], write_qrels=folder / "graded.qrels", levels=6
            )
            graded = rungwise.evaluate(**asked, relevance=str(folder / "graded.i2t.qrels"), measures=["nDCG@10"])
            other = rungwise.evaluate(**asked, relevance=str(folder / "graded.t2i.qrels"), measures=["nDCG@10"])
            assert graded.numbers == other.numbers
            _assert_graded(graded, programs, folder)


def _assert_graded(ours, programs, folder):
    """Their mean leaves out queries to which nothing is relevant, and ours counts 0."""
    for way in ("i2t", "t2i"):
        values = ours.per_query(f"{way}/nDCG@10")
        file = folder / f"graded.{way}.qrels"
        known = len({line.split()[0] for line in file.read_text(encoding="utf-8").splitlines()})
        for program in programs:
            theirs = measured_by(program, folder / f"run.{way}.trec", file, ["nDCG@10"])
            assert theirs["nDCG@10"] == pytest.approx(values.sum() / known, abs=1e-6)


@settings(max_examples=25)
@given(worlds())
def test_files_give_our_numbers_in_programs_of_others(world):
    assert_programs_agree(world, QUICK)


@pytest.mark.slow
@settings(max_examples=5)
@given(worlds())
def test_files_give_our_numbers_in_ranx(world):
    assert_programs_agree(world, ("ranx",))


def flickr8k(real_data):
    """Test pictures with two captions each for what stands beside a picture: words of the one against the others."""
    from rungwise.data import read

    data = read(real_data / "flickr8k", captions_only=True).split("test").select(range(PICTURES))
    words = {
        word: place for place, word in enumerate(sorted({w for text in data.captions for w in text.lower().split()}))
    }
    counts = np.zeros((len(data.captions), len(words)), dtype=np.float32)
    for row, text in zip(counts, data.captions, strict=True):
        for word in text.lower().split():
            row[words[word]] += 1
    counts *= np.log(len(counts) / (counts > 0).sum(axis=0))
    counts /= np.linalg.norm(counts, axis=1, keepdims=True)
    first = np.array([own[0] for own in data.captions_of_image])
    similarity = counts[first] @ counts.T
    similarity[np.arange(len(first)), first] = -1  # the picture's own words say nothing of its caption
    degrees = np.clip(np.stack([counts[list(own)].mean(axis=0) for own in data.captions_of_image]) @ counts.T, 0, None)
    return data, similarity, degrees


@pytest.mark.slow
@pytest.mark.real_data
def test_flickr8k_through_three_programs(real_data, tmp_path):
    data, similarity, degrees = flickr8k(real_data)
    own = (np.arange(len(data))[:, None] == data.image_of_caption).astype(float)
    asked = {"data": data, "similarity": similarity, "split": "all"}
    ours = rungwise.evaluate(
        **asked,
        relevance=own,
        measures=MEASURES,
        write_run=tmp_path / "run.trec",
        depth=len(data.captions),
        write_qrels=tmp_path / "right.qrels",
    )
    assert_equal(ours, (*QUICK, "ranx"), tmp_path, "right", MEASURES)
    rungwise.evaluate(**asked, relevance=degrees, measures=["R@1"], write_qrels=tmp_path / "graded.qrels", levels=10)
    graded = rungwise.evaluate(**asked, relevance=str(tmp_path / "graded.i2t.qrels"), measures=["nDCG@10"])
    assert_equal(graded, (*QUICK, "ranx"), tmp_path, "graded", ["nDCG@10"])


def test_in_memory_is_as_by_files(tmp_path):
    rng = np.random.default_rng(0)
    scores, degrees = rng.integers(-3, 3, (5, 12)) / 2, rng.random((5, 12))
    queries, candidates = [f"q{n}" for n in range(5)], [f"c{n}" for n in range(12)]
    data = ImageCaptions(tuple(queries), tuple(candidates), np.arange(12) % 5, tuple(candidates))
    rungwise.evaluate(
        data=data, similarity=scores, relevance=degrees, measures=["R@1"], split="all",
        write_run=tmp_path / "run.trec", write_qrels=tmp_path / "q.qrels", levels=4,
    )  # fmt: skip
    run, qrels = run_of(scores, queries, candidates), qrels_of(degrees, queries, candidates, 4)
    for program in QUICK:
        files = measured_by(program, tmp_path / "run.i2t.trec", str(tmp_path / "q.i2t.qrels"), MEASURES)
        assert measured_by(program, run, qrels, MEASURES) == pytest.approx(files, rel=1e-12)


@pytest.mark.parametrize("program", QUICK)
def test_queries_that_a_run_lacks_are_refused_or_count_0(program):
    run, qrels = {"a": {"x": 1.0}, "z": {"x": 1.0}}, {"a": {"x": 1}, "b": {"x": 1}}
    with pytest.raises(UserError, match="^the run lacks 1 of 2 queries, the first is 'b'; give a whole run, or"):
        measured_by(program, run, qrels, ["R@1"])
    assert measured_by(program, run, qrels, ["R@1", "MRR"], missing_queries="zero") == {"R@1": 50.0, "MRR": 50.0}


@pytest.mark.parametrize("name", ["MedR", "MAP@5", "nDCG@10(ties=expected)", "CS@5", "rsum"])
def test_what_the_programs_do_not_have_is_refused(name):
    with pytest.raises(UserError, match="pytrec_eval has no such measure; ask for R, Recall, P, MRR, MAP"):
        measured_by("pytrec_eval", {"a": {"x": 1.0}}, {"a": {"x": 1}}, [name])


def test_what_does_not_fit_gets_a_line():
    with pytest.raises(UserError, match=r"^1 queries and 2 candidates for an array of shape \(2, 1\); give an id each"):
        run_of([[0.1], [0.2]], ["q"], ["a", "b"])
    with pytest.raises(UserError, match="^qrels need a degree above 0 and levels of at least 1, got 0 and 3"):
        qrels_of([[0.0]], ["q"], ["a"], 3)
    with pytest.raises(UserError, match="^the qrels name no query"):
        measured_by("pytrec_eval", {}, {}, ["R@1"])
