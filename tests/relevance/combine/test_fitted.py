import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.language import load_word_vectors
from rungwise.language.scene_graphs import chunking
from rungwise.language.tokenisers import unicode_words, whitespace
from rungwise.relevance import (
    CBoW,
    CIDErD,
    Combined,
    HumanJudgements,
    ModelScores,
    Spice,
    TfIdf,
    Visual,
    answers_caption_pairs,
    load,
)
from rungwise.relevance.combine import fit_table, mean
from rungwise.relevance.precomputed import CachedConsensus, CachedPairRows, kept_rows

WORDS = ("dog", "cat", "fox", "cow", "hen")
CAPTIONS = [f"{size} {animal} {place}" for size in ("big", "small") for animal in WORDS for place in ("here", "there")]
OWNERS = np.arange(len(CAPTIONS)) // 2
IMAGES = len(CAPTIONS) // 2


def people(seed=0):
    draw = np.random.default_rng(seed)
    images, captions = np.divmod(draw.permutation(IMAGES * len(CAPTIONS))[:150], len(CAPTIONS))
    same = [len(set(CAPTIONS[2 * i].split()) & set(CAPTIONS[c].split())) for i, c in zip(images, captions, strict=True)]
    return HumanJudgements(images, captions, same + draw.random(150), (IMAGES, len(CAPTIONS)), image_of_caption=OWNERS)


@pytest.fixture
def sources():
    return [TfIdf(CAPTIONS, OWNERS), TfIdf(CAPTIONS, OWNERS, orders=2)]


@pytest.mark.parametrize("kind", ["isotonic", "monotone"])
def test_degrees_are_the_regression_of_the_sources_degrees(kind, sources):
    human = people()
    learned = Combined(sources).fit(human, kind=kind)
    table = np.stack([source.dense().ravel() for source in sources], axis=1)
    wanted = learned.fitted.apply(table).reshape(IMAGES, len(CAPTIONS))
    np.testing.assert_allclose(learned.dense(), wanted, rtol=1e-6)
    np.testing.assert_allclose(learned.block([3, 1], [5, 0, 7]), wanted[np.ix_([3, 1], [5, 0, 7])], rtol=1e-6)
    judged = np.array([[source.block([i], [c])[0, 0] for source in sources] for i, c in human.pairs])
    again = fit_table(
        judged,
        human.grades,
        kind=kind,
        groups=human.pairs[:, 0],
        names=tuple(one.called for one in sources),
        hashes=[source.content_hash() for source in sources],
        judgements=human.content_hash(),
    )
    assert learned.fitted == again
    assert learned.fitted.low <= learned.dense().min() <= learned.dense().max() <= learned.fitted.high


def test_caption_pairs_are_combined_where_all_sources_have_them(sources):
    learned = Combined(sources).fit(people())
    pairs = np.stack([source.pair_block([0, 4], [2, 3, 9]) for source in sources], axis=-1)
    wanted = learned.fitted.apply(pairs.reshape(-1, 2)).reshape(2, 3)
    np.testing.assert_allclose(learned.pair_block([0, 4], [2, 3, 9]), wanted, rtol=1e-6)
    assert not answers_caption_pairs(Combined([sources[0], CIDErD(CAPTIONS, OWNERS)]).fit(people()))


def test_a_fit_is_applied_to_other_captions(sources):
    learned = Combined(sources).fit(people())
    others = ["small dog here", "a hen there"]
    applied = Combined([TfIdf(others, [0, 1]), TfIdf(others, [0, 1], orders=2)], learned.fitted)
    table = np.stack([source.dense().ravel() for source in applied.sources], axis=1)
    np.testing.assert_allclose(applied.dense().ravel(), learned.fitted.apply(table), rtol=1e-6)


def test_other_sources_than_those_that_were_fitted_are_refused(sources):
    fitted = Combined(sources).fit(people()).fitted
    for others in (sources[::-1], sources[:1], [sources[0], TfIdf(CAPTIONS, OWNERS, orders=3)]):
        with pytest.raises(UserError, match="give the same sources with the same options"):
            Combined(others, fitted)


def vectors(directory):
    words = sorted({word for text in [*CAPTIONS, "small dog here", "a hen there"] for word in text.split()})
    draw = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{number:.4f}' for number in draw.normal(size=4))}\n" for word in words]
    (directory / "vectors.txt").write_text("".join(lines))
    return directory / "vectors.txt"


def test_a_source_is_called_alike_on_other_captions(tmp_path):
    words = load_word_vectors(vectors(tmp_path), None)
    others, owners = ["small dog here", "a hen there"], [0, 1]

    def made(captions, of):
        tfidf, cbow = TfIdf(captions, of), CBoW(captions, of, words)
        images = len(set(of))
        scores = ModelScores(np.ones((images, len(of))), of, model="5eed", images=images)
        looks = Visual(np.eye(images), of, through=tfidf, neighbours=2, model="5eed")
        return [tfidf, CIDErD(captions, of), cbow, mean([tfidf, cbow]), looks, scores]

    for one, other in zip(made(CAPTIONS, OWNERS), made(others, owners), strict=True):
        assert one.called == other.called
        for source in (one, other):
            source.save(tmp_path / "saved")
            assert load(tmp_path / "saved").called == one.called


@pytest.mark.parametrize(
    "other",
    [
        lambda words: CBoW(CAPTIONS, OWNERS, words, stop_words=("a",)),
        lambda words: TfIdf(CAPTIONS, OWNERS, tokenizer=unicode_words),
        lambda words: TfIdf(CAPTIONS, OWNERS, stemming="english"),
        lambda words: CIDErD(CAPTIONS, OWNERS, tokenizer=whitespace),
        lambda words: mean([TfIdf(CAPTIONS, OWNERS), TfIdf(CAPTIONS, OWNERS, tokenizer=unicode_words)]),
        lambda words: Spice(CAPTIONS, OWNERS, parser=lambda text: chunking.parse(text)),
    ],
    ids=["stop words", "tokenizer", "stems", "spaces", "within", "parser"],
)
def test_another_choice_is_another_name(other, tmp_path):
    words = load_word_vectors(vectors(tmp_path), None)
    cbow, tfidf, cider = CBoW(CAPTIONS, OWNERS, words), TfIdf(CAPTIONS, OWNERS), CIDErD(CAPTIONS, OWNERS)
    usual = (cbow, tfidf, cider, mean([tfidf, tfidf]), Spice(CAPTIONS, OWNERS))
    assert other(words).called not in {one.called for one in usual}


def test_what_was_kept_is_called_like_its_source():
    for source in (TfIdf(CAPTIONS, OWNERS, tokenizer=unicode_words), CIDErD(CAPTIONS, OWNERS, tokenizer=whitespace)):
        restored = CachedPairRows if isinstance(source, TfIdf) else CachedConsensus
        assert restored(kept_rows(source), CAPTIONS, OWNERS).called == source.called


def test_saved_degrees_have_the_name_of_their_source(sources, tmp_path):
    learned = Combined(sources).fit(people())
    for place, source in enumerate(sources):
        source.save(tmp_path / f"{place}")
    stored = Combined([load(tmp_path / "0"), load(tmp_path / "1")], learned.fitted)
    np.testing.assert_array_equal(stored.dense(), learned.dense())


def test_it_is_saved_and_loaded_like_any_source(sources, tmp_path):
    learned = Combined(sources).fit(people())
    learned.save(tmp_path / "degrees")
    found = load(tmp_path / "degrees", expected=learned)
    np.testing.assert_array_equal(found.dense(), learned.dense())
    assert found.options()["fit"]["judgements"] == people().content_hash()


def test_another_fit_or_source_gives_another_hash(sources):
    hashes = {
        Combined(sources).fit(people()).content_hash(),
        Combined(sources).fit(people(1)).content_hash(),
        Combined(sources).fit(people(), kind="monotone").content_hash(),
        Combined(sources[:1]).fit(people()).content_hash(),
    }
    assert len(hashes) == 4


def test_pairs_given_as_arrays_teach_the_same(sources):
    human = people()
    grades = human.grades.astype(np.float64)
    first = Combined(sources).fit(human).fitted
    second = Combined(sources).fit_pairs(*human.pairs.T, grades).fitted
    assert (first.weights, first.curves, first.pearson) == (second.weights, second.curves, second.pearson)


def test_what_cannot_be_learned_is_refused_in_one_line(sources):
    unfitted = Combined(sources)
    shape = (IMAGES, len(CAPTIONS))
    cases = {
        "nothing was learned yet": unfitted.dense,
        "judgements of the same collection": lambda: unfitted.fit(HumanJudgements([0], [0], [1], (2, 2))),
        "cannot be listed": lambda: unfitted.fit(sources[0]),
        "1 judged pairs": lambda: unfitted.fit(HumanJudgements([0], [0], [1], shape)),
        "give equally many": lambda: unfitted.fit_pairs([0], [0], [1, 2]),
        "must lie in": lambda: unfitted.fit_pairs([-1], [0], [1]),
        "has no degree of 149 of the 150 judged pairs": lambda: Combined(
            [sources[0], HumanJudgements(*people().pairs[:1].T, [1], shape)]
        ).fit(people()),
    }
    for message, make in cases.items():
        with pytest.raises(UserError) as caught:
            make()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
