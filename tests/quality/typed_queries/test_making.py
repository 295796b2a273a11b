"""Also tests rungwise.quality.typed_queries._drawing, rungwise.quality.typed_queries._evidence,
rungwise.quality.typed_queries._texted_pictures and rungwise.quality.typed_queries._caption_ends."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import NOTHING, OTHER_UNRELATED, Calibration, compared
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.evaluation import similarity_source
from rungwise.index import Index, Searcher, SearchOptions
from rungwise.models import DualEncoder, EncodedImages
from rungwise.quality.typed_queries import (
    CaptionEnds,
    GivenQuery,
    TextedPictures,
    TextEvidence,
    caption_queries,
    training_queries,
)
from rungwise.quality.typed_queries._drawing import phrases, values
from rungwise.quality.typed_queries._making import unstated_truth
from rungwise.quality.typed_queries._statements import statements_of, words_in
from rungwise.similarity import Cosine, unit_rows
from tests.colour_model import ColourModel, colour_pictures

COLOURS, ARTICLES, BRANDS = ("red", "blue", "green", "black"), ("wallet", "belt", "shoe"), ("Nordo", "Kelva", "Tirso")
VOCABULARY = (*COLOURS, *ARTICLES, *map(str.lower, BRANDS))


class Worded(DualEncoder):
    """A text is the sum of the directions of its words; other words lie in some direction of their own."""

    dimension, fingerprint, similarity = 24, "worded", Cosine()
    reads_pictures = False
    _directions = np.random.default_rng(0).normal(size=(len(VOCABULARY), 24)).astype(np.float32)

    def encode_text(self, texts):
        rows = []
        for text in texts:
            words = text.lower().split()
            known = [self._directions[VOCABULARY.index(word)] for word in words if word in VOCABULARY]
            strange = np.random.default_rng(len(text)).normal(size=24) * 0.3
            rows.append(np.sum([*known, strange * (1 if not known else 0.1)], axis=0))
        return unit_rows(np.array(rows, np.float32))

    def encode_image(self, pictures, *, progress=None, cache=None):
        return EncodedImages(unit_rows(pictures[:]), np.arange(len(pictures)))


def shop(pictures: int = 240, seed: int = 0) -> TextedPictures:
    rng = np.random.default_rng(seed)
    model = Worded()
    colour, article, brand = (rng.integers(len(of), size=pictures) for of in (COLOURS, ARTICLES, BRANDS))
    titles = tuple(
        f"{BRANDS[b]} {COLOURS[c].capitalize()} {ARTICLES[a].capitalize()}"
        for b, c, a in zip(brand, colour, article, strict=True)
    )
    shown = model.encode_text([f"{COLOURS[c]} {ARTICLES[a]}" for c, a in zip(colour, article, strict=True)])
    images = unit_rows(shown + 0.1 * rng.normal(size=shown.shape).astype(np.float32))
    columns = {"colour": tuple(frozenset((COLOURS[c],)) if c else None for c in colour)}
    return TextedPictures(
        model, tuple(f"{at}.jpg" for at in range(pictures)), images, titles, np.arange(pictures),
        model.encode_text(titles), columns, "shop",
    )  # fmt: skip


def test_phrases_say_alone_what_they_say_in_their_caption_and_are_common_and_rare() -> None:
    collection = shop()
    told = statements_of(collection.captions, collection.owners, 240, words_in)
    drawn = phrases(collection.captions, told, words_in, 100, seed=0)
    assert {"wallet", "black belt", "kelva red shoe"} <= {one.text for one in drawn}
    for one in drawn:
        stating = sum(one.statement <= words_in(title) for title in collection.captions)
        assert 2 <= stating <= 120
        assert len(one.text.split()) <= 4
    assert phrases(collection.captions, told, words_in, 100, seed=0) == drawn
    assert len(phrases(collection.captions, told, words_in, 7, seed=0)) == 7


def test_values_of_columns_and_pairs_of_two_columns_are_drawn() -> None:
    cells = [("red", "Belt"), ("red", "Belt"), ("blue", "Belt"), ("blue", None), ("red", "Shoe")] * 6
    columns = {
        "colour": [frozenset((one,)) for one, _ in cells],
        "article": [None if two is None else frozenset((two,)) for _, two in cells],
        "note": [frozenset((f"note {at}",)) for at in range(30)],
        "number": [frozenset(("42",))] * 30,
    }
    single, both = values(columns, 50, 0)
    assert {one.text for one in single} == {"blue", "Shoe"}  # the others say nothing: more than half have them
    assert {frozenset(one.values) for one in both} == {
        frozenset({("article", "Belt"), ("colour", "red")}), frozenset({("article", "Belt"), ("colour", "blue")}),
        frozenset({("article", "Shoe"), ("colour", "red")}),
    }  # fmt: skip
    assert all(one.text.split() == [text for _, text in one.values] for one in both)


def test_degrees_are_what_titles_and_columns_state() -> None:
    collection = shop()
    queries, how = training_queries(collection, 200)
    assert how == "words"
    assert {"phrase", "value", "caption", NOTHING} == set(queries.kinds)
    assert queries.texts[-len(OTHER_UNRELATED) :] == OTHER_UNRELATED
    for at, (text, kind) in enumerate(zip(queries.texts, queries.kinds, strict=True)):
        wanted = set(text.lower().split())
        for picture in range(0, 240, 7):
            cell = collection.columns["colour"][picture]
            held = set(collection.captions[picture].lower().split()) | (set(cell) if cell else set())
            degree, overlooked = queries.relevance[at, picture], queries.overlooked[at, picture]
            if kind == "phrase":
                assert degree == pytest.approx(len(wanted & held) / len(wanted))
            elif kind == "value":
                assert np.isnan(degree) if cell is None else degree == (text in cell)
                assert overlooked == 0
            elif kind == NOTHING:
                assert (degree, overlooked) == (0, 0)
            assert 0 <= overlooked <= (0 if degree >= 0.75 else 0.9)
    own = [at for at, kind in enumerate(queries.kinds) if kind == "caption"]
    assert all(queries.relevance[at, queries.groups[at]] == 1 for at in own)


def twice(collection: TextedPictures) -> TextedPictures:
    """The pictures with a second caption each, in other words."""
    others = tuple(title.split(" ", 1)[1] for title in collection.captions)
    return replace(
        collection,
        captions=collection.captions + others,
        owners=np.tile(collection.owners, 2),
        caption_vectors=np.concatenate([collection.caption_vectors, collection.model.encode_text(others)]),
    )


def test_a_caption_is_no_evidence_for_itself() -> None:
    collection = twice(shop(40))
    evidence = TextEvidence(collection)
    title = collection.captions[5]
    (mine,) = evidence.known([title], collection.caption_vectors[5:6], np.array([5]))
    (anyone,) = evidence.known([title], collection.caption_vectors[5:6], np.array([-1]))
    assert mine.caption_scores is not None
    assert anyone.caption_scores is not None
    assert anyone.caption_scores[5] == pytest.approx(1, abs=1e-5)
    other = unit_rows(collection.caption_vectors[[5, 45]])
    assert mine.caption_scores[5] == pytest.approx(float(other[0] @ other[1]), abs=1e-5)
    assert anyone.stated is not None
    assert mine.stated is not None
    assert anyone.stated[5] == pytest.approx(1, abs=1e-6)
    assert mine.stated[5] < 0.9


def test_of_a_picture_s_only_caption_the_texts_of_hits_are_not_known() -> None:
    """Its own picture would be the one without texts, by which a fit would know it."""
    collection = shop(40)
    (known,) = TextEvidence(collection).known([collection.captions[5]], collection.caption_vectors[5:6], np.array([5]))
    assert known.caption_scores is None
    assert known.stated is None
    assert known.words == 3
    queries, _ = training_queries(collection, 60)
    assert all(
        (known.stated is None) == (kind == "caption") for known, kind in zip(queries.known, queries.kinds, strict=True)
    )


def test_evidence_is_that_of_loops() -> None:
    """Shares of words, bearers and likeness, of any text and of captions, which are no evidence for themselves."""
    collection = many_captions(shop(30))
    for share in (None, 0.0, 1.0):
        evidence = TextEvidence(collection, share, seed=3)
        own = np.array([-1, -1, *range(0, 90, 11)])
        texts = ["red wallet", "Nordo hat", *(collection.captions[at] for at in own[2:])]
        vectors = collection.model.encode_text(texts)
        found = evidence.known(texts, vectors, own)
        held = set(range(90)) if share is None else {int(at) for at in evidence._held}
        assert {int(collection.owners[at]) for at in held} == set(range(30))
        whole = [of_picture(collection, picture, held) for picture in range(30)]
        for text, vector, caption, one in zip(texts, vectors, own.tolist(), found, strict=True):
            wanted = set(text.lower().split())
            left = [of_picture(collection, picture, held - {caption}) for picture in range(30)]
            others = {at for at in held - {caption} if collection.owners[at] == collection.owners[caption]}
            if caption >= 0 and not others:
                assert (one.stated, one.caption_scores, one.bearers) == (None, None, None)
                continue
            rarity = {
                word: np.log1p((30 - with_it + 0.5) / (with_it + 0.5))
                for word in wanted
                for with_it in [sum(word in words for words in whole)]
            }
            for picture, words in enumerate(left):
                stated = sum(rarity[word] for word in wanted & words) / sum(rarity.values())
                assert one.stated[picture] == pytest.approx(stated, abs=1e-6)
                own_captions = [at for at in held - {caption} if collection.owners[at] == picture]
                cosines = [
                    float(vector @ row / np.linalg.norm(vector) / np.linalg.norm(row))
                    for row in collection.caption_vectors[own_captions]
                ]
                assert one.caption_scores[picture] == pytest.approx(max(cosines), abs=1e-5)
            assert one.bearers == sum(wanted <= words for words in left)
            assert one.texts == 30


def many_captions(collection: TextedPictures) -> TextedPictures:
    """The same pictures with three captions each, of one to three words."""
    titles = [
        " ".join(title.split()[first:]) for first in (0, 1, 2) for title in collection.captions
    ]  # fmt: skip
    return replace(
        collection,
        captions=tuple(titles),
        owners=np.tile(collection.owners, 3),
        caption_vectors=collection.model.encode_text(titles),
    )


def of_picture(collection: TextedPictures, picture: int, captions: set[int]) -> set[str]:
    """Words of these captions of a picture and of its columns."""
    words = {
        word for at in captions if collection.owners[at] == picture for word in collection.captions[at].lower().split()
    }
    for column in collection.columns.values():
        words |= {word for text in column[picture] or () for word in text.lower().split()}
    return words


def test_some_captions_of_each_picture_stand_for_what_a_search_knows() -> None:
    collection = shop(60)
    five = replace(
        collection, captions=collection.captions * 5, owners=np.tile(collection.owners, 5),
        caption_vectors=np.tile(collection.caption_vectors, (5, 1)),
    )  # fmt: skip
    for share, count in ((0.0, 1), (0.5, 2), (1.0, 4), (None, 5)):
        counts = TextEvidence(five, share).known(["red"], collection.images[:1], np.array([-1]))[0].counts
        assert counts.tolist() == [count] * 60
    queries, _ = training_queries(five, 100)
    assert {int(one.counts.max()) for one in queries.known if one.counts is not None} == {1, 2, 4}


def test_unstated_pictures_are_true_the_likelier_the_higher_they_stand_and_the_more_is_missed() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 400))
    stated = scores + 0.5 * rng.normal(size=scores.shape) > 1.2
    told = stated.copy()
    told[:, :10] = True
    few = np.full(20, 0.4)
    true = unstated_truth(scores, stated, told, few)
    assert (true[told] == 0).all()
    assert true.max() <= 0.9
    more = unstated_truth(scores, stated, told, 3 * few)
    assert (more >= true - 1e-6).all()
    one_query = unstated_truth(scores, stated, told, np.where(np.arange(20) == 3, 1.2, 0.4))
    assert np.flatnonzero((one_query != true).any(axis=1)).tolist() == [3]
    for row, one in zip(scores, true, strict=True):
        left = np.flatnonzero(~told[scores.tolist().index(row.tolist())])
        falling = left[np.argsort(-row[left])]
        assert (np.diff(one[falling]) <= 1e-6).all()
    # As many are taken to be true as are missed, where none is bounded.
    few = unstated_truth(scores, stated, told, np.full(20, 0.01))
    assert few.max() < 0.9
    assert few.sum(axis=1) == pytest.approx(0.01 * stated.sum(axis=1), rel=0.01)


def test_truth_that_no_text_states_is_that_of_loops() -> None:
    """How high stated pictures stand says which unstated ones are likely true; the number missed, how many."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(5, 60))
    stated = scores + rng.normal(size=scores.shape) > 1.3
    told = stated | (rng.random(scores.shape) < 0.1)
    missed = rng.random(5)
    found = unstated_truth(scores, stated, told, missed)

    heights = [-4 + at * 0.25 for at in range(65)]
    bins = np.empty(scores.shape, int)
    for row, of_query in enumerate(scores):
        middle, quarter = np.median(of_query), np.quantile(of_query, 0.25)
        for at, score in enumerate(of_query):
            bins[row, at] = sum(height < (score - middle) / (middle - quarter) for height in heights)
    # Neighbouring bins whose shares fall are taken together, until none falls.
    blocks = [([number], int((bins == number).sum()), int(stated[bins == number].sum())) for number in range(66)]
    blocks = [block for block in blocks if block[1]]
    falls = True
    while falls:
        shares = [right / count for _, count, right in blocks]
        falls = [at for at in range(len(blocks) - 1) if shares[at] > shares[at + 1]]
        if falls:
            first, second = blocks[falls[0]], blocks.pop(falls[0] + 1)
            blocks[falls[0]] = tuple(one + other for one, other in zip(first, second, strict=True))
    odds_of = {number: right / max(count - right, 1e-9) for numbers, count, right in blocks for number in numbers}
    for row in range(5):
        odds = [0.0 if told[row, at] else odds_of[bins[row, at]] for at in range(60)]
        for at in range(60):
            likely = odds[at] * stated[row].sum() * missed[row] / sum(odds)
            assert found[row, at] == pytest.approx(min(0.9, likely), abs=1e-5)


def test_pairs_of_columns_are_relevant_by_both_and_open_where_an_empty_cell_could_hold_it() -> None:
    rng = np.random.default_rng(0)
    cells = {
        name: tuple(frozenset(rng.choice(texts, rng.integers(1, 3))) if rng.random() < 0.8 else None for _ in range(60))
        for name, texts in (("colour", ("red", "blue", "green")), ("article", ("Wallet", "Belt", "Shoe")))
    }
    queries, _ = training_queries(replace(shop(60), columns=cells), 200)
    pairs = [at for at, kind in enumerate(queries.kinds) if kind == "pair"]
    assert len(pairs) >= 4
    of_text = {text: name for name, column in cells.items() for cell in column for text in cell or ()}
    opened = 0
    for at in pairs:
        asked = queries.texts[at].split()
        assert len({of_text[text] for text in asked}) == 2
        assert (queries.overlooked[at] == 0).all()
        for picture in range(60):
            having = [cells[of_text[text]][picture] for text in asked]
            holds = [cell is not None and text in cell for text, cell in zip(asked, having, strict=True)]
            if None in having and all(one or cell is None for one, cell in zip(holds, having, strict=True)):
                opened += 1
                assert np.isnan(queries.relevance[at, picture])
            else:
                assert queries.relevance[at, picture] == sum(holds) / 2
    assert opened


def test_given_queries_are_judged_by_texts_or_by_the_ids_that_are_named() -> None:
    collection = shop()
    given = (
        GivenQuery("red wallet"), GivenQuery("nice things", ("3.jpg", "gone.jpg")), GivenQuery("unheard of"),
        GivenQuery("all gone", ("gone.jpg",)), GivenQuery("what we never sold", ()),
    )  # fmt: skip
    queries, _ = training_queries(collection, 100, given)
    at = {text: row for row, text in enumerate(queries.texts) if queries.kinds[row] == "given"}
    assert set(at) == {"red wallet", "nice things", "what we never sold"}
    assert not queries.relevance[at["what we never sold"]].any()
    relevant = queries.relevance[at["nice things"]]
    assert np.flatnonzero(relevant).tolist() == [3]
    assert (queries.overlooked[at["nice things"]] == 0).all()
    asked, _ = training_queries(collection, 100, (GivenQuery("red wallet", kind="asked"),))
    assert "asked" in asked.kinds


def test_what_is_learnt_of_titles_serves_phrases_and_names_them() -> None:
    """The heart of it: short queries, of which titles tell, end where what they ask for ends, and are called so."""
    queries, _ = training_queries(shop(), 300)
    new, found = compared(queries, queries.standard(), source="titles", model_fingerprint="worded")
    kinds = {kind.kind: kind for kind in found.kinds}
    assert kinds["phrase"].after > kinds["phrase"].before
    assert kinds["phrase"].exactly >= 0.75  # eight in ten, of 23 queries
    other, _ = training_queries(shop(seed=9), 300)
    rows = [at for at, text in enumerate(other.texts) if text in ARTICLES and other.kinds[at] == "phrase"]
    # Titles say which article it is, always: nothing is overlooked here.
    other = replace(other, overlooked=np.zeros_like(other.overlooked))
    judged = other.only(np.array(rows)).judged_by(new)
    assert (judged.f1 > 90).all()
    assert judged.right[:, 0].sum() >= 0.8 * judged.named[:, 0].sum() > 0


def test_a_collection_that_says_nothing_makes_no_query() -> None:
    bare = replace(
        shop(20), captions=(), owners=np.empty(0, np.int64), caption_vectors=np.empty((0, 24), np.float32), columns={}
    )
    with pytest.raises(UserError, match="no caption and no column makes a query"):
        training_queries(bare, 100)


def test_columns_alone_make_queries() -> None:
    bare = replace(shop(60), captions=(), owners=np.empty(0, np.int64), caption_vectors=np.empty((0, 24), np.float32))
    queries, _ = training_queries(bare, 100)
    assert set(queries.kinds) == {"value", NOTHING}
    assert queries.known[0].caption_scores is None
    assert queries.known[0].stated is not None


def test_an_index_and_its_collection_make_the_same_queries(tmp_path: Path) -> None:
    pictures = colour_pictures(tmp_path / "pictures", ("red", "green", "blue") * 8, captions=False)
    captions = tuple(f"a {('red', 'green', 'blue')[at % 3]} picture" for at in range(24))
    told = replace(
        pictures, captions=captions, image_of_caption=np.arange(24), columns={"size": ("big", None, "small") * 8}
    )
    model = ColourModel()
    index = Index.build(told, model, tmp_path / "index")
    found = TextedPictures.of_index(index, model)
    assert sorted(zip(found.ids, found.captions, strict=True)) == sorted(zip(told.image_ids, captions, strict=True))
    assert found.columns["size"][found.ids.index(told.image_ids[2])] == frozenset(("small",))
    assert found.columns["size"][found.ids.index(told.image_ids[1])] is None
    bare = Index.build(pictures, model, tmp_path / "bare")
    with pytest.raises(UserError, match="no captions and no texts in columns to learn from"):
        TextedPictures.of_index(bare, model)
    matrix = similarity_source(similarity=np.eye(3), image_of_caption=[0, 1, 2])
    assert TextedPictures.of_scores(model, matrix, told) is None
    assert TextedPictures.of_scores(None, matrix, told) is None


def ends_of_many() -> tuple[CaptionEnds, TextedPictures, np.ndarray, Calibration]:
    """Ends of 180 captions of 60 pictures, with their scores."""
    collection = shop(60)
    draw = np.random.default_rng(0)
    owners = draw.permutation(np.repeat(np.arange(60), 3))
    texts = tuple(collection.captions[at] for at in owners)
    vectors = unit_rows(collection.images[owners] + 0.2 * draw.standard_normal((180, 24)).astype(np.float32))
    many = replace(collection, captions=texts, owners=owners, caption_vectors=vectors)
    scores = vectors @ many.images.T
    degrees = np.exp(-4 * (1 - vectors @ many.images.T))
    calibration = caption_queries(many, np.arange(180), degrees, 0.6).fit()
    return CaptionEnds.of(calibration, many), many, scores, calibration


def test_captions_are_judged_as_in_an_index_with_the_others() -> None:
    ends, many, scores, calibration = ends_of_many()
    known = TextEvidence(many).known(many.captions, many.caption_vectors, np.arange(180))
    wanted = calibration.judge(scores, "t2i", np.arange(180), known)
    whole = ends.judge(scores, "t2i", np.arange(180))
    np.testing.assert_allclose(whole.degrees, wanted.degrees, atol=1e-5)
    np.testing.assert_array_equal(whole.shown, wanted.shown)
    one = ends.judge(scores[7:8], "t2i", np.array([7]))
    np.testing.assert_array_equal(one.degrees[0], whole.degrees[7])  # to the bit, in whatever block
    some = np.arange(5)
    part = ends.of_part(np.arange(60), np.arange(180)).judge(scores, "t2i", np.arange(180))
    for name in ("cuts", "beliefs", "degrees", "shown"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))  # a part may be all
    plain, informed = calibration.judge(scores.T[:5], "i2t", some), ends.judge(scores.T[:5], "i2t", some)
    np.testing.assert_array_equal(plain.degrees, informed.degrees)
    assert str(ends) == f"{calibration}; of captions, with the other captions of their hits"


def test_in_a_part_hits_keep_their_captions() -> None:
    ends, many, scores, calibration = ends_of_many()
    images, captions = np.arange(5, 45), np.flatnonzero(many.owners == 7)
    known = TextEvidence(many).known([many.captions[at] for at in captions], many.caption_vectors[captions], captions)
    part = scores[np.ix_(captions, images)]
    wanted = calibration.judge(part, "t2i", np.arange(3), [one.of_hits(images) for one in known])
    judged = ends.of_part(images, captions).judge(part, "t2i", np.arange(3))
    np.testing.assert_allclose(judged.degrees, wanted.degrees, atol=1e-5)


THINGS, PLACES = ("pizza", "cake", "dog", "cat", "bus", "lamp", "hat", "ball"), ("plate", "table", "street", "lawn")
OTHERS = ("", " next to a wine glass", " next to a tree", " near two men", " behind a fence")


class Described(Worded):
    """A text is the sum of the directions of its words, and of something that nobody said."""

    _words = tuple(sorted({word for text in (*THINGS, *PLACES, *OTHERS, "a on") for word in text.split()}))
    _of_word = np.random.default_rng(1).normal(size=(len(_words), 24)).astype(np.float32)

    def encode_text(self, texts):
        rows = []
        for text in texts:
            known = [self._of_word[self._words.index(word)] for word in text.lower().split() if word in self._words]
            rows.append(np.sum([*known, np.random.default_rng(len(text)).normal(size=24)], axis=0))
        return unit_rows(np.array(rows, np.float32))


def test_a_picture_whose_caption_says_it_all_and_more_is_on_the_first_rung(tmp_path: Path) -> None:
    """It has a pizza on a plate, and a glass as well: its caption is longer than the query, and fits it."""
    model, rng = Described(), np.random.default_rng(0)
    scenes = tuple(
        f"{rng.choice(THINGS).capitalize()} on a {rng.choice(PLACES)}{rng.choice(OTHERS)}" for _ in range(400)
    )
    rows = model.encode_text(scenes) + 0.15 * rng.normal(size=(400, 24)).astype(np.float32)
    names = tuple(f"{at}.jpg" for at in range(400))
    index = Index.build(
        ImageCaptions(names, scenes, np.arange(400), features=FeatureRows(rows)), model, tmp_path / "index"
    )
    queries, _ = training_queries(TextedPictures.of_index(index, model), 300)
    index.keep_calibration(queries.fit(source="captions", model_fingerprint=index.manifest.model_fingerprint))
    options = SearchOptions(fold_duplicates=False)
    answer = Searcher(index, model).search("pizza on a plate", 400, options=options)
    assert answer.end.source == "captions"
    rungs = dict(zip((hit.id for hit in answer.hits), answer.end.rungs, strict=True))
    whole = "Pizza on a plate next to a wine glass"
    told = [rungs[one] for one, text in zip(names, scenes, strict=True) if text == whole]
    assert len(told) >= 2
    assert set(told) == {1}
    others = [rungs[one] for one, text in zip(names, scenes, strict=True) if not text.startswith("Pizza on a plate")]
    assert others.count(1) <= 2
