from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions
from rungwise.relevance import CBoW, CIDErD, Combined, Degrees, DocumentFrequencies, HumanJudgements, TfIdf
from rungwise.relevance.agreement._degrees import degrees_of_pairs, degrees_of_texts, leaving_one_out
from rungwise.relevance.combine import mean
from rungwise.relevance.human import Judgement, RatedPairs, add_judgement, read_judged

TEXTS = (
    "a red dog runs in the grass", "a dog runs", "a cat sleeps on a red sofa", "the cat sleeps",
    "two men ride horses on grass", "men on horses", "a man rides a horse in the sun",
)  # fmt: skip
OWNERS = np.array([0, 0, 1, 1, 2, 2, 2])
DATA = ImageCaptions(("a.jpg", "b.jpg", "c.jpg"), TEXTS, OWNERS, caption_ids=tuple("0123456"))


def judged(between, first, second):
    first, second = tuple(first), tuple(second)
    ratings = np.zeros((len(first), 1))
    places = tuple(f"line {number}" for number in range(2, len(first) + 2))
    return RatedPairs(between, "table", first, second, ratings, places, "file")


EVERY = judged("image-caption", np.repeat(DATA.image_ids, 7), np.tile(DATA.caption_ids, 3))


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("tfidf", lambda apart: TfIdf(TEXTS, OWNERS, leave_one_out=apart)),
        ("{kind: tfidf, reference: mean}", lambda apart: TfIdf(TEXTS, OWNERS, reference="mean", leave_one_out=apart)),
        ("cider-d", lambda apart: CIDErD(TEXTS, OWNERS, leave_one_out=apart)),
        (
            {"kind": "combine", "of": ["tfidf", "cider-d"], "how": "mean"},
            lambda apart: mean([kind(TEXTS, OWNERS, leave_one_out=apart) for kind in (TfIdf, CIDErD)]),
        ),
    ],
    ids=["tfidf", "options", "cider-d", "combine"],
)
def test_image_caption_pairs_are_asked_with_and_without_the_caption_itself(source, made):
    found = degrees_of_pairs(source, EVERY, DATA)
    np.testing.assert_allclose(found.degrees, made(False).dense().ravel(), atol=1e-6)
    np.testing.assert_allclose(found.apart, made(True).dense().ravel(), atol=1e-6)
    np.testing.assert_array_equal(found.own, (np.arange(3)[:, None] == OWNERS).ravel())
    assert found.kept.tolist() == list(range(21))
    assert not found.issues


def test_saved_degrees_answer_too_and_know_nothing_apart(tmp_path):
    TfIdf(TEXTS, OWNERS).save(tmp_path / "degrees")
    found = degrees_of_pairs(str(tmp_path / "degrees"), EVERY, DATA)
    np.testing.assert_allclose(found.degrees, TfIdf(TEXTS, OWNERS).dense().ravel(), atol=1e-6)
    assert found.apart is None


def test_a_copy_leaves_the_source_as_it_was():
    source = TfIdf(TEXTS, OWNERS)
    both = mean([source, HumanJudgements([0], [0], [1], source.shape)])
    apart = leaving_one_out(both)
    assert [getattr(one, "leave_one_out", None) for one in apart.sources] == [True, None]
    assert (source.leave_one_out, both.sources[0]) == (False, source)
    assert leaving_one_out(HumanJudgements([0], [0], [1], (1, 1))) is None


def test_a_source_that_was_fitted_to_these_judgements_is_told(tmp_path):
    data = ImageCaptions(tuple("abcdef"), TEXTS * 2, np.concatenate([OWNERS, OWNERS + 3]))
    images, captions = np.repeat(np.arange(6), 14), np.tile(np.arange(14), 6)
    grades = (
        np.random.default_rng(0).integers(1, 5, (84, 3)) + 2.0 * (data.image_of_caption[captions] == images)[:, None]
    )
    file = tmp_path / "grades.csv"
    header = "image,caption,rater_1,rater_2,rater_3\n"

    def written(rows):
        lines = [
            f"{data.image_ids[i]},{data.caption_ids[c]},{','.join(map(str, some))}\n"
            for i, c, some in zip(images[rows], captions[rows], grades[rows], strict=True)
        ]
        file.write_text(header + "".join(lines))
        return read_judged([file])

    whole = written(slice(None))
    sources = [TfIdf(data.captions, data.image_of_caption), CIDErD(data.captions, data.image_of_caption)]
    human = HumanJudgements(images, captions, grades.mean(axis=1), (6, 14))
    fitted = Combined(sources).fit(human)
    fitted.save(tmp_path / "fitted")
    for source in (fitted, mean([sources[0], fitted]), str(tmp_path / "fitted")):
        assert degrees_of_pairs(source, whole, data).fitted
    assert not degrees_of_pairs(sources[0], whole, data).fitted
    assert not degrees_of_pairs(fitted, written(slice(1, None)), data).fitted


def test_what_the_collection_lacks_is_listed():
    pairs = judged("image-caption", ["x/a.jpg", "a.jpg", "b.jpg", "9.jpg"], ["id:0", "77", "3", "3"])
    found = degrees_of_pairs("tfidf", replace(pairs, first=("a", "a.jpg", "b.jpg", "9.jpg")), DATA)
    assert found.kept.tolist() == [0, 2]
    assert [(one.kind, one.where, one.detail) for one in found.issues] == [
        ("judgement of an unknown caption", "line 3", "'77'"),
        ("judgement of an unknown image", "line 5", "'9.jpg'"),
    ]
    with pytest.raises(
        UserError, match="file: none of its 1 judgements is of collection, such as 'z' .line 2."
    ) as caught:
        degrees_of_pairs("tfidf", judged("caption-caption", ["z"], ["0"]), DATA)
    assert "\n" not in str(caught.value)


FIRST, SECOND = [0, 0, 3, 5, 6], [1, 2, 3, 4, 0]
CAPTIONS = judged("caption-caption", map(str, FIRST), map(str, SECOND))


def grade(path, image, caption, text, who="Ada"):
    caption_id = DATA.caption_ids[caption]
    add_judgement(path, Judgement(image, caption_id, 3, who, "2026-01-01T00:00:00Z", hash_of_text(text)))


def test_judgements_of_captions_that_changed_are_left_out_and_listed(tmp_path):
    path = tmp_path / "judgements.jsonl"
    for caption in (1, 2):
        grade(path, "a.jpg", caption, TEXTS[caption])
    grade(path, "a.jpg", 1, "what stood there before", "Bo")
    path.write_bytes(path.read_bytes() + b"damaged\n")
    found = degrees_of_pairs("tfidf", read_judged([path]), DATA)
    assert found.kept.tolist() == [0, 1]
    assert [(one.kind, one.where) for one in found.issues] == [
        ("damaged judgement", f"{path}, line 4"),
        ("judgement of another caption", f"{path}, line 3"),
    ]
    assert read_judged([path]).ratings[0].tolist()[0] == 3


def test_a_file_of_which_most_is_of_other_captions_is_refused(tmp_path):
    path = tmp_path / "judgements.jsonl"
    grade(path, "a.jpg", 0, TEXTS[0])
    for caption in (1, 2):
        grade(path, "a.jpg", caption, "another text")
    with pytest.raises(UserError, match="2 of its 3 judgements are of other captions, the first at line 2"):
        degrees_of_pairs("tfidf", read_judged([path]), DATA)


def test_captions_are_asked_by_caption_pair(tmp_path):
    found = degrees_of_pairs("tfidf", CAPTIONS, DATA)
    np.testing.assert_allclose(found.degrees, TfIdf(TEXTS, OWNERS).pair_block(FIRST, SECOND).diagonal(), atol=1e-6)
    assert found.own.tolist() == [True, False, True, True, False]
    assert found.apart is None
    vectors = tmp_path / "words.txt"
    vectors.write_text(
        "".join(f"{word} {at % 3} {at % 5} 1\n" for at, word in enumerate(sorted(set(" ".join(TEXTS).split()))))
    )
    found = degrees_of_pairs({"kind": "cbow", "vectors": str(vectors)}, CAPTIONS, DATA)
    wanted = CBoW(TEXTS, OWNERS, vectors).pair_block(FIRST, SECOND).diagonal()
    np.testing.assert_allclose(found.degrees, wanted, atol=1e-6)


@pytest.mark.parametrize("source", ["cider-d", "{kind: cider-d, frequencies: collection}"])
def test_a_source_without_caption_pairs_takes_every_caption_for_an_image(source):
    frequencies = DocumentFrequencies.of(TEXTS, OWNERS)
    wanted = CIDErD(TEXTS, np.arange(7), document_frequencies=frequencies).dense()[FIRST, SECOND]
    np.testing.assert_allclose(degrees_of_pairs(source, CAPTIONS, DATA).degrees, wanted, atol=1e-6)


def test_words_are_counted_where_the_source_itself_counts_them():
    split = replace(DATA, splits=("train", "test", "train"))
    kept = np.flatnonzero(OWNERS != 1)
    frequencies = DocumentFrequencies.of([TEXTS[at] for at in kept], OWNERS[kept])
    wanted = CIDErD(TEXTS, np.arange(7), document_frequencies=frequencies).dense()[FIRST, SECOND]
    np.testing.assert_allclose(degrees_of_pairs("cider-d", CAPTIONS, split).degrees, wanted, atol=1e-6)


@pytest.mark.parametrize("kind", ["caption-caption", "image-image"])
def test_saved_degrees_have_no_caption_pairs(tmp_path, kind):
    TfIdf(TEXTS, OWNERS).save(tmp_path / "degrees")
    pairs = CAPTIONS if kind == "caption-caption" else judged(kind, ["a.jpg"], ["b.jpg"])
    if kind == "caption-caption":
        with pytest.raises(UserError, match="has no degrees of captions with captions"):
            degrees_of_pairs(str(tmp_path / "degrees"), pairs, DATA)
    else:  # by image and caption they can be asked, both ways
        dense = TfIdf(TEXTS, OWNERS).dense()
        wanted = (dense[0][OWNERS == 1].mean() + dense[1][OWNERS == 0].mean()) / 2
        assert degrees_of_pairs(str(tmp_path / "degrees"), pairs, DATA).degrees == pytest.approx([wanted], rel=1e-5)


IMAGES = judged("image-image", ["a.jpg", "c.jpg", "b.jpg"], ["b.jpg", "a.jpg", "b.jpg"])


def test_images_get_the_mean_over_their_captions():
    scores = TfIdf(TEXTS, OWNERS).pair_block(range(7), range(7))
    own, wanted = ([0, 1], [2, 3], [4, 5, 6]), []
    for one, other in ((0, 1), (2, 0), (1, 1)):
        of_pairs = [scores[a, b] for a in own[one] for b in own[other]]
        wanted.append(sum(of_pairs) / len(of_pairs))
    found = degrees_of_pairs("tfidf", IMAGES, DATA)
    np.testing.assert_allclose(found.degrees, wanted, atol=1e-6)
    assert not found.own.any()


def test_an_image_without_captions_has_no_degree():
    data = replace(DATA, image_ids=(*DATA.image_ids, "d.jpg"))
    found = degrees_of_pairs("tfidf", judged("image-image", ["a.jpg", "d.jpg"], ["b.jpg", "a.jpg"]), data)
    assert np.isnan(found.degrees).tolist() == [False, True]


class Eyes(Degrees):
    """Compares images by their positions."""

    def block(self, images, captions):
        raise AssertionError("images with images are not asked by caption")

    def image_block(self, first, second):
        return np.float32(10 * np.asarray(first)[:, None] + np.asarray(second))

    def options(self):
        return {}


def test_a_source_that_sees_images_is_asked_by_image():
    assert degrees_of_pairs(Eyes((3, 7)), IMAGES, DATA).degrees.tolist() == [1, 20, 11]


REFERENCES = [TEXTS[:2], TEXTS[2:4], TEXTS[:2]]
CANDIDATES = [["a dog", "a red sofa"], ["a cat", "a dog"], ["grass", "a cat"]]


@pytest.mark.parametrize("kind", [TfIdf, CIDErD])
def test_texts_are_compared_with_their_references_whose_words_alone_are_counted(kind):
    source = {TfIdf: "tfidf", CIDErD: "cider-d"}[kind]
    found = degrees_of_texts(source, ["a", "b", "a"], REFERENCES, CANDIDATES)
    frequencies = DocumentFrequencies.of(TEXTS[:4], OWNERS[:4], orders=1 if kind is TfIdf else 4)
    for row, (of, candidates) in enumerate(zip((0, 1, 0), CANDIDATES, strict=True)):
        whole = kind((*TEXTS[:4], *candidates), [0, 0, 1, 1, 2, 3], document_frequencies=frequencies)
        np.testing.assert_allclose(found[row], whole.block([of], [4, 5])[0], atol=1e-5)


def test_references_of_the_collection_are_taken_where_the_file_has_none():
    wanted = degrees_of_texts("tfidf", ["a", "b", "a"], REFERENCES, CANDIDATES)
    found = degrees_of_texts("tfidf", ["a.jpg", "b.jpg", "a.jpg"], [(), TEXTS[2:4], ()], CANDIDATES, data=DATA)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    with pytest.raises(UserError, match="'z' comes without references and is not in collection"):
        degrees_of_texts("tfidf", ["z"], [()], [["a"]], data=DATA)
    with pytest.raises(UserError, match="'z' comes without references; give a collection with captions"):
        degrees_of_texts("tfidf", ["z"], [()], [["a"]])


def test_degrees_that_are_there_know_no_new_texts(tmp_path):
    TfIdf(TEXTS, OWNERS).save(tmp_path / "degrees")
    for source in (str(tmp_path / "degrees"), TfIdf(TEXTS, OWNERS)):
        with pytest.raises(UserError, match="saved degrees know no new texts") as caught:
            degrees_of_texts(source, ["a"], [["b"]], [["c"]])
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="no source 'bleu'"):
        degrees_of_texts("bleu", ["a"], [["b"]], [["c"]])
