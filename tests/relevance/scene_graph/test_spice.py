"""SPICE against nested loops over tuples, which import nothing of the source. Also tests
rungwise.relevance.scene_graph._facts and rungwise.relevance.scene_graph._fact_kernels.
"""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.data import read
from rungwise.language import WordVectors
from rungwise.language.scene_graphs import Synonyms, canonical, chunking
from rungwise.losses import Ladder
from rungwise.relevance import CaptionSource, Cascade, FactWeights, Spice, TfIdf, answers_caption_pairs, load
from rungwise.relevance.embedding import by_word_vectors
from rungwise.relevance.scene_graph._facts import FactNumbers, alike, answered
from rungwise.scenes import SceneConfig, generate

WORDS = ("dog", "pup", "cat", "kid", "child", "red", "small", "little")
VECTORS = WordVectors(
    {"dog": 0, "pup": 1, "cat": 2, "red": 3, "blue": 4},
    np.array([[1, 0], [0.95, 0.3122], [0.6, 0.8], [0, 1], [0.05, 0.9987]], np.float32),
)
SETS = (frozenset({"kid", "child"}), frozenset({"small", "little"}))
SYNONYMS = Synonyms(
    {word: frozenset((str(number),)) for number, one in enumerate(SETS) for word in one}, "of the tests"
)


def said(text):
    """Facts that are written as they are: "dog; dog red; dog on cat"."""
    return frozenset(tuple(fact.split()) for fact in text.split(";") if fact.strip())


def slow_word(a, b, least):
    if a == b or any(a in one and b in one for one in SETS):
        return 1.0
    exact = {"red", "blue", "small", "little", "on"}
    if least is None or a in exact or b in exact or a not in VECTORS.row or b not in VECTORS.row:
        return 0.0
    u, v = VECTORS.table[VECTORS.row[a]], VECTORS.table[VECTORS.row[b]]
    cosine = float(u @ v) / float(np.linalg.norm(u) * np.linalg.norm(v))
    return max(0.0, (cosine - least) / (1 - least))


def slow_fact(a, b, least):
    if len(a) != len(b):
        return 0.0
    degree = 1.0
    for one, other in zip(a, b, strict=True):
        degree *= slow_word(one, other, least)
    return degree if degree >= 0.05 else 0.0


def slow_degree(references, caption, *, least=None, measure="f", weights=(1, 1, 1), unbound=0):
    """F or precision of a caption's facts against those of its references, as the module's equations say."""
    if unbound:
        references = [graph | {("something", fact[1]) for fact in graph if len(fact) == 2} for graph in references]
        caption = caption | {("something", fact[1]) for fact in caption if len(fact) == 2}

    def weight(fact):
        return unbound if fact[0] == "something" else weights[len(fact) - 1]

    def different(facts):
        kept = []
        for fact in sorted(facts):
            if not any(slow_fact(other, fact, least) == 1 for other in kept):
                kept.append(fact)
        return kept

    shown = {fact for graph in references for fact in graph}
    said = different(caption)
    common = 0.0
    for fact in said:
        best = 0.0
        for other in shown:
            best = max(best, slow_fact(fact, other, least))
        common += weight(fact) * best
    own, others = sum(map(weight, said)), sum(map(weight, different(shown)))
    if measure == "precision":
        return common / own if own else 0.0
    return 2 * min(common, own, others) / (own + others) if own + others else 0.0


GRAPHS = ("dog; dog red", "pup; pup red; pup on cat", "", "kid; kid small; child on dog", "child; child little", "cat")
OWNERS = (0, 0, 1, 2, 2, 4)


def source_of(texts=GRAPHS, owners=OWNERS, **options):
    options = {"synonyms": SYNONYMS, "parser": said, **options}
    return Spice(texts, owners, **options)


@pytest.mark.parametrize(
    ("measure", "least", "weights", "unbound"),
    [
        ("f", None, (1, 1, 1), 0),
        ("f", 0.5, (1, 0.5, 0.25), 0.5),
        ("f", 0.9, (0, 1, 0), 0),
        ("f", None, (1, 0, 1), 1),
        ("precision", None, (1, 0.5, 0.25), 0.5),
        ("precision", 0.5, (1, 1, 1), 0),
        ("precision", 0.9, (1, 0, 1), 1),
        ("precision", 0.5, (0, 1, 0), 0),
    ],
)
def test_degrees_are_those_of_nested_loops(measure, least, weights, unbound):
    likeness = None if least is None else by_word_vectors(VECTORS, least=least)
    options = {"measure": measure, "weights": weights, "unbound": unbound}
    found = source_of(likeness=likeness, images=6, measure=measure, weights=FactWeights(*weights, unbound))
    for image, caption in product(range(6), range(len(GRAPHS))):
        references = [said(text) for text, owner in zip(GRAPHS, OWNERS, strict=True) if owner == image]
        expected = slow_degree(references, said(GRAPHS[caption]), least=least, **options)
        assert found.block([image], [caption])[0, 0] == pytest.approx(expected, abs=1e-6)


facts = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(WORDS)),
        st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)),
        st.tuples(st.sampled_from(WORDS), st.just("on"), st.sampled_from(WORDS)),
    ),
    max_size=5,
)


@settings(max_examples=20)
@given(st.lists(facts, min_size=2, max_size=6), st.data())
def test_any_facts_against_nested_loops(graphs, data):
    texts = ["; ".join(" ".join(fact) for fact in graph) for graph in graphs]
    owners = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    source = source_of(texts, owners, images=3, likeness=by_word_vectors(VECTORS, least=0.5))
    dense = source.dense()
    for image, caption in product(range(3), range(len(texts))):
        references = [said(text) for text, owner in zip(texts, owners, strict=True) if owner == image]
        assert dense[image, caption] == pytest.approx(
            slow_degree(references, said(texts[caption]), least=0.5), abs=1e-5
        )
    pairs = source.pair_block(np.arange(len(texts)), np.arange(len(texts)))
    singles = source.pair_scores(*(grid.ravel() for grid in np.indices(pairs.shape)))
    np.testing.assert_allclose(singles.reshape(pairs.shape), pairs, atol=1e-6)
    for a, b in product(range(len(texts)), repeat=2):
        assert pairs[a, b] == pytest.approx(slow_degree([said(texts[a])], said(texts[b]), least=0.5), abs=1e-5)


CHAIN = Synonyms({"cat": frozenset("1"), "dog": frozenset("12"), "pup": frozenset("2")}, "a chain, as WordNet has many")
SEVERAL = ("kid; child; child on dog; kid on dog", "cat; dog; pup; pup red", "cat; pup", "dog", "small; little; red")


@pytest.mark.parametrize(
    ("synonyms", "least", "measure", "options"),
    [
        (SYNONYMS, None, "f", {}),
        (SYNONYMS, 0.2, "precision", {"weights": FactWeights(1, 0.5, 0.3, unbound=0.3)}),
        (CHAIN, None, "precision", {}),
        (CHAIN, 0.2, "f", {"weights": FactWeights(1, 0.5, 0.3, unbound=0.3)}),
        (CHAIN, 0.2, "precision", {}),
        (CHAIN, None, "f", {"weights": FactWeights(1, 0.5, 0.3, unbound=0.3)}),
    ],
)
def test_degrees_lie_between_0_and_1_and_a_caption_is_itself(synonyms, least, measure, options):
    likeness = None if least is None else by_word_vectors(VECTORS, least=least)
    texts = [*SEVERAL, *GRAPHS]
    source = source_of(texts, range(len(texts)), synonyms=synonyms, likeness=likeness, measure=measure, **options)
    degrees = source.dense()
    assert degrees.min() >= 0
    assert degrees.max() <= 1
    np.testing.assert_allclose(degrees.diagonal(), [bool(said(text)) for text in texts], atol=1e-6)
    np.testing.assert_allclose(source.pair_block(range(len(texts)), range(len(texts))), degrees, atol=1e-6)


def test_what_a_caption_says_twice_by_synonyms_counts_once():
    source = source_of(["kid; child; cat", "child; dog"], [0, 1])
    assert source.dense()[1, 0] == source.dense()[0, 1] == pytest.approx(2 * 1 / (2 + 2))
    told = source.explain(1, 0)
    assert [match.said for match in told.matched] == [("child",)]
    assert (told.missed, told.unsaid) == ((("cat",),), (("dog",),))


def test_leave_one_out_takes_a_caption_from_the_references_of_its_own_image():
    found = source_of(leave_one_out=True, images=5).dense()
    for image, caption in product(range(5), range(len(GRAPHS))):
        references = [said(text) for place, text in enumerate(GRAPHS) if OWNERS[place] == image and place != caption]
        assert found[image, caption] == pytest.approx(slow_degree(references, said(GRAPHS[caption])), abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"likeness": by_word_vectors(VECTORS)}, {"leave_one_out": True}])
def test_a_pair_has_the_same_bits_in_every_block(options):
    source = source_of(images=6, **options)
    dense = source.dense()
    rng = np.random.default_rng(0)
    for _ in range(10):
        images, captions = rng.integers(0, 6, 4), rng.integers(0, len(GRAPHS), 5)
        np.testing.assert_array_equal(source.block(images, captions), dense[np.ix_(images, captions)])
    values, places = source.topk(3)[1], source.topk(3)[0]
    np.testing.assert_array_equal(np.take_along_axis(dense, places, axis=1), values)


def test_order_of_captions_does_not_matter():
    texts, owners = [*GRAPHS, "cat", "dog", "pup"], np.array([*OWNERS, 3, 3, 3])
    before = source_of(texts, owners, synonyms=CHAIN, images=5).dense()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(texts))
        turned = source_of([texts[at] for at in order], owners[order], synonyms=CHAIN, images=5).dense()
        np.testing.assert_allclose(turned, before[:, order], atol=1e-6)


def test_a_caption_is_fully_relevant_to_itself_and_not_at_all_to_what_shares_nothing():
    source = source_of(["dog; dog red", "cat", ""], [0, 1, 2])
    np.testing.assert_array_equal(source.dense(), [[1, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_explain_names_what_matches_what_is_missing_and_what_was_not_said():
    source = source_of(["kid; kid small; dog; kid on dog", "child; child red; dog; dog under child"], [0, 1])
    told = source.explain(0, 1)
    assert {(match.said, match.shown, match.degree) for match in told.matched} == {
        (("child",), ("kid",), 1.0),
        (("dog",), ("dog",), 1.0),
    }
    assert set(told.missed) == {("child", "red"), ("child", "above", "dog")}
    assert set(told.unsaid) == {("kid", "small"), ("kid", "on", "dog")}
    assert told.degree == source.block([0], [1])[0, 0] == pytest.approx(2 * 2 / (4 + 4))
    assert str(told).splitlines() == [
        "degree 0.500",
        "in both: child ~ kid, dog",
        "only in the text: child - above - dog, child: red",
        "only in the captions: kid - on - dog, kid: small",
    ]
    with pytest.raises(UserError, match=r"image positions run 2\.\.2"):
        source.explain(2, 0)


def test_explain_adds_up_to_the_degree():
    source = source_of(images=6, likeness=by_word_vectors(VECTORS, least=0.5))
    for image, caption in product(range(6), range(len(GRAPHS))):
        told = source.explain(image, caption)
        assert {match.said for match in told.matched} | set(told.missed) == set(map(canonical, said(GRAPHS[caption])))
        common = sum(match.degree for match in told.matched)
        assert (common > 0) == (told.degree > 0)


def test_explain_leaves_the_caption_itself_out():
    told = source_of(["dog; dog red", "dog"], [0, 0], leave_one_out=True).explain(0, 0)
    assert [match.said for match in told.matched] == [("dog",)]
    assert told.missed == (("dog", "red"),)


def test_left_and_right_are_said_from_either_side():
    source = Spice(["a dog left of a cat", "a cat to the right of a dog", "a dog right of a cat"], [0, 1, 2])
    assert source.dense()[0].tolist() == pytest.approx([1, 1, 2 * 2 / 6])


def test_words_of_a_family_are_exact_however_near_their_vectors_are():
    likeness = by_word_vectors(VECTORS, least=0.5)
    source = source_of(["dog; dog red", "dog; dog blue", "pup; pup red"], [0, 1, 2], likeness=likeness)
    degrees = source.dense()[0]
    assert degrees[1] == pytest.approx(0.5)
    assert 0.5 < degrees[2] < 1


def test_an_unbound_attribute_counts_whatever_has_it():
    texts = ["dog; dog red", "cat; cat red", "cat; cat small"]
    assert source_of(texts, range(3)).dense()[0].tolist() == [1, 0, 0]
    degrees = source_of(texts, range(3), weights=FactWeights(unbound=0.5)).dense()[0]
    assert degrees.tolist() == pytest.approx([1, 2 * 0.5 / (2.5 + 2.5), 0])


def test_whatever_has_an_attribute_is_like_no_thing():
    vectors = WordVectors({"something": 0, "dog": 1, "cat": 2}, np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    texts = ["cat; cat red", "dog; dog red"]
    weights = FactWeights(unbound=0.5)
    exact, soft = (
        source_of(texts, range(2), weights=weights, likeness=one) for one in (None, by_word_vectors(vectors))
    )
    assert soft.dense().tolist() == exact.dense().tolist()
    assert soft.explain(0, 1).missed == (("dog",), ("dog", "red"))


def test_it_serves_losses_measures_and_cascades(tmp_path):
    import torch

    captions = ["a red dog runs", "a dog", "a cat sleeps on a bed", "a red cat"]
    source = Spice(captions, [0, 1, 2, 3])
    assert isinstance(source, CaptionSource)
    assert answers_caption_pairs(source)
    block = torch.from_numpy(source.pair_block(range(4), range(4)))
    loss = Ladder(thresholds=(0.3,), margins=(0.2, 0.01), weights=(1.0, 0.25))(torch.eye(4), block)
    assert torch.isfinite(loss)
    fine = Cascade(TfIdf(captions, [0, 1, 2, 3]), source, threshold=0.1, below="coarse")
    assert fine.dense()[0, 0] == pytest.approx(1.0)
    source.save(tmp_path / "degrees")
    np.testing.assert_array_equal(load(tmp_path / "degrees").dense(), source.dense())


def test_the_hash_tells_options_and_captions_apart():
    base = source_of()
    others = [
        source_of(measure="precision"),
        source_of(weights=FactWeights(relation=0)),
        source_of(weights=FactWeights(unbound=0.5)),
        source_of(likeness=by_word_vectors(VECTORS)),
        source_of(synonyms=Synonyms({}, "none")),
        source_of(leave_one_out=True),
        source_of([*GRAPHS[:-1], "cat; cat red"]),
        source_of(parser=lambda text: said(text) - {("dog",)}),
    ]
    assert len({one.content_hash() for one in (base, *others)}) == 1 + len(others)
    assert base.content_hash() == source_of().content_hash()
    assert base.fingerprint != others[0].fingerprint


def test_what_other_rules_read_has_another_fingerprint(monkeypatch):
    """Cascades keep scores on disk under it."""
    before = Spice(["a dog"], [0]).fingerprint
    assert Spice(["a cat"], [0]).fingerprint == before
    monkeypatch.setattr(chunking, "fingerprint", lambda: "of another version")
    assert Spice(["a dog"], [0]).fingerprint != before


def test_equal_captions_are_parsed_once():
    asked = []

    def parser(text):
        asked.append(text)
        return said(text)

    counted = []
    Spice(["dog", "cat", "dog"], [0, 1, 2], parser=parser, synonyms=SYNONYMS, progress=counted.append)
    assert asked == ["dog", "cat"]
    assert sum(counted) == 3


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_weights_count_by_their_proportions(scale):
    degrees = source_of(weights=FactWeights(scale, scale / 2, 0, scale / 4)).dense()
    np.testing.assert_allclose(degrees, source_of(weights=FactWeights(1, 0.5, 0, 0.25)).dense(), atol=1e-6)


def test_a_thing_that_a_parser_calls_something_is_a_thing():
    source = source_of(["something; something red", "dog; dog red"], [0, 1])
    assert source.dense().tolist() == [[1, 0], [0, 1]]


def test_a_measure_that_there_is_not_is_refused():
    with pytest.raises(UserError, match="measure must be 'f' or 'precision', got 'recall'"):
        source_of(measure="recall")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((0, 0, 0), "not all 0"),
        ((1, -1, 1), "that are not negative"),
        ((1, float("nan"), 1), "that are not negative"),
        ((1, 1, 1, -1), "unbound must be a number that is not negative"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, message):
    with pytest.raises(UserError, match=message):
        FactWeights(*weights)


def test_alike_facts_are_symmetric_and_hold_themselves():
    numbers = FactNumbers([said(text) for text in GRAPHS])
    near = alike(numbers.facts, SYNONYMS, by_word_vectors(VECTORS, least=0.5))
    matrix = np.zeros((len(numbers.facts),) * 2, np.float32)
    for fact in range(len(numbers.facts)):
        columns, values = near.row(fact)
        matrix[fact, columns] = values
    np.testing.assert_array_equal(matrix.diagonal(), 1)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6)
    expected = [[slow_fact(a, b, 0.5) for b in numbers.facts] for a in numbers.facts]
    np.testing.assert_allclose(matrix, expected, atol=1e-5)


def test_no_facts_at_all():
    numbers = FactNumbers([frozenset(), frozenset()])
    near = alike(numbers.facts, SYNONYMS, None)
    rows, sizes = answered(numbers, near, [np.array([0, 1]), np.array([], np.int64)], np.empty(0, np.float32))
    assert rows.starts.tolist() == [0, 0, 0]
    assert sizes.tolist() == [0, 0]


def test_a_paraphrase_stands_above_every_wrong_picture():
    """The rows of docs/guide/relevance/relevance.md: what is the same fact, and what is not."""
    asked = "a small red circle left of a blue square"
    same = ("a blue square right of a small red circle", "a little red disc left of a blue square")
    wrong = (
        "a small red circle right of a blue square",
        "a small blue circle left of a red square",
        "a large red circle left of a blue square",
        "two yellow stars",
    )
    degrees = Spice([asked, *same, *wrong], range(7), synonyms=Synonyms.own()).dense()[0]
    assert degrees[1:3].min() == 1
    assert degrees[1:3].min() > degrees[3:].max()


def test_precision_follows_the_exact_relevance_of_scenes(tmp_path):
    """The grammar finds what a scene's caption states; shares of true facts then rank nearly as the truth does."""
    from scipy.stats import spearmanr

    from rungwise.scenes import SceneRelevance

    data = generate(tmp_path, SceneConfig(pictures=30, side=32))
    source = Spice(data.captions, data.image_of_caption, measure="precision")
    exact = SceneRelevance.load(tmp_path, data).dense()
    own = data.image_of_caption[None, :] == np.arange(len(data))[:, None]
    assert all(source.graphs)
    assert spearmanr(source.dense()[~own], exact[~own])[0] > 0.4


def test_it_goes_to_other_processes():
    source = Spice(["a dog", "a cat"], [0, 1])
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(copy.copy(again).dense(), source.dense())


@pytest.mark.real_data
def test_captions_of_coco(real_data):
    data = read(real_data / "coco5k" / "captions.tsv", captions_only=True)
    some = data.select(np.arange(60))
    source = Spice(some.captions, some.image_of_caption)
    assert sum(not graph for graph in source.graphs) < 0.01 * len(some.captions)
    dense = source.dense()
    own = some.image_of_caption[None, :] == np.arange(len(some))[:, None]
    assert dense[own].mean() > 20 * dense[~own].mean()
