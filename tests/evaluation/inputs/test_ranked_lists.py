import json

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import RankedLists, evaluate, read_ranked_lists
from tests.odd_files import on_posix, put

IMAGES = ("one.jpg", "two.jpg", "three.jpg")
CAPTIONS = ("a", "b", "c", "d")
OWNERS = [0, 1, 1, 2]


def lists_of(similarity, k=None):
    return RankedLists(
        {
            "i2t": [np.argsort(-row, kind="stable")[:k] for row in similarity],
            "t2i": [np.argsort(-row, kind="stable")[:k] for row in similarity.T],
        },
        similarity.shape,
    )


def random_world(images=40, per_image=3):
    similarity = np.random.default_rng(0).standard_normal((images, images * per_image))
    return similarity, np.repeat(np.arange(images), per_image)


def test_complete_lists_give_what_their_similarities_give():
    similarity, owners = random_world()
    relevance = np.random.default_rng(1).random(similarity.shape)
    asked = {
        "image_of_caption": owners,
        "relevance": relevance,
        "measures": ["R@5", "Recall@5", "MedR", "MAP", "MRR", "nDCG@10", "NCS@10(non_gt)", "SR@5", "Spearman"],
    }
    wanted = evaluate(similarity=similarity, **asked)
    assert evaluate(similarity=lists_of(similarity), **asked).numbers == pytest.approx(wanted.numbers, rel=1e-12)


def test_short_lists_answer_what_they_can_and_refuse_the_rest():
    similarity, owners = random_world()
    lists = lists_of(similarity, 10)
    wanted = evaluate(similarity=similarity, image_of_caption=owners, measures=["R@10", "rsum"])
    got = evaluate(similarity=lists, image_of_caption=owners, measures=["R@10", "rsum"])
    assert got.numbers == wanted.numbers
    for measure in ("MedR", "R@11", "MAP", "MRR", "Kendall"):
        with pytest.raises(UserError, match=r"lists name as few as 10 of .* ask for R@10 or less"):
            evaluate(similarity=lists, image_of_caption=owners, relevance=similarity**2, measures=[measure])


def test_folds_keep_their_own_candidates():
    similarity, _owners = random_world(per_image=1)
    part = np.arange(10, 25)
    chosen = lists_of(similarity).select(part, part)
    wanted = evaluate(similarity=similarity[np.ix_(part, part)], image_of_caption=np.arange(15))
    assert evaluate(similarity=chosen, image_of_caption=np.arange(15)).numbers == wanted.numbers


def test_one_direction_alone_reports_nothing_of_the_other(tmp_path):
    file = tmp_path / "run.txt"
    file.write_text(
        "a Q0 one.jpg 2 0.5 me\na Q0 two.jpg 1 0.5 me\nb Q0 two.jpg 9 7 me\nc Q0 one.jpg 1 3 me\nd Q0 two.jpg 1 1 me\n"
    )
    lists = read_ranked_lists([file], IMAGES, CAPTIONS)
    result = evaluate(similarity=lists, image_of_caption=OWNERS, measures=["R@1", "rsum"][:1])
    assert result.numbers == {"t2i/R@1": 25.0}  # equal scores go by rank: two.jpg stands first for a
    assert lists.directions == ("t2i",)


def test_json_of_coco_numbers_is_read_in_the_right_direction(tmp_path):
    images = tuple(f"COCO_val2014_{n:012d}.jpg" for n in (7, 8))
    captions = ("7", "9")  # a caption may have an image's number
    (tmp_path / "i2t.json").write_text(json.dumps({7: [9, 7], 8: [7, 9]}))
    (tmp_path / "t2i.json").write_text(json.dumps({7: [8, 7], 9: [7, 8]}))
    lists = read_ranked_lists([tmp_path / "i2t.json", tmp_path / "t2i.json"], images, captions)
    assert [rows.tolist() for _, rows in lists.rows(2)] == [[[1.0, 2.0], [2.0, 1.0]]]
    assert [rows.tolist() for _, rows in lists.columns(2)] == [[[1.0, 2.0], [2.0, 1.0]]]


def test_a_run_of_coco_numbers_is_read_in_the_right_direction(tmp_path):
    images = tuple(f"COCO_val2014_{n:012d}.jpg" for n in (7, 8))
    captions = ("7", "9", "8")
    (tmp_path / "t2i.trec").write_text("7 Q0 8 1 2 me\n7 Q0 7 2 1 me\n9 Q0 7 1 2 me\n")
    lists = read_ranked_lists([tmp_path / "t2i.trec"], images, captions)
    assert lists.directions == ("t2i",)
    assert [rows.tolist() for _, rows in lists.columns(3)] == [[[1.0, 2.0], [1.0, 0.0], [0.0, 0.0]]]
    # A query that both directions know, in a file of both, is not guessed.
    (tmp_path / "both.trec").write_text("7 Q0 8 1 2 me\n9 Q0 7 1 2 me\nCOCO_val2014_000000000008.jpg Q0 9 1 2 me\n")
    with pytest.raises(UserError, match=r"both.trec, query '7': ids .* the direction is not clear"):
        read_ranked_lists([tmp_path / "both.trec"], images, captions)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a Q0 one.jpg 1 0.5\n", "line 1: not a line of a TREC run"),
        ("a Q0 one.jpg 1 high me\n", "line 1: not a line of a TREC run"),
        ("a Q0 one.jpg 1 nan me\n", "line 1: rank or score is no number"),
        ("a Q0 one.jpg 1 2 me\na Q0 one.jpg 2 1 me\n", "query 'a': 'one.jpg' stands twice"),
        ("x Q0 one.jpg 1 2 me\n", "'x' is not known"),
        ("a Q0 nine.jpg 1 2 me\n", "'nine.jpg' is not known"),
    ],
)
def test_a_mistake_in_a_run_names_its_place(tmp_path, content, said):
    file = tmp_path / "run.trec"
    file.write_text(content)
    with pytest.raises(UserError, match=said):
        read_ranked_lists([file], IMAGES, CAPTIONS)


def test_lists_of_positions_are_checked():
    with pytest.raises(UserError, match="i2t, query 1: a candidate stands twice"):
        RankedLists({"i2t": [[0], [1, 1]]}, (2, 2))
    with pytest.raises(UserError, match=r"query 0: a position is not in 0..1"):
        RankedLists({"i2t": [[2], [1]]}, (2, 2))
    with pytest.raises(UserError, match="1 lists for 2 queries"):
        RankedLists({"i2t": [[0]]}, (2, 2))


@on_posix
@pytest.mark.parametrize("name", ["run.trec", "run.json"])
def test_nothing_but_a_file_is_read(tmp_path, name):
    put(tmp_path / name, "pipe")
    with pytest.raises(UserError, match=r"run\."):
        read_ranked_lists([tmp_path / name], IMAGES, CAPTIONS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", "[" * 100_000),
        ("run.json", '{"one.jpg": [' + "9" * 5000 + "]}"),
        ("run.json", '{"one.jpg": [NaN]}'),
        ("run.trec", "one.jpg Q0 a nan 0.5 x"),
        ("run.trec", "one.jpg Q0 a 1 0.5 \0x"),
        ("run.trec", f"one.jpg Q0 {'9' * 5000} 1 {'9' * 5000} x"),
    ],
)
def test_lists_made_to_hurt_get_one_line(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=r"run\.") as caught:
        read_ranked_lists([tmp_path / name], IMAGES, CAPTIONS)
    assert "\n" not in str(caught.value)
