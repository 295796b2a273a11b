"""Also tests rungwise.index._answers: what a search answers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import (
    GivenPicture,
    GivenVector,
    Index,
    Like,
    Manifest,
    Query,
    Searcher,
    SearchOptions,
    Term,
    Where,
    Words,
    parse_where,
)
from rungwise.models import PairScorer
from rungwise.serving import create_app
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine, Similarity
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.index.toy_store import ToyStore

MIXED = ["red", "green", "blue", "red", "yellow"]


def test_the_fingerprint_is_computed_once_however_often_is_searched(index: Index) -> None:
    model = ColourModel()
    searcher = Searcher(index, model)
    for colour in MIXED:
        searcher.search_text(colour)
        searcher.search_image(picture_bytes(COLOURS[colour]))
        searcher.captions_for(picture_bytes(COLOURS[colour]))
        searcher.captions_near(searcher.encode_picture(picture_bytes(COLOURS[colour])))
    assert model.hashed == 1


def test_the_fingerprint_is_computed_once_for_a_build_and_for_a_refusal(index: Index, tmp_path: Path) -> None:
    model = ColourModel()
    Index.build(colour_pictures(tmp_path / "others", MIXED), model, tmp_path / "other")
    assert model.hashed == 1
    other = ColourModel(fingerprint="another")
    with pytest.raises(UserError, match="built by model"):
        Searcher(index, other)
    assert other.hashed == 1


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), ShiftedCosine(), Order(), Order(absolute=True)])
def test_texts_are_ranked_by_the_models_similarity(tmp_path: Path, similarity: Similarity) -> None:
    model = ColourModel(similarity=similarity)
    data = colour_pictures(tmp_path / "photos", MIXED)
    index = Index.build(data, model, tmp_path / "index")
    searcher = Searcher(Index.open(index.folder), model)
    scores = model.block(list(data.paths), ["red yellow"])[:, 0]
    hits = searcher.search_text("red yellow", k=5)
    assert [hit.id for hit in hits] == [data.image_ids[row] for row in np.argsort(-scores, kind="stable")]
    np.testing.assert_allclose([hit.score for hit in hits], sorted(scores, reverse=True), rtol=1e-5)
    captions = searcher.captions_for(data.paths[4], k=2)
    near = model.block([data.paths[4]], captions_of := list(index.captions()))[0]
    assert captions[0].text == captions_of[near.argmax()]
    assert captions[0].score == pytest.approx(near.max(), rel=1e-5)
    # A picture is compared with pictures by cosine, whatever the similarity.
    assert [hit.score for hit in searcher.search_image(data.paths[0], k=2)] == pytest.approx([1, 1])


def test_rows_of_features_are_indexed_and_searched_as_pictures_are(tmp_path: Path) -> None:
    colours = FeatureRows(np.array([COLOURS[one] for one in MIXED], np.float32))
    ids = tuple(f"{n}-{one}" for n, one in enumerate(MIXED))
    data = ImageCaptions(ids, ("a red square",), np.array([0]), features=colours, name="rows")
    Index.build(data, ColourModel(), tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert [item.path for item in index.items()] == [None] * 5
    assert [hit.id for hit in Searcher(index, ColourModel()).search_text("red", k=2)] == ["0-red", "3-red"]
    assert index.similar("0-red", k=1)[0].id == "3-red"


def test_a_store_from_outside_the_package_is_filled_searched_and_served(tmp_path: Path) -> None:
    model = ColourModel()
    stores = ToyStore(3, Cosine()), ToyStore(3, Cosine(), side="text")
    index = Index(Manifest("toys", model.fingerprint, "", 3), *stores)
    assert (len(index), list(index.captions()), index.issues) == (0, [], ())
    index.upsert(colour_pictures(tmp_path / "photos", MIXED), model)
    searcher = Searcher(index, model)
    assert [hit.id for hit in searcher.search_text("red", k=2)] == ["0-red", "3-red"]
    assert searcher.captions_for(picture_bytes(COLOURS["red"]), k=1)[0].ids == ("0-red", "3-red")
    served = TestClient(create_app(index, model)).get("/search?q=blue&k=1").json()
    assert [hit["id"] for hit in served["hits"]] == ["2-blue"]
    assert index.remove(["0-red"]) == 1
    assert [hit.id for hit in searcher.search_text("red", k=1)] == ["3-red"]


def test_captions_that_no_picture_bears_are_not_found(index: Index) -> None:
    model = ColourModel()
    index.caption_store.upsert(["a pure red nothing"], model.encode_text(["red"]))
    found = Searcher(Index.open(index.folder), model).captions_for(picture_bytes(COLOURS["red"]), k=9)
    assert found[0].text == "a red square"
    assert len(found) == 4


def test_a_picture_is_prepared_in_one_place_and_encoded_in_another(index: Index) -> None:
    searcher, picture = Searcher(index, ColourModel()), picture_bytes(COLOURS["red"])
    vector = searcher.prepare_picture(picture)
    np.testing.assert_array_equal(vector(), searcher.encode_picture(picture))
    with pytest.raises(UserError, match="not a picture"):
        searcher.prepare_picture(b"hello")()


def test_the_same_model_searches_another_index_that_it_built(index: Index, tmp_path: Path) -> None:
    model = ColourModel()
    searcher = Searcher(index, model)
    other = Index.build(colour_pictures(tmp_path / "others", ["blue"]), ColourModel(), tmp_path / "other")
    assert [hit.id for hit in searcher.on(other).search_text("red")] == ["0-blue"]
    assert searcher.search_text("red")[0].id == "0-red"
    assert model.hashed == 1
    strange = Index.build(
        colour_pictures(tmp_path / "others", ["blue"]), ColourModel(fingerprint="another"), tmp_path / "strange"
    )
    with pytest.raises(UserError, match="built by model another"):
        searcher.on(strange)


CAPTIONED = ["a red boat in sneakers", "a green field", "the blue sea", "a red car", "a yellow sun over the sea"]


class WordColourModel(ColourModel):
    """Knows the words of its colours and no others."""

    def unknown_words(self, text: str) -> tuple[str, ...]:
        return tuple(word for word in text.split() if word not in {*COLOURS, "a", "the"})

    @property
    def known_words(self) -> frozenset[str]:
        return frozenset(COLOURS)


@pytest.fixture(params=["exact", "toy"])
def captioned(request: pytest.FixtureRequest, tmp_path: Path) -> Searcher:
    """Pictures with captions and columns, in either kind of store."""
    plain = colour_pictures(tmp_path / "photos", MIXED)
    columns = {"year": tuple(range(2020, 2025)), "kind": ("boat", "field", "sea", "car", "sea")}
    data = replace(plain, captions=tuple(CAPTIONED), columns=columns)
    model = WordColourModel()
    if request.param == "exact":
        return Searcher(Index.build(data, model, tmp_path / "index", store="exact"), model)
    stores = ToyStore(3, Cosine()), ToyStore(3, Cosine(), side="text")
    index = Index(Manifest("toys", model.fingerprint, "", 3), *stores)
    index.upsert(data, model)
    return Searcher(index, model)


def found(searcher: Searcher, query: str | Query, k: int = 5, **how: Any) -> list[str]:
    how.setdefault("options", SearchOptions(fold_duplicates=False))
    return [hit.id for hit in searcher.search(query, k, **how).hits]


PLAIN = SearchOptions(fold_duplicates=False, words="off")


def test_plain_words_are_ranked_by_the_vector_that_the_model_gives(captioned: Searcher) -> None:
    answer = captioned.search("red yellow", 5, options=PLAIN)
    assert list(answer.hits) == captioned.search_text("red yellow", 5)
    assert (answer.reading, answer.notes, answer.folded, answer.more) == ("", (), {}, False)


def test_what_is_taken_away_goes_down(captioned: Searcher) -> None:
    both = found(captioned, "red + blue", options=PLAIN)
    assert set(both[:3]) == {"0-red", "2-blue", "3-red"}
    less = captioned.search('"red" - "blue"', 5, options=PLAIN)
    assert less.hits[-1].id == "2-blue"
    assert less.reading == 'pictures like "red", less like "blue"'
    assert found(captioned, "-blue", options=PLAIN)[-1] == "2-blue"


def test_pictures_and_words_are_added(captioned: Searcher) -> None:
    blue = GivenPicture(picture_bytes(COLOURS["blue"]), "blue.png")
    query = Query((Term(Words("red")), Term(blue), Term(Like("4-yellow"), -0.25)))
    answer = captioned.search(query, 5, options=PLAIN)
    assert answer.reading == 'pictures like "red" and the picture blue.png, less like 0.25 × the picture 4-yellow'
    assert {hit.id for hit in answer.hits[:3]} == {"0-red", "2-blue", "3-red"}
    assert "4-yellow" not in [hit.id for hit in answer.hits]
    vector = captioned.encode_picture(picture_bytes(COLOURS["blue"]))
    assert found(captioned, Query((Term(GivenVector(vector, "blue"), 3.0),)))[0] == "2-blue"


def test_more_like_a_picture_of_the_index_leaves_it_out(captioned: Searcher) -> None:
    answer = captioned.search(Query((Term(Like("0-red")),)), 5)
    assert answer.hits[0].id == "3-red"
    assert answer.hits[0].score == pytest.approx(1)
    assert "0-red" not in [hit.id for hit in answer.hits]
    with pytest.raises(UserError, match="no picture with id 'nobody'"):
        captioned.search(Query((Term(Like("nobody")),)))


def test_pictures_that_cannot_be_read_are_named(captioned: Searcher) -> None:
    with pytest.raises(UserError, match=r"^upload\.png: "):
        captioned.search(Query((Term(GivenPicture(b"hello", "upload.png")),)))


def test_a_word_that_the_model_never_learnt_is_found_where_it_is_written(captioned: Searcher) -> None:
    answer = captioned.search("sneakers", 5)
    assert answer.hits[0].id == "0-red"
    assert [(one.word, one.found) for one in answer.unknown] == [("sneakers", True)]
    unjudged = captioned.search("sneakers", 5, options=SearchOptions(end=False))
    assert unjudged.notes == ("1 picture has most of these words",)
    without = captioned.search("sneakers", 5, options=SearchOptions(words="off"))
    assert without.notes == ()
    scores = {hit.id: hit.score for hit in without.hits}
    for hit in answer.hits:
        assert hit.score == pytest.approx(scores[hit.id], rel=1e-5)


def test_frequent_words_alone_bring_nothing_unless_it_is_asked_for(captioned: Searcher) -> None:
    assert captioned.search("the zebra", 5, options=SearchOptions(end=False)).notes == ()
    assert captioned.search("the zebra", 5, options=SearchOptions(words="on", end=False)).notes != ()
    assert captioned.search("???", 5, options=SearchOptions(end=False)).notes == ()


def test_full_text_keeps_out_what_is_wanted_less(captioned: Searcher) -> None:
    assert captioned.search('"sea" - "sun"', 5, options=SearchOptions(end=False)).notes == ()
    answer = captioned.search('"sea" - "yellow sun"', 5, options=SearchOptions(words="on", end=False))
    assert answer.notes == ("1 picture has some of these words",)


def test_filters_hold_for_vectors_and_for_words(captioned: Searcher) -> None:
    assert found(captioned, "red", where=parse_where("year < 2022")) == ["0-red", "1-green"]
    assert "0-red" not in found(captioned, "sneakers", where=parse_where("not captions contains 'sneakers'"))
    with pytest.raises(UserError, match="no picture has a column 'yaer'; did you mean year"):
        captioned.search("red", where=parse_where("yaer > 2"))
    left = found(captioned, "red", where=Where(without=frozenset({"0-red"})))
    assert left[0] == "3-red"


def test_a_column_that_came_later_is_known(captioned: Searcher, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no picture has a column 'price'"):
        captioned.search("red", where=parse_where("price > 2"))
    more = replace(colour_pictures(tmp_path / "more", ["blue"]), image_ids=("new",), columns={"price": (3,)})
    captioned.index.upsert(more, captioned.model)
    assert found(captioned, "red", where=parse_where("price > 2")) == ["new"]


def test_equal_pictures_are_folded_and_listed(captioned: Searcher) -> None:
    answer = captioned.search("red", 5)
    assert len(answer.hits) == 4
    ((first, others),) = answer.folded.items()
    assert first == answer.hits[0].id
    assert {first, *others} == {"0-red", "3-red"}
    unfolded = captioned.search("red", 5, options=SearchOptions(fold_duplicates=False))
    assert (len(unfolded.hits), unfolded.folded) == (5, {})


@pytest.mark.parametrize("options", [SearchOptions(), PLAIN, SearchOptions(diversity=0.7), SearchOptions(words="on")])
def test_pages_go_on_where_the_last_one_ended(captioned: Searcher, options: SearchOptions) -> None:
    whole = captioned.search("a red sea", 5, options=options)
    pages = [captioned.search("a red sea", 2, offset=offset, options=options) for offset in (0, 2, 4, 6)]
    assert [hit for page in pages for hit in page.hits] == list(whole.hits)
    assert [page.more for page in pages] == [len(whole.hits) > offset for offset in (2, 4, 6, 8)]


class Length(PairScorer):
    """Likes pictures whose file name begins with a large number."""

    fingerprint = "length"

    def block(self, images: Sequence[Path], captions: Sequence[str]) -> np.ndarray:
        return np.array([[float(str(image.name)[0]) for _ in captions] for image in images], np.float32)


def test_the_first_hits_are_reranked_and_the_cost_is_said(captioned: Searcher) -> None:
    options = SearchOptions(fold_duplicates=False, words="off", rerank=Length(), rerank_top=3)
    before = found(captioned, "red", options=PLAIN)
    answer = captioned.search("red", 5, options=options)
    ids = [hit.id for hit in answer.hits]
    assert ids[:3] == sorted(before[:3], reverse=True)
    assert ids[3:] == before[3:]
    assert answer.notes[0].startswith("reranked the first 3 by Length: ")
    picture = captioned.search(Query((Term(Like("0-red")),)), 5, options=options)
    assert picture.notes == ("not reranked: the query has no words",)


def test_texts_can_be_encoded_before(captioned: Searcher) -> None:
    query = 'red - "blue"'
    assert Searcher.texts_of(query) == ("red", "blue")
    vectors = captioned.encode_texts(["red", "blue", "green"])
    model = captioned.model
    captioned.search("red")  # when texts that fit nothing are encoded, once
    encode, asked = model.encode_text, []
    model.encode_text = lambda texts: asked.append(texts) or encode(texts)
    assert captioned.search(query, 5, vectors=vectors) == captioned.search(query, 5)
    assert asked == [["red", "blue"]]
    assert captioned.encode_texts([]) == {}


def test_captions_for_a_picture_however_it_is_given(captioned: Searcher) -> None:
    data = picture_bytes(COLOURS["yellow"])
    by_bytes = captioned.captions_for(data, 2)
    assert by_bytes == captioned.captions_for(captioned.encode_picture(data), 2)
    assert [one.text for one in captioned.captions_for("4-yellow", 2)] == [one.text for one in by_bytes]
    assert by_bytes[0].text == "a yellow sun over the sea"
    with pytest.raises(UserError, match="no picture with id"):
        captioned.captions_for("nobody")


@pytest.mark.parametrize(
    ("how", "message"),
    [({"k": 0}, "k is 0"), ({"offset": -1}, "offset is -1"), ({"query": " "}, "the query is empty")],
)
def test_what_cannot_be_asked_is_refused(captioned: Searcher, how: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        captioned.search(**{"query": "red", **how})


def test_files_named_in_a_text_are_not_opened_by_a_searcher(captioned: Searcher, tmp_path: Path) -> None:
    file = tmp_path / "photos" / "0-red.png"
    assert file.is_file()
    assert Searcher.texts_of(str(file)) == (str(file),)


def test_every_kind_of_store_answers_alike(tmp_path: Path) -> None:
    model = WordColourModel()
    columns = {"year": tuple(range(2020, 2025)), "kind": ("boat", "field", "sea", "car", "sea")}
    plain = colour_pictures(tmp_path / "photos", MIXED)
    data = replace(plain, captions=tuple(CAPTIONED), columns=columns)
    searchers = [Searcher(Index.build(data, model, tmp_path / kind, store=kind), model) for kind in ("exact", "lance")]
    for query in ("red", "a red boat in sneakers", '"yellow" - "red"', "sea + 2*blue"):
        for how in ({}, {"where": parse_where("year > 2020 and not kind == 'car'")}, {"offset": 1}):
            for options in (SearchOptions(), PLAIN, SearchOptions(diversity=0.5)):
                first, second = (searcher.search(query, 3, options=options, **how) for searcher in searchers)
                assert [hit.id for hit in first.hits] == [hit.id for hit in second.hits]
                assert [hit.score for hit in first.hits] == pytest.approx([hit.score for hit in second.hits], abs=1e-5)
                assert (first.folded, first.unknown, first.notes, first.more) == (
                    second.folded,
                    second.unknown,
                    second.notes,
                    second.more,
                )
