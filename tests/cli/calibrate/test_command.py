"""Learning where relevance ends, and evaluating by what was learnt.

Also tests rungwise.cli.calibrate._options, rungwise.cli.calibrate._run, rungwise.cli.calibrate._render and
rungwise.cli.evaluate._cutoffs.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import Calibration
from rungwise.cli import main
from rungwise.evaluation import Result
from rungwise.index import Index
from rungwise.models import load
from rungwise.scenes import SceneConfig, generate
from tests.cli.test_commands import TINY

VALIDATION = (24, 120)
"""Pictures and captions that are learnt from."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes, a model of one epoch, and an index of theirs."""
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "scenes", SceneConfig(pictures=60, side=32, val_share=0.4, test_share=0.2))
    (folder / "tiny.yaml").write_text(TINY)
    assert main(["train", str(folder / "tiny.yaml"), str(folder / "scenes"), "--out", str(folder / "run")]) == 0
    shutil.move(folder / "run" / "model", folder / "model")
    index = [str(folder / "scenes"), "--model", str(folder / "model"), "--out", str(folder / "index")]
    assert main(["index", *index, "--store", "exact"]) == 0
    return folder


@pytest.fixture
def world(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "world")
    return tmp_path / "world"


def calibrate(world: Path, *arguments: object) -> int:
    return main(["calibrate", *(str(one).replace("DIR", str(world)) for one in arguments)])


def test_a_model_keeps_what_it_learnt_under_its_seal(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = load(world / "model", "cpu").fingerprint
    capsys.readouterr()
    assert calibrate(world, "DIR/model", "DIR/scenes") == 0
    printed = capsys.readouterr().out
    assert "relevant from a degree of 1: the rule for SceneRelevance" in printed
    assert "one threshold for all queries" in printed
    assert printed.count("shows") >= 3
    table = [line for line in printed.splitlines() if not line.startswith(("written", "relevant from"))]
    assert max(map(len, table)) <= 80
    calibration = Calibration.load(world / "model" / "calibration.json")
    assert calibration.model_fingerprint == before
    assert calibration.relevant_from == 1
    assert calibration.source.startswith("SceneRelevance, hash ")
    assert main(["verify", str(world / "model")]) == 0
    assert load(world / "model", "cpu").fingerprint == before
    assert "goes before the model's" not in printed
    shutil.copy(world / "model" / "calibration.json", world / "index" / "calibration.json")
    capsys.readouterr()
    assert calibrate(world, "DIR/model", "DIR/scenes", "--split", "all", "--queries", 40) == 0  # in place of the first
    printed = capsys.readouterr().out
    assert "index: this index keeps a calibration of its own, which goes before the model's" in printed
    assert main(["verify", str(world / "model")]) == 0


def test_evaluate_takes_the_calibration_of_the_model_and_says_so(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluated(*more: object) -> Result:
        arguments = ["DIR/model", "DIR/scenes", "--measures", "CutF1(1)", "ECE", "--out", "DIR/r.json", *more]
        assert main(["evaluate", *(str(one).replace("DIR", str(world)) for one in arguments)]) == 0
        return Result.from_json(world / "r.json")

    assert "no judgements" in evaluated().ends
    assert "relevance ends by: no judgements" in capsys.readouterr().out
    few = ("--queries", 30)
    assert calibrate(world, "DIR/model", "DIR/scenes", *few, "--out", "DIR/own.json") == 0
    named = evaluated("--calibration", "DIR/own.json")
    (world / "other").mkdir()
    shutil.copy(world / "own.json", world / "other" / "calibration.json")
    assert evaluated("--calibration", "DIR/other").ends == named.ends
    assert calibrate(world, "DIR/model", "DIR/scenes", *few) == 0
    capsys.readouterr()
    own = evaluated()
    assert "model/calibration.json" in capsys.readouterr().out
    assert own.ends == named.ends
    assert own.numbers == named.numbers
    assert "SceneRelevance" in own.ends


@pytest.mark.parametrize(
    "arguments", [("DIR/model", "DIR/scenes", "--index", "DIR/index"), ("DIR/index", "DIR/scenes")]
)
def test_an_index_keeps_it_too(world: Path, arguments: tuple[str, ...]) -> None:
    assert calibrate(world, *arguments) == 0
    kept = Index.open(world / "index").calibration
    assert kept is not None
    assert kept.source.startswith("SceneRelevance")
    assert not (world / "model" / "calibration.json").exists()
    assert main(["verify", str(world / "index"), "--no-encode"]) == 0


def test_an_index_learns_from_grades(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = Index.open(world / "index")
    names = list(index.picture_store.ids())[:6]
    for number in range(20):
        for place, name in enumerate(names):
            index.grade(f"a star beside {number + 2} hearts", name, ("right", "close", "wrong")[(place + number) % 3])
    assert calibrate(world, "DIR/index") == 0
    assert "learnt from 120 grades of people for 20 queries" in capsys.readouterr().out
    kept = Index.open(world / "index").calibration
    assert kept is not None
    assert kept.relevant_from == 0.5


def test_an_index_without_grades_learns_from_its_captions(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(world, "DIR/index", "--queries", 60) == 0
    printed = capsys.readouterr().out
    assert "0 of 20 searches have graded hits: learning from the captions of the index instead" in printed
    assert "the same in an index with captions" in printed
    kept = Index.open(world / "index").calibration
    assert kept is not None
    assert kept.source.startswith("TfIdf")
    assert kept.model_fingerprint == Index.open(world / "index").manifest.model_fingerprint


def test_an_index_with_neither_says_what_to_do(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (world / "bare").mkdir()
    for picture in sorted((world / "scenes").rglob("*.png"))[:5]:
        shutil.copy(picture, world / "bare")
    assert main(["index", str(world / "bare"), "--model", str(world / "model"), "--store", "exact"]) == 0
    capsys.readouterr()
    assert calibrate(world, "DIR/bare.index") == 2
    assert "0 of 20 searches have graded hits, and there are no captions; grade hits" in capsys.readouterr().err


def test_degrees_come_from_words_unless_something_better_is_named(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures = sorted((world / "scenes").rglob("*.png"))[:12]
    (world / "plain").mkdir()
    for picture in pictures:
        shutil.copy(picture, world / "plain")
    rows = [f"{one.name}\t{text} {n}\n" for n, one in enumerate(pictures) for text in ("a star", "hearts beside")]
    (world / "plain" / "captions.tsv").write_text("image\tcaption\n" + "".join(rows))
    assert calibrate(world, "DIR/model", "DIR/plain", "--split", "all", "--out", "DIR/c.json") == 0
    printed = capsys.readouterr().out
    assert "no --relevance given: taking tfidf" in printed
    assert "of the pairs are; --relevant-from says otherwise" in printed
    assert "too few captions to say what it is worth on others" in printed
    assert "TfIdf, hash" in Calibration.load(world / "c.json").source
    asked = ("DIR/model", "DIR/scenes", "--relevance", "tfidf", "--relevant-from", 0.9, "--out", "DIR/c.json")
    assert calibrate(world, *asked) == 0
    assert Calibration.load(world / "c.json").relevant_from == 0.9


def test_a_model_that_labels_chose_learns_from_labels(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = sorted((world / "scenes").rglob("*.png"))[:24]
    (world / "plain").mkdir()
    for picture in pictures:
        shutil.copy(picture, world / "plain")
    table = world / "plain" / "captions.tsv"
    rows = [f"{one.name}\ta thing {n}\t{'odd' if n % 2 else 'even'}\n" for n, one in enumerate(pictures)]
    table.write_text("image\tcaption\tlabel\n" + "".join(rows))
    model = load(world / "model", "cpu")
    assert not model.chosen_by_labels
    model.save_pretrained(world / "chosen", {**model.provenance, "chosen_by": "labels/MAP"})
    asked = ("DIR/plain", "--split", "all", "--out", "DIR/c.json")
    assert calibrate(world, "DIR/chosen", *asked) == 0
    printed = capsys.readouterr().out
    assert "no --relevance given: taking labels, by which the model was chosen" in printed
    assert "relevant from a degree of 1: the rule for Labels" in printed
    assert "relevant to a caption: 12.0 on average" in " ".join(printed.split())
    assert Calibration.load(world / "c.json").source.startswith("Labels")
    for name, given in (("model", ()), ("chosen", ("--relevance", "tfidf"))):
        assert calibrate(world, f"DIR/{name}", *asked, *given) == 0
        assert Calibration.load(world / "c.json").source.startswith("TfIdf")
    table.write_text(table.read_text().replace("label", "other"))
    assert calibrate(world, "DIR/chosen", *asked) == 0
    assert "no --relevance given: taking tfidf" in capsys.readouterr().out


def test_degrees_of_people_may_have_gaps(world: Path) -> None:
    rng = np.random.default_rng(0)
    degrees = rng.choice([0.0, 1.0, np.nan], size=VALIDATION, p=[0.3, 0.1, 0.6]).astype(np.float32)
    np.save(world / "people.npy", degrees)
    asked = ("DIR/model", "DIR/scenes", "--relevance", "DIR/people.npy", "--relevant-from", 1, "--out", "DIR/c.json")
    assert calibrate(world, *asked) == 0
    assert Calibration.load(world / "c.json").source.startswith("people.npy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hf:some/model", "DIR/scenes"), "a published model has no folder of ours"),
        (("DIR/nowhere", "DIR/scenes"), "no folder of a model on this machine"),
        (("DIR/model",), "a model learns from captions; give MODEL DATA"),
        (("DIR/index", "--split", "test"), "--split changes nothing without DATA"),
        (("DIR/index", "--relevant-from", 2), "degrees of --relevance are 0 to 1"),
        (("DIR/index", "DIR/scenes", "--out", "DIR/c.json"), "it is kept in one place"),
        (("DIR/model", "DIR/scenes", "--queries", 19), "--queries 19: at least 20"),
        (("DIR/model", "DIR/scenes", "--relevant-from", "nan"), "--relevant-from nan"),
        (("DIR/model", "DIR/scenes", "--relevant-from", 1.5), "degrees of --relevance are 0 to 1"),
        (("DIR/model", "DIR/scenes", "--relevant-from", -1), "degrees of --relevance are 0 to 1"),
        (("DIR/model", "DIR/scenes", "--relevance", "bleu"), "bleu"),
        (("DIR/model", "DIR/scenes", "--relevance", "DIR/zeros.npy"), "are 0 to 0"),
        (("DIR/model", "DIR/scenes", "--relevance", "DIR/nothing.npy"), "no pair of these captions"),
        (("DIR/model", "DIR/one"), "1 picture, and relevance ends among two or more"),
        (("DIR/model", "DIR/few"), "captions, and 20 are needed"),
    ],
)
def test_what_teaches_nothing_is_refused_in_one_line(
    world: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(world / "zeros.npy", np.zeros(VALIDATION, np.float32))
    np.save(world / "nothing.npy", np.full(VALIDATION, np.nan, np.float32))
    for name, count in (("one", 1), ("few", 3)):
        if f"DIR/{name}" in arguments:
            (world / name).mkdir()
            pictures = sorted((world / "scenes").rglob("*.png"))[:count]
            for picture in pictures:
                shutil.copy(picture, world / name)
            rows = "".join(f"{picture.name}\ta star {n}\n" for picture in pictures for n in range(5))
            (world / name / "captions.tsv").write_text("image\tcaption\n" + rows)
            arguments = (*arguments, "--split", "all")
    capsys.readouterr()
    assert calibrate(world, *arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error
    assert not (world / "model" / "calibration.json").exists()


def test_a_calibration_of_another_model_is_refused(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(Calibration.unsupervised(), model_fingerprint="ab" * 32)
    other.save(world / "other.json")
    (world / "broken.json").write_text("{}")
    asked = ["evaluate", str(world / "model"), str(world / "scenes"), "--measures", "CutF1(1)", "--calibration"]
    for file, words in (("other", "was fitted for another model (abababab"), ("broken", "no calibration"),
                        ("missing", "missing.json")):  # fmt: skip
        assert main([*asked, str(world / f"{file}.json")]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert main([*asked[:3], "--measures", "R@1", "--calibration", str(world / "other.json")]) == 2
    assert "--calibration changes nothing without a measure" in capsys.readouterr().err
