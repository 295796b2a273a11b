import numpy as np
import pytest

from rungwise.cli import main
from rungwise.relevance import load
from tests.scored import scored_pairs, tiny_encoder, tiny_sentence_model, write_table

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

COMMAND = ("relevance", "train-cross-encoder")


def run(*arguments):
    return main([*COMMAND, *map(str, arguments)])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    return tiny_encoder(home / "encoder"), tiny_sentence_model(home / "sentences")


@pytest.fixture
def table(tmp_path):
    return write_table(scored_pairs(40), tmp_path / "words.csv")


def small(models):
    return ("--model", models[0], "--epochs", 2, "--learning-rate", "1e-3", "--device", "cpu", "--threads", 1)


def test_trains_distils_and_serves_as_a_source(models, table, tmp_path, capsys):
    captions = tmp_path / "captions.csv"
    captions.write_text("image,caption\n1.jpg,a dog\n1.jpg,a red dog\n2.jpg,a boat\n")
    grader, sentences = tmp_path / "grader", tmp_path / "sentences"
    more = (
        "--distil-into",
        sentences,
        "--bi-encoder",
        models[1],
        "--captions",
        captions,
        "--layout",
        "table",
        "--unlabelled",
        3,
    )
    assert run(table, "--out", grader, *small(models), *more, "--distil-epochs", 1) == 0
    said = capsys.readouterr().out
    for line in (
        "words: 40 scored pairs (table): 30 train, 5 dev, 5 test; 0 rows skipped",
        "the data's own splits: a text of the training pairs is also in",
        "epoch 2: loss",
        "scale: 0 became 0, 5 became 1",
        "test  Pearson",
        "distilling: 33 pairs, 3 of them scored by nobody",
        "dev   before: Pearson",
        "test  after:  Pearson",
        f"relevance cascade DATA --model {grader} --out degrees",
        f"relevance bi-encoder DATA --model {sentences} --out degrees",
    ):
        assert line in said
    for source, model in (("cross-encoder", grader), ("bi-encoder", sentences)):
        out = tmp_path / source
        assert main(["relevance", source, str(captions), "--captions-only", "--model", str(model), "--out", str(out),
                     "--device", "cpu"]) == 0  # fmt: skip
        assert np.isfinite(load(out).dense()).all()


def test_splits_are_drawn_where_there_are_none(models, table, tmp_path, capsys):
    rows = [line.rsplit(",", 1)[0] for line in table.read_text().splitlines()]
    words = [f"a{n} b{n},c{n} d{n},{n % 6}" for n in range(38)]
    table.write_text("\n".join([rows[0], *words, "a,b,many", "a,,1", "a,b,77"]))
    assert run(table, "--out", tmp_path / "grader", *small(models), "--scale", "0,5", "--seed", 3) == 0
    said = capsys.readouterr().out
    assert "words: 38 scored pairs (table): 30 train, 4 dev, 4 test; 3 rows skipped" in said
    assert "dev and test are drawn by seed 3; pairs that share a text stay together" in said
    assert "row skipped: none: 'a' and 'b': score 77 lies outside of 0..5" in said


def test_texts_on_both_sides_are_said_where_dev_alone_is_drawn_too(models, tmp_path, capsys):
    rows = [f"a{n},b{n},{n % 6},{'train' if n < 30 else 'test'}" for n in range(36)]
    (tmp_path / "pairs.csv").write_text("\n".join(["text1,text2,score,split", *rows, "a0,b0,0,test", "x,b1,1,test"]))
    assert run(tmp_path / "pairs.csv", "--out", tmp_path / "grader", *small(models), "--epochs", 1) == 0
    said = capsys.readouterr().out
    assert "dev is drawn by seed 0" in said
    assert "a text of the training pairs is also in 2 of test" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--scale", "5"), "--scale must be LOW,HIGH such as 0,5, got '5'"),
        (("--scale", "0,inf"), "--scale must be LOW,HIGH with LOW below HIGH"),
        (("--scale", "5,0"), "--scale must be LOW,HIGH with LOW below HIGH"),
        (("--scale", "7,9"), "words.csv: no pair has a score of --scale 7,9; correct the scale"),
        (("--captions", "photos"), "--captions changes nothing without --distil-into; give both"),
        (("--layout", "table"), "--layout changes nothing without --captions"),
        (("--distil-epochs", "1"), "--distil-epochs changes nothing without --distil-into"),
        (("--batch-size", "0"), "--batch-size: must be at least 1"),
        (("--learning-rate", "-1"), "--learning-rate: must be above 0"),
        (("--threads", "0"), "--threads must be at least 1"),
        (("--model", "./nowhere"), "./nowhere: no such folder of a cross-encoder"),
        (("--device", "cuda:99"), "device 'cuda:99' is not on this machine"),
        (("--loud",), "there is no option --loud"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(table, tmp_path, capsys, options, said):
    assert run(table, "--out", tmp_path / "grader", *options) == 2
    printed = capsys.readouterr().err.strip()
    assert said in printed
    assert "\n" not in printed
    assert {file.name for file in tmp_path.iterdir()} == {"words.csv"}


def test_places_that_are_taken_are_refused_before_anything_is_read(table, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    assert run(table.with_name("nowhere.csv"), "--out", tmp_path / "full") == 2
    assert "holds 'letter.txt', which is no part of a model of pairs" in capsys.readouterr().err
    assert run(table, "--out", tmp_path / "x", "--distil-into", tmp_path / "full") == 2
    assert "is no part of a sentence model" in capsys.readouterr().err
    assert run(table, "--out", tmp_path / "x", "--distil-into", tmp_path / "." / "x") == 2
    assert "--out and --distil-into are one folder" in capsys.readouterr().err


def test_help_shows_what_people_need(capsys):
    with pytest.raises(SystemExit):
        run("--help")
    said = capsys.readouterr().out
    assert "--distil-into PATH" in said
    assert "--loss" not in said
    assert "rungwise relevance train-cross-encoder stsbenchmark --out grader" in said
