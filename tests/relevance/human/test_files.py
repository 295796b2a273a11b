"""Also tests rungwise.relevance.human._texts and rungwise.relevance.human._pascal50s."""

import json
import pickle

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.relevance.human import Judgement, Preferences, RatedPairs, RatedTexts, add_judgement, read_judged

NAN = float("nan")
IDS = "COCO_val2014:sentid:7,COCO_val2014:sentid:8"


def written(folder, content, name="renamed"):
    (folder / name).write_text(content)
    return [folder / name]


@pytest.mark.parametrize(
    ("content", "between", "first", "second", "ratings"),
    [
        ("caption,image,agg_score,sampling_method\nc,i,2.2,c2i\n", "image-caption", "i", "c", [[2.2]]),
        (f"caption1,caption2,agg_score,sampling_method\n{IDS},1.5,c2c\n", "caption-caption", *IDS.split(","), [[1.5]]),
        ("image1,image2,agg_score,sampling_method\na,b,4,i2i\n", "image-image", "a", "b", [[4]]),
        ("image1,image2,rating_of_one,sampling_method\na,b,4,i2i\na,b,3,i2i\n", "image-image", "a", "b", [[4, 3]]),
        ("caption,image,score\nc,i,2\nc,i,3\nc,i,2\n", "image-caption", "i", "c", [[2, 3, 2]]),
        ("image,caption,rater 1,rater 2\ni,c,2,\n", "image-caption", "i", "c", [[2, NAN]]),
        ("i\tc\t4\t4\t3\n", "image-caption", "i", "c", [[4, 4, 3]]),
        ("i\tc\t0.25\t1\t3\n", "image-caption", "i", "c", [[0.25]]),
        ("i\tc\t0\t0\t0\n", "image-caption", "i", "c", [[NAN]]),
        (json.dumps([{"image": "i", "caption": "c", "grade": 3}]), "image-caption", "i", "c", [[3]]),
    ],
    ids=["sits", "sts", "sis", "raw", "lines of a pair", "columns", "experts", "crowd", "no votes", "json"],
)
def test_pairs_are_known_by_what_the_file_holds(tmp_path, content, between, first, second, ratings):
    for name in ("pair_pascal.mat", "sts_val_raw.csv"):
        found = read_judged(written(tmp_path, content, name))
        assert isinstance(found, RatedPairs)
        assert (found.between, found.first, found.second) == (between, (first,), (second,))
        np.testing.assert_array_equal(found.ratings, ratings)
        assert found.name == str(tmp_path / name)


def test_layouts_say_which_protocol_counts(tmp_path):
    texts = {
        "flickr8k-expert": "i\tc\t4\t4\t3\n",
        "flickr8k-crowd": "i\tc\t1\t3\t0\n",
        "table": "image,caption,grade\ni,c,1\n",
    }
    for layout, text in texts.items():
        assert read_judged(written(tmp_path, text)).layout == layout


def test_the_file_of_the_grading_page_has_a_column_for_each_grader(tmp_path):
    file = tmp_path / "judged"
    for who, caption, grade in (("Bo", "c", 1), ("Ada", "c", 4), ("Ada", "d", 2), ("Ada", "c", 3)):
        add_judgement(file, Judgement("i", caption, grade, who, "2026-01-01T00:00:00Z", hash_of_text("a dog")))
    found = read_judged([file])
    assert dict(zip(found.second, found.ratings.tolist(), strict=True)) == {
        "c": [3, 1],
        "d": [2, pytest.approx(NAN, nan_ok=True)],
    }


COLUMNS = "image,first,second,votes_first,votes_second,category"
PAIRS = {"image": "i", "first": "a dog", "second": "a cat", "votes_first": 40, "votes_second": 8}


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([PAIRS | {"category": "hi", "references": ["dogs", "a pup"]}]),
        json.dumps(PAIRS | {"category": "HI", "references": ["dogs", "a pup"]}) + "\n",
        f"{COLUMNS},reference_1,reference_2\ni,a dog,a cat,40,8,HI,dogs,a pup\n",
        f'{COLUMNS},references\ni,a dog,a cat,40,8,HI,"[""dogs"", ""a pup""]"\n',
    ],
    ids=["json", "json lines", "columns", "list in a cell"],
)
def test_preferences(tmp_path, content):
    found = read_judged(written(tmp_path, content))
    assert isinstance(found, Preferences)
    assert (found.items, found.first, found.second) == (("i",), ("a dog",), ("a cat",))
    assert (found.categories, found.references) == (("HI",), (("dogs", "a pup"),))
    assert found.votes.tolist() == [[40, 8]]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([{"video_id": "v", "cand": "a dog", "refs": ["dogs"], "human_scores": [3, 4, 5]}]),
        json.dumps({"video": "v", "candidate": "a dog", "references": ["dogs"], "scores": [3, 4, 5]}) + "\n",
        "video,candidate,reference1,score1,score2,score3\nv,a dog,dogs,3,4,5\n",
    ],
    ids=["json", "json lines", "csv"],
)
def test_rated_texts(tmp_path, content):
    found = read_judged(written(tmp_path, content))
    assert isinstance(found, RatedTexts)
    assert (found.items, found.candidates, found.references) == (("v",), ("a dog",), (("dogs",),))
    assert found.ratings.tolist() == [[3, 4, 5]]


def cell(text):
    found = np.empty((1, 1), object)
    found[0, 0] = text
    return found


def pascal(folder, judgements, pairs, categories, *, cells=True):
    """The two published files: structures in a row, texts in cells of their own in the one and bare in the other."""
    triplets = np.zeros((1, len(judgements)), dtype=[(name, object) for name in ("A", "B", "C", "winner")])
    for at, (reference, first, second, chosen) in enumerate(judgements):
        texts = [cell(one) if cells else one for one in (reference, first, second)]
        triplets[0, at] = (*texts, np.array([[chosen]], float))
    named = np.zeros((1, len(pairs)), dtype=[(name, object) for name in ("image", "sent1", "sent2")])
    for at, one in enumerate(pairs):
        named[0, at] = one
    scipy.io.savemat(folder / "votes", {"triplets": triplets}, appendmat=False, do_compression=True)
    scipy.io.savemat(
        folder / "pairs", {"new_input": named, "category": np.array([categories], np.uint8)}, appendmat=False
    )
    return [folder / "votes", folder / "pairs"]


JUDGED = [
    ("one", "a dog", "a cat ", 1),
    (" two", "a dog", "a cat", 1),
    ("three", "a dog", "a cat", -1),
    ("one", "dogs", "a cow", -1),
    ("two", "dogs", "a cow", -1),
    ("three", "dogs", "a cow", -1),
]
NAMED = [("i.jpg", "a dog", "a cat"), ("i.jpg", "dogs", "a cow")]


@pytest.mark.parametrize("turned", [False, True])
def test_pascal_50s_as_it_is_published(tmp_path, turned):
    files = pascal(tmp_path, JUDGED, NAMED, [2, 4], cells=not turned)
    found = read_judged(files[::-1] if turned else files)
    assert isinstance(found, Preferences)
    assert found.items == ("i.jpg", "i.jpg")
    assert (found.first, found.second) == (("a dog", "dogs"), ("a cat", "a cow"))
    assert found.votes.tolist() == [[2, 1], [0, 3]]
    assert found.categories == ("HI", "MM")
    assert found.references == (("one", "two", "three"),) * 2


def test_pascal_50s_without_categories(tmp_path):
    votes, _ = pascal(tmp_path, JUDGED, NAMED, [2, 4])
    found = read_judged([votes])
    assert (found.items, found.categories) == (("picture 1", "picture 1"), ("", ""))
    assert found.votes.tolist() == [[2, 1], [0, 3]]


@pytest.mark.parametrize(
    ("judgements", "pairs", "categories", "said"),
    [
        (JUDGED, [*NAMED[:1], ("i.jpg", "dogs", "a bull")], [2, 4], "its pairs are not those of"),
        (JUDGED, NAMED[:1], [2], "its pairs are not those of"),
        (JUDGED, NAMED, [2, 5], "category is no list of 1 to 4"),
        (JUDGED, NAMED, [2], "category is no list of 1 to 4"),
        ([("one", "a dog", "a cat", 0)], NAMED[:1], [1], "triplet 1: not three texts and 1 or -1"),
        ([("one", "a dog", 7.0, 1)], NAMED[:1], [1], "triplet 1: not three texts and 1 or -1"),
        (JUDGED, [("i.jpg", "a dog", 7.0)], [1], "pair 1: not a picture and two texts"),
    ],
    ids=["other pair", "fewer pairs", "category", "categories", "vote", "number", "picture"],
)
def test_pascal_files_that_do_not_fit_get_one_line(tmp_path, judgements, pairs, categories, said):
    with pytest.raises(UserError, match=said) as caught:
        read_judged(pascal(tmp_path, judgements, pairs, categories))
    assert "\n" not in str(caught.value)


def test_pascal_files_that_are_not_both_there(tmp_path):
    votes, pairs = pascal(tmp_path, JUDGED, NAMED, [2, 4])
    for files, said in (([pairs], "categories without votes"), ([votes, votes], "or both files hold the same")):
        with pytest.raises(UserError, match=said):
            read_judged(files)
    scipy.io.savemat(tmp_path / "other.mat", {"x": 1.0})
    with pytest.raises(UserError, match="other.mat: holds neither triplets nor new_input"):
        read_judged([tmp_path / "other.mat"])
    with pytest.raises(UserError, match="only Pascal-50S has two files"):
        read_judged([votes, *written(tmp_path, "image,caption,grade\ni,c,1\n")])


def test_pickles_are_never_read_and_the_line_says_how_to_convert(tmp_path):
    scores = np.empty(1, object)
    scores[0] = [3, 4, 5]
    np.save(tmp_path / "human_scores.npy", scores, allow_pickle=True)
    (tmp_path / "human_scores.pkl").write_bytes(pickle.dumps([[3, 4, 5]]))
    for name in ("human_scores.npy", "human_scores.pkl"):
        with pytest.raises(UserError, match="could run a program and is never read; write JSON lines") as caught:
            read_judged([tmp_path / name])
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("image,text,grade\ni,c,1\n", "its columns .image, text, grade. are those of no judgements"),
        ("image,caption,grade\n", "holds no judgement"),
        ("image,caption,a,b\ni,c,1,2\n", "no column holds a grade"),
        ("caption1,caption2,agg_score\n7,8,many\n", "line 2: 'many' is no grade"),
        ("i\tc\t4\t4\t3\ni\td\t5\t4\t3\n", "line 2: experts' grades are 1 to 4, found 5, 4, 3"),
        ("i\tc\t4\t4\t3\ni\td\t4\t4\n", "line 2: not image, caption and 3 numbers"),
        (json.dumps([PAIRS | {"votes_first": -1}]), "-1 and 8 votes"),
        (json.dumps([PAIRS | {"votes_first": 0, "votes_second": 0}]), "0 and 0 votes"),
        (json.dumps([PAIRS | {"first": " "}]), "entry 1: a candidate is empty"),
        (json.dumps([{"video": "v", "candidate": "", "scores": [1]}]), "entry 1: the candidate is empty"),
        (json.dumps([{"video": "v", "candidate": "a", "scores": [1, "x"]}]), "entry 1: 'x' is no grade"),
        (json.dumps([{"video": "v", "candidate": "a", "scores": [1], "references": [3]}]), "references is no list"),
        (json.dumps({"7": [70, 71]}), "are those of no judgements"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=[
        "columns", "nothing", "no grade", "grade", "experts", "short", "negative", "no votes", "no text",
        "no candidate", "score", "reference", "lists of ids", "deep",
    ],
)  # fmt: skip
def test_other_files_are_refused_in_one_line(tmp_path, content, said):
    with pytest.raises(UserError, match=said) as caught:
        read_judged(written(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_a_file_is_needed():
    with pytest.raises(UserError, match="no file is given"):
        read_judged([])


SLOW = pytest.mark.slow


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("file", "layout", "between", "count"),
    [
        ("coco5k/sits_test_half.csv", "table", "image-caption", 22311),
        pytest.param("coco5k/sts_test_half.csv", "table", "caption-caption", 22023, marks=SLOW),
        pytest.param(
            "flickr8k/Flickr8k_text/CrowdFlowerAnnotations.txt", "flickr8k-crowd", "image-caption", 47830, marks=SLOW
        ),
    ],
)
def test_real_judgements(real_data, file, layout, between, count):
    found = read_judged([real_data / file])
    assert (found.layout, found.between, len(found), found.raters) == (layout, between, count, 1)
