from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.language import WordVectors
from rungwise.relevance import Cascade, CBoW, CIDErD, DocumentFrequencies, HumanJudgements, Labels, TfIdf, load
from rungwise.relevance.combine import mean
from rungwise.relevance.combine._combinations import Calibrated

CAPTIONS = ["a dog runs", "a red dog", "the cat sleeps", "a cat", "blue sky", "a dog and a cat"]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def source():
    return CIDErD(CAPTIONS, OWNERS)


def test_all_pairs_come_back_memory_mapped(source, tmp_path):
    source.save(tmp_path / "degrees")
    stored = load(tmp_path / "degrees", expected=source)
    assert isinstance(stored._values, np.memmap)
    np.testing.assert_array_equal(stored.dense(), source.dense())
    np.testing.assert_array_equal(stored.block([3, 0, 0], [5, 1]), source.block([3, 0, 0], [5, 1]))
    np.testing.assert_array_equal(stored.topk(2, "t2i")[0], source.topk(2, "t2i")[0])
    np.testing.assert_array_equal(stored.image_of_caption, OWNERS)


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("k", [1, 2, 99])
def test_the_best_come_back_and_others_read_as_0(source, tmp_path, direction, k):
    source.save(tmp_path / "best", k=k, direction=direction)
    stored = load(tmp_path / "best")
    matrix = source.dense() if direction == "i2t" else source.dense().T
    expected = np.zeros_like(matrix)
    best = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    np.put_along_axis(expected, best, np.take_along_axis(matrix, best, axis=1), axis=1)
    expected = expected if direction == "i2t" else expected.T
    np.testing.assert_array_equal(stored.dense(), expected)
    rows, columns = [3, 1, 1], [5, 5, 0, 2]
    np.testing.assert_array_equal(stored.block(rows, columns), expected[np.ix_(rows, columns)])
    np.testing.assert_array_equal(stored.topk(k, direction)[0], best)
    other = "t2i" if direction == "i2t" else "i2t"
    with pytest.raises(UserError, match="of each query were kept"):
        stored.topk(1, other)


def test_a_stale_file_is_refused_naming_both_hashes(source, tmp_path):
    source.save(tmp_path / "degrees")
    for other in (
        CIDErD([*CAPTIONS[:-1], "something else"], OWNERS),
        CIDErD(CAPTIONS, [0, 0, 1, 1, 3, 2]),
        CIDErD(CAPTIONS, OWNERS, leave_one_out=True),
        CIDErD(CAPTIONS, OWNERS, tokenizer=list),
        TfIdf(CAPTIONS, OWNERS),
    ):
        with pytest.raises(UserError) as caught:
            load(tmp_path / "degrees", expected=other)
        assert source.content_hash()[:16] in str(caught.value)
        assert other.content_hash()[:16] in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_was_saved_says_what_it_is(tmp_path):
    source = TfIdf(["a red star", "a blue heart", "a red heart"], [0, 1, 1])
    source.save(tmp_path / "all")
    source.save(tmp_path / "best", k=1, direction="t2i")
    assert load(tmp_path / "all").title() == source.title() == f"TfIdf, hash {source.content_hash()[:16]}"
    assert load(tmp_path / "best").title() == f"{source.title()}, best 1 t2i"


@pytest.mark.parametrize("reference", ["max", "mean", "paired"])
def test_the_reference_of_caption_pairs_is_kept_through_files_and_combinations(reference, tmp_path):
    source = TfIdf(["a red star", "a blue heart", "a red heart"], [0, 1, 1], reference=reference)
    source.save(tmp_path / "degrees")
    kept = load(tmp_path / "degrees")
    other = TfIdf(source.captions, source.image_of_caption, reference="max" if reference == "mean" else "mean")
    assert kept.reference == source.reference == mean([source, kept]).reference == reference
    assert mean([source, other]).reference is None
    assert CIDErD(source.captions, source.image_of_caption).reference is None


def collection(captions=CAPTIONS, owners=OWNERS):
    return ImageCaptions(tuple("abcd"), tuple(captions), np.array(owners), name="these data")


def test_degrees_of_other_captions_are_refused_naming_both_hashes(source, tmp_path):
    for number, one in enumerate((source, mean([Labels("wxyz", OWNERS), source]), Calibrated(source, [0, 1], [0, 1]))):
        one.save(tmp_path / f"{number}")
        again = load(tmp_path / f"{number}", data=collection())
        assert again.captions_hash == source.captions_hash
        for other in (collection([*CAPTIONS[:-1], "something else"]), collection(owners=[0, 0, 1, 1, 3, 2])):
            with pytest.raises(UserError, match="but these data has 4 and 6, or other ones") as caught:
                load(tmp_path / f"{number}", data=other)
            assert source.captions_hash[:16] in str(caught.value)
            assert CIDErD(other.captions, other.image_of_caption).captions_hash[:16] in str(caught.value)
            assert "\n" not in str(caught.value)


def test_degrees_that_do_not_say_their_captions_are_taken(source, tmp_path):
    Labels("wxyz", OWNERS).save(tmp_path / "labels")
    assert load(tmp_path / "labels", data=collection()).captions_hash is None


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_the_best_of_a_source_with_gaps_read_as_nan_elsewhere(tmp_path, direction):
    human = HumanJudgements([0, 0, 1], [1, 2, 0], [3, 4, 1], (2, 3))
    for number, one in enumerate((human, mean([human, human]), Calibrated(human, [0, 5], [0, 5]))):
        one.save(tmp_path / f"{number}", k=2, direction=direction)
        stored = load(tmp_path / f"{number}")
        np.testing.assert_array_equal(stored.dense(), human.dense())
        np.testing.assert_array_equal(stored.block([1, 0], [2, 1]), human.block([1, 0], [2, 1]))


@pytest.mark.parametrize(("images", "captions"), [([-1], [0]), ([0], [-1]), ([4], [0]), ([0], [6])])
def test_positions_outside_are_refused(source, tmp_path, images, captions):
    source.save(tmp_path / "all")
    source.save(tmp_path / "best", k=2)
    for one in (source, TfIdf(CAPTIONS, OWNERS), load(tmp_path / "all"), load(tmp_path / "best")):
        with pytest.raises(UserError, match="must lie in 0"):
            one.block(images, captions)


def test_a_folder_says_whose_document_frequencies_it_counts(source, tmp_path):
    corpus = DocumentFrequencies.of(CAPTIONS[:2], [0, 0])
    corpus.save(tmp_path / "corpus.npz")
    training = replace(corpus, origin="train")
    training.save(tmp_path / "training.npz")
    assert DocumentFrequencies.load(tmp_path / "training.npz").origin == "train"
    of_train = CIDErD(CAPTIONS, OWNERS, document_frequencies=DocumentFrequencies.load(tmp_path / "training.npz"))
    of_others = CIDErD(CAPTIONS, OWNERS, document_frequencies=DocumentFrequencies.load(tmp_path / "corpus.npz"))
    labels = Labels("wxyz", OWNERS)
    words = TfIdf(CAPTIONS, OWNERS, document_frequencies=training)
    vectors = WordVectors({"dog": 0, "cat": 1}, np.eye(2, dtype=np.float32))
    for number, (one, wanted) in enumerate((
        (source, "collection"),
        (of_train, "train"),
        (of_others, "unknown"),
        (labels, None),
        (mean([of_train, labels]), "train"),
        (mean([of_train, source]), "collection"),
        (mean([labels]), None),
        (Calibrated(source, [0, 1], [0, 1]), "collection"),
        (Cascade(words, CBoW(CAPTIONS, OWNERS, vectors)), "train"),
    )):  # fmt: skip
        one.save(tmp_path / f"{number}")
        assert one.frequencies_from == load(tmp_path / f"{number}").frequencies_from == wanted
    assert of_train.content_hash() == of_others.content_hash() != source.content_hash()
