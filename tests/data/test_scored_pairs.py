from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ScoredPairs, read_scored_pairs, score_range, sharing_texts, with_drawn_splits, within

STS = "main-captions\tMSRvid\t2012test\t00{number}\t{score}\t{first}\t{second}\n"


def sts(*rows):
    return "".join(STS.format(number=n, score=s, first=a, second=b) for n, (s, a, b) in enumerate(rows))


def test_stsbenchmark_is_known_by_its_lines_and_splits_by_the_names_of_files(tmp_path):
    for name, score in (("sts-train.csv", "5.000"), ("sts-dev.csv", "2.500"), ("sts-test.csv", "0")):
        (tmp_path / name).write_text(sts((score, "A dog.", f'He said "{name}')))
    (tmp_path / "readme.txt").write_text("About these files.")
    pairs = read_scored_pairs(tmp_path)
    assert pairs.layout == "stsbenchmark"
    assert pairs.splits == ("val", "test", "train")
    assert pairs.scores.tolist() == [2.5, 0.0, 5.0]
    assert pairs.second[2] == 'He said "sts-train.csv', "a quotation mark is one"
    assert not pairs.issues


def test_licences_behind_the_sentences_are_passed_over(tmp_path):
    (tmp_path / "pairs.csv").write_text(sts((1, "a", "b")) + sts((2, "c", "d\tlicence\tanother")))
    assert read_scored_pairs(tmp_path / "pairs.csv").second == ("b", "d")


def test_rows_that_cannot_be_used_are_listed_with_their_places(tmp_path):
    file = tmp_path / "sts-train.csv"
    file.write_text(
        sts((1, "a", "b"), ("n/a", "a", "b"), (3, "", "b"), ("nan", "a", "b"), (4, "c", "d")) + "cut off\t1"
    )
    pairs = read_scored_pairs(file)
    assert pairs.scores.tolist() == [1, 4]
    assert [(issue.kind, issue.where, issue.detail) for issue in pairs.issues] == [
        ("row skipped", f"{file}, line 2", "the score 'n/a' is no number"),
        ("row skipped", f"{file}, line 3", "a text is missing"),
        ("row skipped", f"{file}, line 4", "the score 'nan' is no number"),
        ("row skipped", f"{file}, line 6", "2 cells parted by tabs where 7 belong"),
    ]


@pytest.mark.parametrize(
    ("header", "row", "split"),
    [
        (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
            "0\tmain\tMSRvid\t2012test\t0001\tnone\tnone\t{first}\t{second}\t{score}",
            "none",
        ),
        (
            "split\tgenre\tdataset\tyear\tsid\tscore\tsentence1\tsentence2",
            "dev\tmain\tMSRvid\t2012\t0001\t{score}\t{first}\t{second}",
            "val",
        ),
        (
            "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tentailment_BA",
            "1\t{first}\t{second}\tNEUTRAL\t{score}\tA_neutral_B\tB_neutral_A",
            "none",
        ),
        ("genre\tfile\tyear\tid\tscore\tsentence1\tsentence2", "a\tb\tc\t0\t{score}\t{first}\t{second}", "none"),
    ],
    ids=["GLUE", "sentence-transformers", "SICK", "STS-Benchmark"],
)
@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".csv"])
def test_numbers_where_stsbenchmark_has_its_score_do_not_hide_a_header(tmp_path, header, row, split, suffix):
    given = [("a dog", '"Sit," she said', 4.5), ("a cat", "a car", 0.5), ('"Go', "a bird", 2), ("a boat", 'home"', 3)]
    lines = [header, *(row.format(first=a, second=b, score=score) for a, b, score in given)]
    (tmp_path / f"pairs{suffix}").write_text("\n".join(lines))
    pairs = read_scored_pairs(tmp_path / f"pairs{suffix}")
    assert list(zip(pairs.first, pairs.second, pairs.scores, strict=True)) == given
    assert set(pairs.splits) == {split}
    assert (pairs.layout, pairs.issues) == ("table", ())


@pytest.mark.parametrize(
    "table",
    [
        'sentence1,sentence2,score\n"a, or b",c,1.5\n',
        "id;text1;text2;Rating\n7;a, or b;c;1.5\n",
        "agg_score\tcaption1\tcaption2\n1.5\ta, or b\tc\n",
        '{"first": "a, or b", "second": "c", "similarity": 1.5}\n',
    ],
)
def test_tables_are_read_by_the_names_of_their_columns(tmp_path, table):
    file = tmp_path / ("pairs.jsonl" if table.startswith("{") else "pairs.csv")
    file.write_text(table)
    pairs = read_scored_pairs(file)
    assert (pairs.first, pairs.second, pairs.scores.tolist(), pairs.splits) == (("a, or b",), ("c",), [1.5], ("none",))
    assert (pairs.layout, pairs.name) == ("table", "pairs")


def test_a_column_of_splits_counts(tmp_path):
    (tmp_path / "pairs.csv").write_text("text1,text2,score,split\na,b,1,train\nc,d,2,dev\ne,f,3,Test\n")
    assert read_scored_pairs(tmp_path / "pairs.csv").splits == ("train", "val", "test")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image,caption\na,b\n", "no column says two texts .* and the score .*; it has 'image', 'caption'; rename"),
        ("text1,text2,number\na,b,1\n", "line 1: no column says the score"),
        ("score,text1\n1,b\n", "line 1: no column says two texts"),
        (
            "text1,text2,score\na,b,high\n",
            r"\(1 skipped, the first one in .*pairs.csv, line 2: the score 'high' is no number\); give",
        ),
        ("", "the file is empty"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, text, said):
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        read_scored_pairs(tmp_path / "pairs.csv")
    assert "\n" not in str(caught.value)
    assert "pairs.csv" in str(caught.value)


def test_folders_need_files_of_splits(tmp_path):
    (tmp_path / "pairs.csv").write_text("text1,text2,score\na,b,1\n")
    with pytest.raises(UserError, match="holds no file of scored pairs whose name speaks of a split"):
        read_scored_pairs(tmp_path)
    for name in ("train.csv", "sts-train.tsv"):
        (tmp_path / name).write_text("text1,text2,score\na,b,1\n")
    with pytest.raises(UserError, match=r"sts-train\.tsv, train\.csv are of one split"):
        read_scored_pairs(tmp_path)
    with pytest.raises(UserError, match="nowhere: no such file or folder"):
        read_scored_pairs(tmp_path / "nowhere")


def test_a_folder_that_may_not_be_read_is_one_line(tmp_path, monkeypatch):
    def forbidden(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", forbidden)
    with pytest.raises(UserError, match=r"cannot be read \(permission denied\)"):
        read_scored_pairs(tmp_path)


def chains(count, length):
    """Pairs of which ``length`` hang together: a text of each is also in the next one."""
    names = [(f"{chain}.{place}", f"{chain}.{place + 1}") for chain in range(count) for place in range(length)]
    first, second = zip(*names, strict=True)
    return ScoredPairs(first, second, np.arange(float(len(names))), ("none",) * len(names))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_drawn_splits_have_no_text_in_common(length):
    pairs = chains(60, length)
    drawn = with_drawn_splits(pairs, seed=3)
    count = Counter(drawn.splits)
    assert count["test"] in range(6 * length - 4, 6 * length + 1)
    assert count["val"] in range(6 * length - 4, 6 * length + 1)
    sides = {}
    for split in ("train", "val", "test"):
        part = drawn.split(split)
        for text in (*part.first, *part.second):
            assert sides.setdefault(text, split) == split
    assert drawn.splits == with_drawn_splits(pairs, seed=3).splits
    assert drawn.splits != with_drawn_splits(pairs, seed=4).splits


def test_what_validates_is_drawn_from_the_training_pairs_where_it_is_missing():
    pairs = chains(40, 1)
    given = ScoredPairs(pairs.first, pairs.second, pairs.scores, ("train",) * 30 + ("test",) * 10)
    drawn = with_drawn_splits(given)
    assert Counter(drawn.splits) == {"train": 27, "val": 3, "test": 10}
    assert drawn.splits[30:] == ("test",) * 10
    assert with_drawn_splits(drawn) is drawn


def test_no_pairs_are_drawn_for_a_test_that_could_say_nothing():
    assert Counter(with_drawn_splits(chains(20, 1)).splits) == {"train": 17, "val": 3}
    assert Counter(with_drawn_splits(chains(30, 1)).splits) == {"train": 24, "val": 3, "test": 3}


def test_pairs_that_all_hang_together_are_not_parted():
    with pytest.raises(UserError, match="of 50 pairs too many share texts"):
        with_drawn_splits(chains(1, 50))
    with pytest.raises(UserError, match="no pair is in split 'train'; there are dev2"):
        with_drawn_splits(ScoredPairs(("a",), ("b",), np.array([1.0]), ("dev2",)))


def test_scales():
    pairs = ScoredPairs(tuple("abcd"), tuple("efgh"), np.array([1, 4, 9, 2.0]), ("train", "train", "test", "val"))
    assert score_range(pairs) == (1, 4)
    kept = within(pairs, 0, 5)
    assert kept.scores.tolist() == [1, 4, 2]
    assert kept.splits == ("train", "train", "val")
    assert [(issue.kind, issue.where) for issue in kept.issues] == [("row skipped", "test: 'c' and 'g'")]
    with pytest.raises(UserError, match="every training pair has the score 1"):
        score_range(pairs.select([0]))


def test_the_hash_follows_texts_scores_and_splits():
    pairs = chains(2, 1)
    others = [
        ScoredPairs(pairs.second, pairs.first, pairs.scores, pairs.splits),
        ScoredPairs(pairs.first, pairs.second, pairs.scores + 1, pairs.splits),
        ScoredPairs(pairs.first, pairs.second, pairs.scores, ("train", "none")),
    ]
    assert len({one.content_hash() for one in (pairs, *others)}) == 4
    assert (
        pairs.content_hash() == ScoredPairs(pairs.first, pairs.second, pairs.scores, pairs.splits, "x").content_hash()
    )


@pytest.mark.real_data
@pytest.mark.slow
def test_stsbenchmark_itself(real_data):
    pairs = read_scored_pairs(real_data / "stsbenchmark")
    assert Counter(pairs.splits) == {"train": 5749, "val": 1500, "test": 1379}, "as its readme says"
    assert score_range(pairs) == (0, 5)
    assert not [issue for issue in pairs.issues if issue.kind == "row skipped"]
    train = pairs.split("train")
    assert (train.first[0], train.second[0], train.scores[0]) == (
        "A plane is taking off.",
        "An air plane is taking off.",
        5,
    )
    assert sharing_texts(pairs, "test") == len(
        [1 for a, b in zip(pairs.split("test").first, pairs.split("test").second, strict=True)
         if {a, b} & {*train.first, *train.second}]
    )  # fmt: skip
    alone = read_scored_pairs(real_data / "stsbenchmark" / "sts-dev.csv")
    drawn = with_drawn_splits(alone)
    assert set(alone.splits) == {"none"}
    assert Counter(drawn.splits) == {"train": 1200, "val": 150, "test": 150}
    assert sharing_texts(drawn, "val") == sharing_texts(drawn, "test") == 0
