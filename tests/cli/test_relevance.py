import numpy as np
import pytest

from rungwise.cli import main
from rungwise.relevance import CIDErD, Labels, TfIdf, load

CAPTIONS = [
    ("a.jpg", "A black dog runs on grass.", "pets"),
    ("a.jpg", "A dog is running.", "pets"),
    ("b.jpg", "A black cat sleeps on a mat.", "pets"),
    ("b.jpg", "A sleeping cat.", "pets"),
    ("c.jpg", "A man rides a red bicycle.", "sport"),
    ("d.jpg", "A man runs on grass.", "sport"),
]
TEXTS = [text for _, text, _ in CAPTIONS]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "captions.csv"
    rows = [",".join(row) for row in (("image", "caption", "label"), *CAPTIONS)]
    file.write_text("\n".join(rows))
    return file


def run(table, *arguments):
    return main(["relevance", str(table), "--captions-only", *map(str, arguments)])


def test_builds_describes_and_saves(table, tmp_path, capsys):
    assert run(table, "--out", tmp_path / "degrees") == 0
    said = capsys.readouterr().out
    source = CIDErD(TEXTS, OWNERS)
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=source).dense(), source.dense())
    assert "cider-d: 24 pairs" in said
    assert source.content_hash() in said


def test_options_reach_the_source(table, tmp_path):
    options = ("--source", "tfidf", "--reference", "mean", "--leave-one-out", "--top", 2, "--direction", "t2i")
    assert run(table, *options, "--out", tmp_path / "degrees") == 0
    source = TfIdf(TEXTS, OWNERS, reference="mean", leave_one_out=True)
    indices, values = load(tmp_path / "degrees", expected=source).topk(2, "t2i")
    np.testing.assert_array_equal(indices, source.topk(2, "t2i")[0])
    np.testing.assert_allclose(values, source.topk(2, "t2i")[1])


def test_labels_and_word_vectors(table, tmp_path, capsys):
    assert run(table, "--source", "labels", "--out", tmp_path / "labels") == 0
    labels = Labels(["pets", "pets", "sport", "sport"], OWNERS)
    np.testing.assert_array_equal(load(tmp_path / "labels", expected=labels).dense(), labels.dense())
    (tmp_path / "vectors.txt").write_text("dog 1 0\ncat 0.9 0.1\nman 0 1\n")
    assert run(table, "--source", "cbow", "--vectors", tmp_path / "vectors.txt") == 0
    assert "of the words have no vector, such as a" in capsys.readouterr().out


def test_rungs_are_shown_on_a_page_and_in_the_terminal(table, tmp_path, capsys):
    page = tmp_path / "new" / "rungs.html"
    assert run(table, "--show-rungs", page, "--thresholds", 0.5, 0.1) == 0
    said = capsys.readouterr().out
    assert "rung 1: 0.5 and above" in said
    assert "rung 3: below 0.1" in said
    assert page.read_text().count("<section>") == 3


def test_thresholds_follow_from_shares_and_are_printed(table, tmp_path, capsys):
    assert run(table, "--show-rungs", tmp_path / "rungs.html", "--shares", 0.2) == 0
    said = capsys.readouterr().out
    cut = float(next(line for line in said.splitlines() if line.startswith("thresholds: ")).split()[1])
    own = np.arange(4)[:, None] == np.array(OWNERS)[None, :]
    degrees = CIDErD(TEXTS, OWNERS).dense()[~own]
    assert (degrees >= cut - 1e-3).mean() == pytest.approx(0.2, abs=0.06)


def test_people_s_judgements(table, tmp_path, capsys):
    (tmp_path / "grades.csv").write_text("image,caption,grade\na.jpg,a.jpg#0,4\na.jpg,d.jpg#0,2\nz.jpg,d.jpg#0,1\n")
    judged = ("--source", "human", "--judgements", tmp_path / "grades.csv")
    assert run(table, *judged, "--out", tmp_path / "degrees") == 0
    said = capsys.readouterr().out
    assert "human: 2 pairs judged, 1 of them written for each other" in said
    assert "judgement of an unknown image" in said
    assert np.isnan(load(tmp_path / "degrees").dense()).sum() == 22


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--source", "cbow"), "give --vectors FILE"),
        (("--source", "cross-encoder"), "needs --pair-model NAME and --scale"),
        (("--source", "cascade", "--pair-model", "x"), "needs --pair-model NAME and --scale"),
        (("--source", "cross-encoder", "--pair-model", "./x", "--scale", "loud"), "--scale must be"),
        (("--source", "human"), "human needs --judgements"),
        (("--source", "human", "--show-rungs", "x.html"), "no rungs"),
        (("--top", "0", "--out", "x"), "k must be at least 1"),
    ],
)
def test_a_mistake_gets_one_line(table, tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run(table, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("rungwise relevance: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_cascade_with_a_tiny_cross_encoder(table, tmp_path, capsys):
    pytest.importorskip("transformers")
    from tests.relevance.test_cross_encoder import tiny_model

    (tmp_path / "model").mkdir()
    tiny_model(tmp_path / "model", outputs=1)
    options = ("--source", "cascade", "--coarse", "tfidf", "--coarse-threshold", 0.3, "--pair-model")
    options = (*options, tmp_path / "model", "--scale", "sigmoid", "--cache", tmp_path / "scores")
    assert run(table, *options) == 0
    assert "pairs would take" in capsys.readouterr().out
    assert run(table, *options) == 0
    assert "0 pairs scored of" in capsys.readouterr().out
