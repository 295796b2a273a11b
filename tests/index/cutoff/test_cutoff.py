"""Where relevance ends in searches.

Also tests rungwise.index.cutoff._calibration, rungwise.index.cutoff._hit_texts and
rungwise.index.search._state_cache.
"""

import re
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import FEWEST_QUERIES, UNJUDGED_RUNGS, Calibration
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Answer, GivenVector, Index, Query, Searcher, SearchOptions, Term, Words, parse_where
from rungwise.index.cutoff import _calibration as calibration
from rungwise.index.cutoff._hit_texts import HitTexts, known_of_texts, length_of
from rungwise.index.cutoff._null_sample import NullSample
from rungwise.index.cutoff._picture_standard import PictureStandard
from rungwise.index.maintenance import verify_index
from rungwise.index.query import Rarity
from rungwise.models import DualEncoder, EncodedImages, PairScorer
from rungwise.similarity import Cosine

WIDTH, TOPICS, EACH = 24, 20, 30
_RNG = np.random.default_rng(0)
CENTRES = _RNG.normal(size=(TOPICS + 5, WIDTH)).astype(np.float32)
"""Topics; the last ones have no pictures."""
ROWS = CENTRES[np.arange(TOPICS * EACH) % TOPICS] + 0.35 * _RNG.normal(size=(TOPICS * EACH, WIDTH)).astype(np.float32)


class Topical(DualEncoder):
    """A text is near the topics that it is about; rows of features are their own vectors."""

    dimension, fingerprint, similarity = WIDTH, "topical", Cosine()
    reads_pictures = False

    def encode_image(self, pictures, *, progress=None, cache=None) -> EncodedImages:
        return EncodedImages(_units(np.asarray(pictures[:], np.float32)), np.arange(len(pictures)))

    def encode_text(self, texts) -> np.ndarray:
        rows = []
        for text in texts:
            noise = np.random.default_rng(zlib.crc32(text.encode())).normal(size=WIDTH)
            named = [CENTRES[int(topic)] for topic in re.findall(r"(?:about|of) (\d+)", text)]
            rows.append(np.sum(named, axis=0) + 0.5 * noise if named else noise)
        return _units(np.array(rows, np.float32))

    def unknown_words(self, text: str) -> tuple[str, ...]:
        return ("xyzzy",) if "xyzzy" in text else ()


def _units(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _calibration(model: Topical = Topical()) -> Calibration:  # noqa: B008  # it has no state
    queries = [f"asked {n} about {n % TOPICS}" for n in range(60)] + [
        f"asked {n} of {TOPICS + n % 5}" for n in range(20)
    ]
    similarity = model.encode_text(queries) @ _units(ROWS).T
    topics = np.array([int(query.split()[-1]) for query in queries])
    relevance = (topics[:, None] == np.arange(len(ROWS)) % TOPICS).astype(float)
    return Calibration.fit(similarity, relevance, source="topics", model_fingerprint="topical")


CALIBRATION = _calibration()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Who changes it takes a copy."""
    ids = tuple(f"p{row}" for row in range(len(ROWS)))
    captions = tuple(f"picture number {row}" for row in range(len(ROWS)))
    data = ImageCaptions(
        ids, captions, np.arange(len(ROWS)), features=FeatureRows(ROWS), columns={"n": tuple(range(len(ROWS)))}
    )
    made = Index.build(data, Topical(), tmp_path_factory.mktemp("endings") / "index")
    made.keep_calibration(CALIBRATION)
    return made


@pytest.fixture
def index(made: Index, tmp_path: Path) -> Index:
    """A copy."""
    return Index.open(shutil.copytree(made.folder, tmp_path / "index"))


def search(index: Index, query: Query | str, k: int = 60, **other) -> Answer:
    where = other.pop("where", None)
    return Searcher(index, Topical()).search(
        query, k, where=parse_where(where) if where else None, options=SearchOptions(**{"words": "off", **other})
    )


def test_what_is_relevant_stands_before_the_end(index: Index) -> None:
    answer = search(index, "some words about 7")
    end = answer.end
    assert end is not None
    assert end.source == "topics"
    assert abs(end.shown - EACH) <= 3
    assert end.belief > 0.9
    assert [rung < 4 for rung in end.rungs] == [place < end.shown for place in range(60)]
    right = [int(hit.id[1:]) % TOPICS == 7 for hit in answer.hits]
    assert np.mean(right[: end.shown]) > 0.9
    assert end.advice == ()
    off = search(index, "some words about 7", end=False)
    assert off.end is None
    assert off.hits == answer.hits


def test_what_the_index_lacks_is_said_and_hits_are_there_all_the_same(index: Index) -> None:
    answer = search(index, f"xyzzy of {TOPICS + 2}", k=10)
    assert answer.end is not None
    assert answer.end.nothing
    assert answer.end.belief < 0.5
    assert set(answer.end.rungs) == {4}
    assert len(answer.hits) == 10
    assert "leave out 'xyzzy', which the model does not know" in answer.end.advice


def test_pages_agree_on_the_end(index: Index) -> None:
    searcher, options = Searcher(index, Topical()), SearchOptions(words="off")
    whole = searcher.search("words about 3", 60, options=options)
    pages = [searcher.search("words about 3", 20, offset=at, options=options) for at in (0, 20, 40)]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert tuple(rung for page in pages for rung in page.end.rungs) == whole.end.rungs
    assert {page.end.shown for page in pages} == {whole.end.shown}


def test_a_filter_leaves_the_judgement_as_it_is(index: Index) -> None:
    everything = search(index, "words about 3", k=600)
    rung = dict(zip((hit.id for hit in everything.hits), everything.end.rungs, strict=True))
    some = search(index, "words about 3", k=600, where="n < 100")
    assert dict(zip((hit.id for hit in some.hits), some.end.rungs, strict=True)) == {
        one: of for one, of in rung.items() if int(one[1:]) < 100
    }
    assert some.end.belief == everything.end.belief
    topics = "n in (3, 23, 43, 63)"
    none = search(index, "words about 5", where=topics)
    assert none.end.nothing
    assert "the filter leaves out all" in none.end.advice[0]
    within = search(index, "words about 3", where=topics)
    assert within.end.shown == 4, "all that pass are relevant: the null is that of the whole index"


def test_a_picture_that_has_all_words_stands_before_the_end(index: Index) -> None:
    answer = search(index, "picture number 77", k=5, words="on")
    assert answer.end.rungs[0] < 4
    assert answer.hits[0].id == "p77"
    far = search(index, f"picture number 77 of {TOPICS + 2}", k=5, words="on")
    assert "p77" not in [hit.id for hit in far.hits[: far.end.shown]], "one word is missing"


def test_pictures_are_judged_by_the_scores_alone_where_the_model_reads_none(index: Index) -> None:
    vector = _units(CENTRES[4:5])
    answer = search(index, Query((Term(GivenVector(vector, "four")),)))
    assert answer.end is None or answer.end.source == Calibration.unsupervised().source
    outlier = np.full((1, WIDTH), 0.1, np.float32)
    index.picture_store.upsert(["odd"], outlier, [{"captions": [], "n": 1}])
    alone = search(index, Query((Term(GivenVector(outlier, "odd")),)), k=5)
    assert alone.end is None or alone.end.shown >= 1


class Seeing(Topical):
    """A pattern is about nothing; counts how often pictures are encoded."""

    reads_pictures = True

    def __init__(self) -> None:
        self.encoded = 0

    def encode_image(self, pictures, *, progress=None, cache=None) -> EncodedImages:
        self.encoded += len(pictures)
        noise = [np.random.default_rng(zlib.crc32(one)).normal(size=WIDTH) for one in pictures]
        return EncodedImages(_units(np.array(noise, np.float32)), np.arange(len(pictures)))


def _given(vector: np.ndarray, weight: float = 1.0) -> Term:
    return Term(GivenVector(np.atleast_2d(np.float32(vector)), "given"), weight)


def test_pictures_are_compared_with_pictures_of_nothing(index: Index) -> None:
    model, options = Seeing(), SearchOptions(words="off")
    searcher = Searcher(index, model)
    searcher.search("words about 3", 5, options=options)
    assert not model.encoded, "searches by words do not pay for it"
    like = searcher.search(Query((_given(CENTRES[4]),)), 40, options=options).end
    assert like is not None
    assert like.source == PictureStandard.source
    assert like.names == UNJUDGED_RUNGS
    assert like.shown == pytest.approx(EACH, abs=3)
    assert like.rungs[0] == 1
    assert like.remark == ""
    nothing = searcher.search(Query((_given(-CENTRES[:TOPICS].sum(axis=0)),)), 5, options=options).end
    assert nothing is not None
    assert nothing.nothing
    assert nothing.remark == "nothing is much like it here"
    assert set(nothing.rungs) == {4}
    assert model.encoded == 24, "they are encoded once"


def test_words_with_pictures_and_pictures_that_are_wanted_less_are_judged_by_the_scores_alone(index: Index) -> None:
    model = Seeing()
    for terms in (
        (_given(CENTRES[4]), Term(Words("about 4"))),
        (_given(CENTRES[4]), _given(CENTRES[5], -0.3)),
    ):
        end = Searcher(index, model).search(Query(terms), 5, options=SearchOptions(words="off")).end
        assert end is None or end.source == Calibration.unsupervised().source
    assert not model.encoded


def test_where_no_hit_stands_out_it_is_said(index: Index) -> None:
    """Only without judgements: names that were learnt say it themselves."""
    (index.folder / "calibration.json").unlink()
    plain = Index.open(index.folder)
    ends = [
        search(plain, f"asked {n} about {n % TOPICS} and of {(n + 7) % TOPICS} and of {n * 3 % TOPICS}").end
        for n in range(20)
    ]
    assert all(end is not None and end.names == UNJUDGED_RUNGS for end in ends)
    for end in ends:
        assert end is not None
        poor = "no picture stands out clearly; these come nearest"
        assert end.remark == (poor if end.shown and min(end.rungs) > 1 else "")
    assert len({end.remark for end in ends if end is not None}) == 2, "some queries have a best match, and others none"
    certain = search(plain, "picture number 77", words="on").end
    assert certain is not None
    assert certain.shown
    assert certain.remark == "", "its caption has all words"


class Backwards(PairScorer):
    fingerprint = "backwards"

    def block(self, images, captions) -> np.ndarray:
        return np.arange(len(images), dtype=np.float32)[:, None] * np.ones((1, len(captions)), np.float32)


def test_reranking_says_which_come_first_and_not_how_many(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = search(index, "words about 3", k=40)
    assert plain.end is not None
    reordered = list(reversed([hit.id for hit in plain.hits[:20]]))
    monkeypatch.setattr(
        Searcher, "_reordering", lambda *_: lambda ids: reordered + [one for one in ids if one not in reordered]
    )
    turned = search(index, "words about 3", k=40, rerank=Backwards())
    assert [hit.id for hit in turned.hits[:20]] == reordered
    assert (turned.end.rungs, turned.end.shown) == (plain.end.rungs, plain.end.shown)


def test_the_index_comes_before_the_model_and_the_model_before_nothing(index: Index, tmp_path: Path) -> None:
    model = Topical()
    model.calibration_file = tmp_path / "calibration.json"
    replace(CALIBRATION, source="of the model").save(model.calibration_file)
    searcher = Searcher(index, model)
    assert searcher.search("about 3").end.source == "topics"
    (index.folder / "calibration.json").unlink()
    searcher = Searcher(Index.open(index.folder), model)
    assert searcher.search("about 3").end.source == "of the model"
    index.keep_calibration(replace(CALIBRATION, source="anew"))
    assert searcher.on(Index.open(index.folder)).search("about 3").end.source == "anew"


def test_without_a_calibration_texts_that_fit_nothing_are_the_standard(index: Index) -> None:
    (index.folder / "calibration.json").unlink()
    searcher = Searcher(Index.open(index.folder), Topical())
    answer = searcher.search("words about 3", 60)
    assert answer.end is not None
    assert "unrelated" in answer.end.source
    assert answer.notes == ()
    assert answer.end.shown > 0
    assert all(int(hit.id[1:]) % TOPICS == 3 for hit in answer.hits[: min(answer.end.shown, 10)])


class Mute(Topical):
    """Has one vector for all texts."""

    def encode_text(self, texts) -> np.ndarray:
        return _units(np.ones((len(texts), WIDTH), np.float32))


def test_a_model_that_tells_no_texts_apart_is_searched_all_the_same(index: Index) -> None:
    (index.folder / "calibration.json").unlink()
    answer = Searcher(Index.open(index.folder), Mute()).search("words")
    assert len(answer.hits) == 10
    assert answer.end is not None
    assert answer.end.nothing, "no text stands out from those that fit nothing"


@pytest.mark.parametrize("content", [b"{", b'{"format": "rungwise-calibration", "version": 1}', b"[]"])
def test_a_damaged_calibration_stops_no_search(index: Index, content: bytes) -> None:
    (index.folder / "calibration.json").write_bytes(content)
    answer = search(Index.open(index.folder), "words about 3")
    assert answer.end is not None
    (note,) = answer.notes
    assert "calibration.json" in note
    assert note.endswith("until then hits are judged without it")
    wrong = [check.wrong for check in verify_index(index.folder) if check.wrong]
    assert len(wrong) == 1
    assert "calibration.json" in wrong[0]


def test_a_calibration_of_another_model_is_refused(index: Index) -> None:
    other = replace(CALIBRATION, model_fingerprint="another")
    with pytest.raises(UserError, match=r"fitted for model another, and the index is of model topical; fit it again"):
        index.keep_calibration(other)
    other.save(index.folder / "calibration.json")
    assert any("fitted for model another" in check.wrong for check in verify_index(index.folder))


def test_verify_looks_at_calibration_and_grades(index: Index) -> None:
    index.grade("about 3", "p3", "right")
    said = [str(check) for check in verify_index(index.folder)]
    assert "ok: calibration.json: topics" in said
    assert "ok: grades.jsonl: 1 of 1 queries" in said
    with (index.folder / "grades.jsonl").open("ab") as file:
        file.write(b"{}\n")
    assert any("grades.jsonl, line 2: damaged grade" in check.wrong for check in verify_index(index.folder))


def test_both_files_belong_to_an_index(index: Index) -> None:
    index.grade("about 3", "p3", "right")
    index.compact()
    assert Index.open(index.folder).calibration is not None
    data = ImageCaptions(("a",), (), np.zeros(0, int), features=FeatureRows(ROWS[:1]))
    Index.build(data, Topical(), index.folder, overwrite=True)
    assert Index.open(index.folder).calibration is None


def test_grades_teach_where_relevance_ends(index: Index) -> None:
    searcher = Searcher(index, Topical())
    for number in range(FEWEST_QUERIES - 1):
        _graded(index, number)
    with pytest.raises(UserError, match=rf"19 searches have graded hits, and {FEWEST_QUERIES} are needed.* of 1 more"):
        searcher.calibration_of_grades()
    for number in range(FEWEST_QUERIES, 30):
        _graded(index, number)
    fitted, found = searcher.calibration_of_grades()
    assert {kind.kind for kind in found.kinds} == {"graded"}
    assert fitted.kinds == found.kinds
    assert fitted.model_fingerprint == "topical"
    assert "grades of people for 29 queries" in fitted.source
    index.keep_calibration(fitted)
    answer = search(Index.open(index.folder), "new words about 7")
    assert answer.end is not None
    assert answer.end.source == fitted.source
    assert answer.end.shown > 0


def test_graded_pictures_outside_the_sample_take_part(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_MOST_PICTURES", 20)
    monkeypatch.setattr(calibration, "_BEST", 2)
    for number in range(FEWEST_QUERIES):
        _graded(index, number)
    fitted, _ = Searcher(index, Topical()).calibration_of_grades()
    assert "320 grades of people for 20 queries" in fitted.source


def _graded(index: Index, number: int) -> None:
    topic = number % TOPICS
    for at in range(8):
        index.grade(f"graded {number} about {topic}", f"p{topic + TOPICS * at}", "right")
        index.grade(f"graded {number} about {topic}", f"p{(topic + 3 + at) % TOPICS}", "wrong")


def test_grades_of_pictures_that_are_gone_do_not_count(index: Index) -> None:
    for number in range(FEWEST_QUERIES):
        index.grade(f"graded {number}", "p1", "right")
    index.remove(["p1"])
    with pytest.raises(UserError, match="0 searches have graded hits"):
        Searcher(index, Topical()).calibration_of_grades()


def test_too_few_pictures_are_not_judged_until_there_are_more(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index", Topical(), store="exact")
    searcher = Searcher(index, Topical())
    assert searcher.search("about 1").end is None
    index.upsert(ImageCaptions(("a",), (), np.zeros(0, int), features=FeatureRows(ROWS[:1])), Topical())
    assert searcher.search("about 1").end is None
    more = tuple(f"p{row}" for row in range(len(ROWS)))
    index.upsert(ImageCaptions(more, (), np.zeros(0, int), features=FeatureRows(ROWS)), Topical())
    index.keep_calibration(CALIBRATION)
    assert searcher.search("about 1").end.shown > 1


def test_captions_are_compared_with_the_query(index: Index) -> None:
    rows = index.picture_store.get(["p3", "p4"])
    vector = Topical().encode_text(["picture number 4"])[0]
    captions = Topical().encode_text(["picture number 3", "picture number 4"])
    likeness = HitTexts(index, lambda: Rarity([]))
    for _ in range(2):
        np.testing.assert_allclose(likeness.scores(vector, rows), captions @ vector, atol=1e-5)
    bare = {"p3": replace(rows["p3"], record={"captions": []}), "p9": rows["p4"]}
    found = HitTexts(index, lambda: Rarity([])).scores(vector, bare)
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(1.0, abs=1e-5)


def test_an_index_without_captions_has_none_to_compare(tmp_path: Path) -> None:
    data = ImageCaptions(("a", "b"), (), np.zeros(0, int), features=FeatureRows(ROWS[:2]))
    made = Index.build(data, Topical(), tmp_path / "index")
    assert HitTexts(made, lambda: Rarity([])).scores(ROWS[0], made.picture_store.get(["a", "b"])) is None


@pytest.mark.slow
def test_an_index_in_a_bucket_keeps_both(bucket: str) -> None:
    place: Path = Path(f"{bucket}-ends")
    data = ImageCaptions(("a", "b"), (), np.zeros(0, int), features=FeatureRows(ROWS[:2]))
    made = Index.create(place, Topical(), store="lance")
    made.upsert(data, Topical())
    made.keep_calibration(CALIBRATION)
    made.grade("about 1", "a", "right")
    made.grade("about 1", "b", "wrong")
    opened = Index.open(place)
    assert opened.calibration is not None
    assert [one.id for one in opened.grades()] == ["a", "b"]


def test_words_of_hits_are_known(index: Index) -> None:
    rows = index.picture_store.get(["p3", "p4"])
    rarity = Rarity(["picture number 3", "picture number 4", "picture number 5"])
    known = known_of_texts(["number 4"], np.zeros(WIDTH), Topical())
    assert known is not None
    vector = Topical().encode_text(["number 4"])[0]
    found = HitTexts(index, lambda: rarity).of(known, "number 4", vector, rows, ["p3", "p9", "p4"])
    assert found.stated is not None
    three, four = rarity.shares("number 4", ["picture number 3", "picture number 4"])
    np.testing.assert_allclose(found.stated, [three, np.nan, four])
    assert np.isnan(found.caption_scores).tolist() == [False, True, False]
    assert (found.bearers, found.texts, found.words) == (1, 3, 2)
    assert found.counts.tolist() == [1, 0, 1]
    # A word that no text holds.
    strange = HitTexts(index, lambda: rarity).of(known, "qwertyuiop", vector, rows, ["p3", "p4"])
    assert strange.stated.tolist() == [0, 0]
    bare = {one: replace(row, record={}) for one, row in rows.items()}
    assert HitTexts(index, lambda: rarity).of(known, "number 4", vector, bare, ["p3", "p4"]) == known


def test_a_query_is_as_long_as_its_words() -> None:
    assert [length_of(text) for text in ("wallet", "a dog in the snow", "?", "犬", "雪の中を走る犬")] == [1, 5, 0, 1, 4]


def test_a_calibration_that_needs_texts_is_passed_over_without_them(index: Index, tmp_path: Path) -> None:
    index.keep_calibration(replace(CALIBRATION, needs_texts=True))
    assert search(index, "about 3").end.source == CALIBRATION.source
    ids = tuple(f"p{row}" for row in range(len(ROWS)))
    bare = Index.build(
        ImageCaptions(ids, (), np.zeros(0, int), features=FeatureRows(ROWS)), Topical(), tmp_path / "bare"
    )
    bare.keep_calibration(replace(CALIBRATION, needs_texts=True))
    assert search(bare, "about 3").end.source.startswith("no judgements")


def test_a_list_of_another_search_ends_where_the_index_would_end_it(index: Index) -> None:
    searcher, text = Searcher(index, Topical()), "some words about 7"
    vector = Topical().encode_text([text])[0]
    own = searcher.search(text, 60, options=SearchOptions(words="off"))
    ids = [hit.id for hit in own.hits]
    judged = searcher.judge_list(vector, ids)
    assert own.end is not None
    assert abs(judged.cut - own.end.shown) <= 1, "which knows the words of the query and the texts of hits as well"
    np.testing.assert_allclose(judged.degrees, own.end.degrees, atol=0.02)
    scores = np.sort(_units(ROWS)[[int(one[1:]) for one in ids]] @ vector)[::-1].astype(np.float64)
    background = NullSample.of(index.picture_store).background(vector[None])
    expected = CALIBRATION.judge_hits(scores, background)
    assert judged.cut == expected.cut
    np.testing.assert_allclose(judged.degrees, expected.degrees, atol=1e-5)
    shuffled = np.random.default_rng(0).permutation(60)
    again = searcher.judge_list(vector, [ids[place] for place in shuffled])
    np.testing.assert_array_equal(again.rungs, judged.rungs[shuffled])
    np.testing.assert_array_equal(again.degrees, judged.degrees[shuffled])
    assert searcher.judge_list(vector, []).cut == 0
    with pytest.raises(UserError, match="nobody"):
        searcher.judge_list(vector, ["nobody"])
    foreign = Topical().encode_text([f"some of {TOPICS + 2}"])[0]
    assert searcher.judge_list(foreign, ids).cut == 0
