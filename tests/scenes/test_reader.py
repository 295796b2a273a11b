"""What the grammar writes is read back, and what people write besides is listed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.scenes import (
    Mention,
    SceneConfig,
    SceneRelevance,
    Statement,
    held_out_combinations,
    read_statement,
    read_text,
    sample_picture,
    write_query,
)


@pytest.fixture(scope="module")
def pictures():
    config = SceneConfig(captions_per_picture=8, seed=5)
    held_out = held_out_combinations()
    return [sample_picture(config, number, held_out) for number in range(120)]


def test_every_caption_and_query_reads_back_with_the_same_degrees(pictures):
    rng = np.random.default_rng(0)
    written = [caption for picture in pictures for caption in picture.captions]
    written += [write_query(p.scene, 1, 0, rng) for p in pictures for _ in range(3) if len(p.scene.objects) > 1]
    scenes = [picture.scene for picture in pictures]
    read = [read_text(text) for text, _ in written]
    assert not [(text, one.unknown) for (text, _), one in zip(written, read, strict=True) if one.unknown]
    stated = SceneRelevance(scenes, [statement for _, statement in written]).dense()
    understood = SceneRelevance(scenes, [one.statement or Statement((Mention(),)) for one in read]).dense()
    assert len(written) > 1000
    wrong = np.flatnonzero((stated != understood).any(axis=0))
    assert not [(written[n][0], read[n].statement) for n in wrong[:5].tolist()]


def test_facts_are_as_many_as_stated(pictures):
    for picture in pictures:
        for text, statement in picture.captions:
            understood = read_statement(text)
            assert understood is not None
            assert understood.facts == statement.facts, text


@pytest.mark.parametrize(
    ("text", "mentions", "relations", "count"),
    [
        ("Red STAR!", [Mention("star", "red")], (), None),
        ("the circle is red", [Mention("circle", "red")], (), None),
        ("2 hearts", [Mention("heart"), Mention("heart")], (), None),
        ("red", [Mention(colour="red")], (), None),
        (
            "two stars above a big heart",
            [Mention("star"), Mention("star"), Mention("heart", size="large")],
            (("above", 0, 2), ("above", 1, 2)),
            None,
        ),
        (
            "a star left of a heart above a cross",
            [Mention("star"), Mention("heart"), Mention("cross")],
            (("left of", 0, 1), ("above", 1, 2)),
            None,
        ),
        ("left of a star there is a heart", [Mention("star"), Mention("heart")], (("left of", 1, 0),), None),
        ("only a star and a heart", [Mention("star"), Mention("heart")], (), 2),
    ],
)
def test_what_people_write(text, mentions, relations, count):
    assert read_statement(text) == Statement(tuple(mentions), relations, count)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("a purple elephant", ("elephant",)),
        ("four stars", ("four",)),
        ("a star left of", ("left of",)),
        ("a red blue star", ("blue",)),
        ("two stars and two hearts", ("two", "hearts")),
        ("a dog on a beach", ("dog", "beach")),
    ],
)
def test_what_is_not_understood_is_listed(text, unknown):
    assert read_text(text).unknown == unknown
    assert read_statement(text) is None


def test_nothing_stated_is_nothing_read():
    assert [read_text(text).statement for text in ("", "a dog", "there is", "an object")] == [None] * 4


WORDS = ("a", "one", "two", "red", "star", "stars", "left of", "and", ",", "heart", "only", "objects", "is")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_read_without_complaint(text):
    statement = read_text(text).statement
    if statement is not None:
        assert Statement.from_plain(statement.to_plain()) == statement
        assert statement.facts > 0
