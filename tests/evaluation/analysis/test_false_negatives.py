import csv

import numpy as np

from rungwise.data import ImageCaptions
from rungwise.evaluation import RankedLists, find_false_negatives, write_false_negatives
from rungwise.evaluation.analysis import FalseNegative
from rungwise.evaluation.analysis._top_candidates import top_candidates_of


def test_they_are_what_the_definition_says():
    generator = np.random.default_rng(0)
    owners = np.repeat(np.arange(20), 2)
    scores = generator.standard_normal((20, 40))
    degrees = generator.integers(0, 5, (20, 40)) / 4
    lists = top_candidates_of(scores, owners, degrees)
    for way, s, r, own in (("i2t", scores, degrees, None), ("t2i", scores.T, degrees.T, owners)):
        for right_from in (None, 0.75):
            wanted = set()
            for query in range(len(s)):
                right = np.flatnonzero(owners == query) if own is None else [own[query]]
                needed = min(r[query, right]) if right_from is None else right_from
                for candidate in np.argsort(-s[query], kind="stable")[:7]:
                    if candidate not in right and r[query, candidate] >= needed > 0:
                        wanted.add((query, int(candidate)))
            found = find_false_negatives(lists[way], top=7, right_from=right_from)
            assert {(one.query, one.candidate) for one in found} == wanted
            assert len(found) == len(wanted)
            excess = [one.degree - one.needed for one in found]
            assert excess == sorted(excess, reverse=True)


def test_a_pair_that_nobody_judged_is_not_right():
    lists = top_candidates_of(np.array([[0.1, 0.9], [0.9, 0.1]]), [0, 1], np.array([[1.0, np.nan], [2.0, 1.0]]))
    assert [(one.query, one.candidate) for one in find_false_negatives(lists["i2t"])] == [(1, 0)]


def test_without_degrees_there_are_none():
    assert find_false_negatives(top_candidates_of(np.eye(2), [0, 1])["i2t"], right_from=0.0) == []


def test_the_csv_names_images_and_captions_by_id_in_both_directions(tmp_path):
    data = ImageCaptions(("a.jpg", "b.jpg"), ("a dog", "a, pup"), np.array([0, 1]), caption_ids=("c1", "c2"))
    lists = top_candidates_of(np.array([[0.1, 0.9], [0.9, 0.1]]), [0, 1], np.ones((2, 2)))
    found = [one for way in ("i2t", "t2i") for one in find_false_negatives(lists[way], top=1)]
    write_false_negatives(tmp_path / "f.csv", found, data)
    with (tmp_path / "f.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["direction"], row["image"], row["caption"]) for row in rows] == [
        ("i2t", "a.jpg", "c2"),
        ("i2t", "b.jpg", "c1"),
        ("t2i", "b.jpg", "c1"),
        ("t2i", "a.jpg", "c2"),
    ]
    assert rows[0]["text"] == "a, pup"


def test_candidates_that_a_short_list_does_not_name_are_none_and_have_no_similarity(tmp_path):
    data = ImageCaptions(tuple("abcd"), ("p", "q", "r", "s"), np.arange(4))
    given = RankedLists({"i2t": [[1, 0], [1], [], [0]]}, (4, 4))
    found = find_false_negatives(top_candidates_of(given, np.arange(4), np.ones((4, 4)))["i2t"], right_from=0.5)
    assert [(one.query, one.candidate, one.rank) for one in found] == [(0, 1, 1), (3, 0, 1)]
    write_false_negatives(tmp_path / "f.csv", found, data)
    with (tmp_path / "f.csv").open(newline="") as file:
        assert [row["similarity"] for row in csv.DictReader(file)] == ["", ""]


def test_no_text_is_a_formula_and_half_a_character_is_a_mark(tmp_path):
    data = ImageCaptions(("=1+1", "b"), ("@SUM(A1)", "half \ud83d"), np.array([0, 1]), caption_ids=("+x", "-y"))
    found = [FalseNegative("i2t", 0, 0, 1, 0.5, 1.0, 0.5), FalseNegative("i2t", 1, 1, 1, 0.5, 1.0, 0.5)]
    write_false_negatives(tmp_path / "f.csv", found, data)
    with (tmp_path / "f.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["image"], row["caption"], row["text"]) for row in rows] == [
        ("'=1+1", "'+x", "'@SUM(A1)"),
        ("b", "'-y", "half ?"),
    ]
