import json
import pickle
from copy import deepcopy
from dataclasses import asdict, replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.output import MOST_LINES
from rungwise.index import Answer, End, Hit, Index, Searcher, UnknownWord
from rungwise.index._answers import hits_of
from rungwise.index.stores import StoreHits
from tests.colour_model import ColourModel


def answer_of(count: int, before: int) -> Answer:
    """An answer of some hits, of which these stand before the end."""
    rungs = tuple(min(3, place + 1) if place < before else 4 for place in range(count))
    hits = tuple(Hit(f"{place}.jpg", 1 - place / count) for place in range(count))
    end = End(rungs, tuple(0.5 for _ in hits), shown=before, belief=0.9, source="unrelated texts")
    return Answer(hits, {"0.jpg": ("copy.jpg",)}, (UnknownWord("girraf", ("giraffe",)),), notes=("a note",), end=end)


def test_hits_are_lists_by_query_and_may_differ_in_length() -> None:
    found = StoreHits((("d", "b"), ("b",)), (np.array([0.5, 0.25], np.float32), np.array([1], np.float32)))
    assert hits_of(found) == [[Hit("d", 0.5), Hit("b", 0.25)], [Hit("b", 1.0)]]


def test_no_query_has_no_hits() -> None:
    assert hits_of(StoreHits((), ())) == []


def test_an_answer_prints_a_dozen_lines_with_the_end_among_them() -> None:
    for count, before in ((0, 0), (3, 2), (9, 4), (2000, 3), (2000, 1500)):
        lines = repr(answer_of(count, before)).splitlines()
        assert len(lines) <= MOST_LINES
        assert all(len(line) <= 120 for line in lines)
        shown = [line for line in lines if ".jpg" in line]
        more = [line for line in lines if "more hits" in line]
        assert len(shown) + (int(more[0].split()[1]) if more else 0) == count
    assert repr(answer_of(3, 2)).splitlines()[:5] == [
        "Answer: 3 pictures",
        "  1.000  exactly  0.jpg",
        "  0.667  close  1.jpg",
        "  -- relevance ends here --",
        "  0.333  2.jpg",
    ]
    assert "nothing relevant found" in repr(answer_of(3, 0))
    assert "relevance ends after 3 pictures" in repr(answer_of(3, 3))


def test_an_answer_of_a_filter_alone_has_no_scores_and_survives_json() -> None:
    answer = Answer((Hit("a.jpg", float("nan")),))
    read = Answer.from_json(answer.to_json())
    assert read == Answer.from_json(read.to_json())
    for shown in (repr(read), read.to_markdown(), read._repr_html_()):
        assert "nan" not in shown
    assert "  -  a.jpg" in repr(read)


def test_a_notebook_shows_a_dozen_pictures_with_their_bands(index: Index) -> None:
    answer = Searcher(index, ColourModel()).search("red")
    html = answer._repr_html_()
    assert html.count('src="data:image/jpeg;base64,') == len(answer.hits)
    assert all(hit.id in html for hit in answer.hits)
    assert answer.end is not None
    assert html.count("--band: #") == sum(rung < 4 for rung in answer.end.rungs)
    many = answer_of(2000, 5)._repr_html_()
    assert many.count("<figure") == 12
    assert "1,988 further hits" in many
    assert many.index("4.jpg") < many.index("relevance ends here") < many.index("5.jpg")


def test_names_of_strangers_cannot_become_html_or_markdown_or_latex() -> None:
    answer = Answer((Hit('<script>"a|b_c\n\x1b[31m', 0.5),), reading="<i>", notes=("<b>",))
    for drawn in (answer, answer.with_pictures(lambda _: b"jpeg")):
        html = drawn._repr_html_()
        assert not [one for one in ("<script", "<i>", "<b></b>", "\x1b") if one in html]
        assert "&lt;b&gt;" in html
    assert "a\\|b" in answer.to_markdown()
    assert r"b\_c" in answer.to_latex()


def test_pictures_are_no_part_of_the_value(index: Index) -> None:
    answer = Searcher(index, ColourModel()).search("red")
    bare = Answer.from_json(answer.to_json())
    assert bare == answer
    assert "data:image" not in bare._repr_html_()
    assert "_picture_of" not in asdict(answer)
    assert "_picture_of" not in answer.to_json()
    assert pickle.loads(pickle.dumps(answer)) == deepcopy(answer) == answer
    assert "data:image" not in replace(answer)._repr_html_()


def test_a_picture_that_cannot_be_read_is_named(index: Index) -> None:
    answer = Searcher(index, ColourModel()).search("red", k=1)
    path = index.item(answer.hits[0].id).path
    assert path is not None
    path.write_bytes(b"no picture")  # type: ignore[union-attr]
    html = answer._repr_html_()
    assert "data:image" not in html
    assert f'<div class="missing">{answer.hits[0].id}</div>' in html


def test_tables_and_frames_have_all_hits() -> None:
    answer = answer_of(30, 4)
    assert answer.to_markdown().splitlines()[:3] == [
        "| rank | id | score | band | degree | alike |",
        "|--:|:--|--:|:--|--:|--:|",
        "| 1 | 0.jpg | 1.000 | exactly | 0.500 | 1 |",
    ]
    assert answer.to_latex().count(r"\\") == 31
    frame = answer.to_frame()
    assert list(frame["id"]) == [hit.id for hit in answer.hits]
    assert list(frame["band"])[:5] == ["exactly", "close", "loosely related", "loosely related", ""]
    assert frame.index.tolist() == list(range(1, 31))
    unjudged = replace(answer, end=None).to_frame()
    assert unjudged["degree"].isna().all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hits": [{"id": "a", "score": 0.5}]}, "altered"),
        ({"hits": [{"id": "a", "score": "0.5"}]}, "hits.0.score"),
        ({"hits": [{"id": "a", "score": 0.5, "path": "/etc/passwd"}]}, "hits.0.path"),
        ({"format": "rungwise-result/1"}, "is not a rungwise-answer/1 file"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_an_altered_answer_is_refused(change: dict[str, object], says: str) -> None:
    text = json.dumps(json.loads(answer_of(3, 2).to_json()) | change)
    with pytest.raises(UserError, match=says):
        Answer.from_json(text)
