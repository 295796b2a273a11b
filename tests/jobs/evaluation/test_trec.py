from pathlib import Path

import numpy as np
import pytest

import rungwise
from rungwise.core import UserError
from rungwise.data import ImageCaptions

DATA = ImageCaptions(("a.jpg", "b.jpg", "c.jpg"), tuple("uvwxyz"), np.repeat(np.arange(3), 2))
SCORES = np.random.default_rng(0).permutation(18).reshape(3, 6) - 9.0
DEGREES = np.random.default_rng(1).random((3, 6))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def evaluated(**given):
    given = {"data": DATA, "similarity": SCORES, "split": "all", "measures": ["R@1", "MRR"]} | given
    return rungwise.evaluate(**{name: value for name, value in given.items() if value is not None})


def test_each_file_is_named_with_what_it_holds(capsys):
    evaluated(relevance=DEGREES, measures=["nDCG@3"], write_run="run.trec", depth=2, write_qrels="q.qrels", levels=4)
    evaluated(relevance=DEGREES, measures=["nDCG@3"], write_qrels="right.qrels", write_degrees="d.tsv")
    said = capsys.readouterr().out.replace("\n", " ")
    assert "written: run.i2t.trec and run.t2i.trec (at most 2 candidates a query)" in said
    assert (
        "written: q.i2t.qrels and q.t2i.qrels (the whole number nearest to 4 x degree /"
        f" {DEGREES.max():g}, the largest degree; pairs with 0 are left out)"
    ) in said
    assert "right.t2i.qrels (right answers as 1; --levels N writes the degrees instead)" in said
    assert "written: d.tsv (18 pairs with a degree other than 0)" in said
    assert len(list(Path().iterdir())) == 7


def test_what_is_written_is_read_again():
    asked = {"measures": ["R@1", "MRR", "nDCG@3"]}
    wanted = evaluated(relevance=DEGREES, **asked, write_run="run.trec", write_degrees="d.tsv")
    again = evaluated(similarity=None, ranked_lists=("run.t2i.trec", "run.i2t.trec"), relevance="d.tsv", **asked)
    assert again.numbers == wanted.numbers


def test_queries_that_a_run_lacks_count_0_on_request(capsys):
    asked = {"measures": ["R@1", "MRR", "MAP", "nDCG@3"], "relevance": DEGREES}
    wanted = evaluated(**asked, write_run="run.trec")
    lines = Path("run.i2t.trec").read_text().splitlines(keepends=True)
    Path("run.i2t.trec").write_text("".join(line for line in lines if not line.startswith("b")))
    asked |= {"similarity": None, "ranked_lists": ("run.i2t.trec",)}
    with pytest.raises(UserError, match=r"as few as 0 .* give a list for every query, or count those without one as 0"):
        evaluated(**asked)
    found = evaluated(**asked, missing_queries="zero")
    assert "i2t: 1 of 3 queries have no list and count 0" in capsys.readouterr().out
    for name in ("R@1", "MRR", "MAP", "nDCG@3"):
        own = wanted.per_query(f"i2t/{name}").copy()
        own[1] = 0
        np.testing.assert_array_equal(found.per_query(f"i2t/{name}"), own)
        assert found[f"i2t/{name}"] == pytest.approx(own.mean())
        assert found.remarks[f"i2t/{name}"]["no list, counted 0"] == 1
    with pytest.raises(UserError, match="^MedR is a rank, and 1 i2t queries without a list have none; ask for other"):
        evaluated(**asked | {"measures": ["MedR"], "relevance": None}, missing_queries="zero")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"write_run": "a", "write_qrels": "a"}, "write_run= and write_qrels= are both a; give each a name of its own"),
        ({"write_run": "a", "depth": 0}, "depth= must be at least 1, got 0"),
        ({"write_qrels": "a", "levels": 0, "relevance": DEGREES}, "levels= must be at least 1, got 0"),
        ({"write_qrels": "a", "levels": 2}, "levels= needs degrees of relevance; give relevance="),
        ({"write_degrees": "a.tsv"}, "write_degrees= needs degrees of relevance; give relevance="),
        (
            {"write_degrees": "a.npy", "relevance": DEGREES},
            "write_degrees= a.npy: relevance= knows such a table by",
        ),
        ({"depth": 2}, "depth= changes nothing without write_run="),
        ({"levels": 2, "relevance": DEGREES}, "levels= changes nothing without write_qrels="),
        ({"missing_queries": "zero"}, "missing_queries= changes nothing without ranked_lists="),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(given, said):
    with pytest.raises(UserError, match=f"^{said}") as caught:
        evaluated(**given)
    assert "\n" not in str(caught.value)
    assert not list(Path().iterdir())
