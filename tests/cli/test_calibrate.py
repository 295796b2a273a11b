"""Learning where relevance ends, and evaluating by what was learnt.

Also tests rungwise.jobs.calibration._options, rungwise.jobs.calibration._run and rungwise.jobs.evaluation._cutoffs.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import Calibration, CalibrationComparison, KindComparison, compared
from rungwise.cli import main
from rungwise.data import read
from rungwise.evaluation import Result
from rungwise.index import Index
from rungwise.index.layout import add_queries
from rungwise.jobs.calibration import _run
from rungwise.models import load
from rungwise.models._encoder_pair import EncoderPair
from rungwise.scenes import SceneConfig, generate
from tests.cli.test_commands import TINY

VALIDATION = (24, 120)
"""Pictures and captions that are learnt from."""
FEW = ("--queries", 40)
ARTICLES, SEASONS = ("shirt", "belt", "watch", "wallet", "tie", "shoe"), ("spring", "summer", "autumn", "winter")


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


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few queries exclude no harm; here the comparison finds none."""
    _judge(monkeypatch, lambda kind: replace(kind, low=0.0, high=max(0.0, kind.high)))


@pytest.fixture
def harmful(monkeypatch: pytest.MonkeyPatch) -> None:
    _judge(monkeypatch, lambda kind: replace(kind, after=max(0.0, kind.before - 5), low=-9.0, high=-1.0))


def _judge(monkeypatch: pytest.MonkeyPatch, change: Callable[[KindComparison], KindComparison]) -> None:
    def judged(*given: object, **named: object) -> tuple[Calibration, CalibrationComparison]:
        calibration, found = compared(*given, **named)  # type: ignore[arg-type]
        kinds = tuple(map(change, found.kinds))
        return replace(calibration, kinds=kinds), replace(found, kinds=kinds)

    monkeypatch.setattr(_run, "compared", judged)


def calibrate(world: Path, *arguments: object) -> int:
    return main(["calibrate", *(str(one).replace("DIR", str(world)) for one in arguments)])


def plain(world: Path, texts: Callable[[int], tuple[str, ...]], head: str = "caption", count: int = 24) -> None:
    """Pictures in "plain", with a table of further columns."""
    (world / "plain").mkdir()
    rows = [f"image\t{head}\n"]
    for number, picture in enumerate(sorted((world / "scenes").rglob("*.png"))[:count]):
        shutil.copy(picture, world / "plain")
        rows.append("\t".join((picture.name, *texts(number))) + "\n")
    (world / "plain" / "captions.tsv").write_text("".join(rows), encoding="utf-8")


@pytest.mark.usefixtures("harmless")
def test_a_model_keeps_what_it_learnt_under_its_seal(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = load(world / "model", "cpu").fingerprint
    capsys.readouterr()
    assert calibrate(world, "DIR/model", "DIR/scenes", *FEW) == 0
    printed = capsys.readouterr().out
    assert "queries as people type them, of scenes/val; its texts are read as" in printed
    assert "phrases of captions, 12 whole captions, 120 unrelated texts" in printed
    assert "about a minute for 2,000 queries" in printed
    assert f"written: {world / 'model' / 'calibration.json'}" in printed
    calibration = Calibration.load(world / "model" / "calibration.json")
    assert calibration.model_fingerprint == before
    assert calibration.relevant_from == 0.75
    assert calibration.source == "learnt from queries as people type them, of scenes/val"
    assert [one.kind for one in calibration.kinds] == ["phrase", "caption", "unrelated"]
    assert main(["verify", str(world / "model")]) == 0
    assert load(world / "model", "cpu").fingerprint == before
    assert "goes before the model's" not in printed
    shutil.copy(world / "model" / "calibration.json", world / "index" / "calibration.json")
    assert calibrate(world, "DIR/model", "DIR/scenes", "--split", "all", *FEW) == 0  # in place of the first
    printed = capsys.readouterr().out
    assert "index: this index keeps a calibration of its own, which goes before the model's" in printed
    assert main(["verify", str(world / "model")]) == 0
    assert calibrate(world, "DIR/model", "--show") == 0
    shown = capsys.readouterr().out
    assert "queries as people type them" in shown
    assert "whole captions" in shown


@pytest.mark.usefixtures("harmful")
def test_what_judges_now_stays_where_a_kind_of_query_loses(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("DIR/model", "DIR/scenes", *FEW)
    assert calibrate(world, *asked) == 0
    printed = capsys.readouterr().out
    assert "nothing is written, searches go on without a calibration: " in printed
    assert "unrelated texts lose" in printed
    assert "what would help: captions that say more" in printed
    assert not (world / "model" / "calibration.json").exists()
    assert calibrate(world, *asked, "--out", "DIR/model/calibration.json") == 0
    assert "written all the same, as asked: " in capsys.readouterr().out
    before = (world / "model" / "calibration.json").read_bytes()
    assert calibrate(world, *asked) == 0
    assert "nothing is written, the calibration that is kept stays: " in capsys.readouterr().out
    assert (world / "model" / "calibration.json").read_bytes() == before


@pytest.mark.usefixtures("harmless")
def test_evaluate_takes_the_calibration_of_the_model_and_says_so(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluated(*more: object) -> Result:
        arguments = ["DIR/model", "DIR/scenes", "--measures", "CutF1(1)", "ECE", "--out", "DIR/r.json", *more]
        assert main(["evaluate", *(str(one).replace("DIR", str(world)) for one in arguments)]) == 0
        return Result.from_json(world / "r.json")

    assert "no judgements" in evaluated().ends
    assert "relevance ends by: no judgements" in capsys.readouterr().out
    assert calibrate(world, "DIR/model", "DIR/scenes", *FEW, "--out", "DIR/own.json") == 0
    named = evaluated("--calibration", "DIR/own.json")
    (world / "other").mkdir()
    shutil.copy(world / "own.json", world / "other" / "calibration.json")
    assert evaluated("--calibration", "DIR/other").ends == named.ends
    assert calibrate(world, "DIR/model", "DIR/scenes", *FEW) == 0
    capsys.readouterr()
    own = evaluated()
    assert "model/calibration.json" in capsys.readouterr().out
    assert own.ends == named.ends
    assert own.numbers == named.numbers
    assert "queries as people type them" in own.ends


@pytest.mark.usefixtures("harmless")
@pytest.mark.parametrize(
    "arguments", [("DIR/model", "DIR/scenes", "--index", "DIR/index"), ("DIR/index", "DIR/scenes")]
)
def test_an_index_keeps_it_too(world: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert calibrate(world, *arguments, *FEW) == 0
    kept = Index.open(world / "index").calibration
    assert kept is not None
    assert kept.source == "learnt from queries as people type them, of scenes/val"
    assert not (world / "model" / "calibration.json").exists()
    assert main(["verify", str(world / "index"), "--no-encode"]) == 0
    assert calibrate(world, "DIR/index", "--show") == 0
    assert "whole captions" in capsys.readouterr().out


def test_an_index_learns_from_grades(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = Index.open(world / "index")
    names = list(index.picture_store.ids())[:6]
    for number in range(20):
        for place, name in enumerate(names):
            index.grade(f"a star beside {number + 2} hearts", name, ("right", "close", "wrong")[(place + number) % 3])
    assert calibrate(world, "DIR/index", "--out", "DIR/c.json") == 0
    printed = capsys.readouterr().out
    assert "120 grades of people for 20 queries: right and close ones are relevant" in printed
    assert Calibration.load(world / "c.json").relevant_from == 0.5
    assert calibrate(world, "DIR/index", "--queries", 50) == 2
    assert "--queries changes nothing without DATA, since people graded this index" in capsys.readouterr().err


@pytest.mark.usefixtures("harmless")
def test_an_index_learns_from_its_captions_and_from_what_people_asked(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_queries(world / "index", ["a star", "qwertyuiop"], days=30, most=10, day=date(2999, 5, 1))
    assert calibrate(world, "DIR/index", *FEW) == 0
    printed = capsys.readouterr().out
    assert "2 queries that people asked of the server are among those learnt from" in printed
    assert "1 queries that people asked" in printed  # of the other nobody knows what is relevant
    kept = Index.open(world / "index").calibration
    assert kept is not None
    assert kept.source.startswith("learnt from queries as people type them")
    assert kept.model_fingerprint == Index.open(world / "index").manifest.model_fingerprint


def test_an_index_with_neither_says_what_to_do(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (world / "bare").mkdir()
    for picture in sorted((world / "scenes").rglob("*.png"))[:5]:
        shutil.copy(picture, world / "bare")
    assert main(["index", str(world / "bare"), "--model", str(world / "model"), "--store", "exact"]) == 0
    capsys.readouterr()
    assert calibrate(world, "DIR/bare.index") == 2
    assert "no captions and no texts in columns to learn from; grade hits" in capsys.readouterr().err


def test_columns_alone_make_queries_of_an_index(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda n: ("", ARTICLES[n % 6], SEASONS[n % 4], str(n)), "caption\tarticle\tseason\tprice")
    index = [str(world / "plain"), "--model", str(world / "model"), "--store", "exact"]
    assert main(["index", *index]) == 0
    assert calibrate(world, "DIR/plain.index", "--out", "DIR/c.json") == 0
    printed = capsys.readouterr().out
    assert "values of columns" in printed
    assert "pairs of values" in printed


def test_captions_that_make_too_few_queries_are_refused(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda n: ("", ("shirt", "belt")[n % 2]), "caption\tarticle")
    assert main(["index", str(world / "plain"), "--model", str(world / "model"), "--store", "exact"]) == 0
    capsys.readouterr()
    assert calibrate(world, "DIR/plain.index") == 2
    assert "its captions and columns make 2 queries, and 20 are needed" in capsys.readouterr().err


def test_one_caption_for_all_pictures_changes_nothing(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda _: ("a picture of things",))
    assert calibrate(world, "DIR/model", "DIR/plain", "--split", "all") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "nothing is written, searches go on without a calibration: texts and scores do not tell what fits" in said
    assert "captions that tell the pictures apart" in said
    assert not (world / "model" / "calibration.json").exists()
    assert calibrate(world, "DIR/model", "DIR/plain", "--split", "all", "--out", "DIR/c.json") == 2
    assert "nothing can be learnt" in capsys.readouterr().err


def test_pictures_that_are_all_alike_change_nothing(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda n: (f"a {SEASONS[n % 4]} {ARTICLES[n % 6]}",))
    first, *others = sorted((world / "plain").glob("*.png"))
    for other in others:
        shutil.copy(first, other)
    assert calibrate(world, "DIR/model", "DIR/plain", "--split", "all") == 0
    assert "to the model all pictures are the same" in " ".join(capsys.readouterr().out.split())
    assert not (world / "model" / "calibration.json").exists()


def test_captions_that_say_nothing_of_their_pictures_change_nothing(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The older calibration stays to the byte."""
    rng = np.random.default_rng(0)
    plain(world, lambda _: (" ".join(rng.choice([*ARTICLES, *SEASONS], 3)),))
    asked = ("DIR/model", "DIR/plain", "--split", "all", *FEW)
    assert calibrate(world, *asked, "--out", "DIR/model/calibration.json") == 0
    older = (world / "model" / "calibration.json").read_bytes()
    capsys.readouterr()
    assert calibrate(world, *asked) == 0
    assert "nothing is written, the calibration that is kept stays" in " ".join(capsys.readouterr().out.split())
    assert (world / "model" / "calibration.json").read_bytes() == older


def test_queries_of_a_file_are_learnt_from(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = read(world / "scenes").split("val").image_ids[0]
    lines = [
        "a star",
        "",
        json.dumps({"query": "what I look for", "relevant": [one, "gone.png"]}),
        "qwertyuiop",
    ]
    (world / "mine.txt").write_text("\n".join(lines))
    assert calibrate(world, "DIR/model", "DIR/scenes", *FEW, "--query-file", "DIR/mine.txt", "--out", "DIR/c.json") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 your own queries" in printed
    assert "passed over: relevant ids of your queries that are no picture here: 1, such as 'gone.png'" in printed
    assert "left out: queries to which no picture is known to be relevant: 1, such as 'qwertyuiop'" in printed


def test_captions_with_degrees_that_are_named_are_queries(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    degrees = rng.choice([0.0, 1.0, np.nan], size=VALIDATION, p=[0.3, 0.1, 0.6]).astype(np.float32)
    np.save(world / "people.npy", degrees)
    asked = ("DIR/model", "DIR/scenes", "--out", "DIR/c.json", "--relevance")
    assert calibrate(world, *asked, "DIR/people.npy", "--relevant-from", 1) == 0
    assert "relevant from a degree of 1: as asked" in capsys.readouterr().out
    assert Calibration.load(world / "c.json").source == "learnt from people.npy, of scenes/val"
    assert calibrate(world, *asked, "tfidf", "--relevant-from", 0.9) == 0
    kept = Calibration.load(world / "c.json")
    assert kept.source.startswith("learnt from TfIdf, hash ")
    assert kept.relevant_from == 0.9
    assert calibrate(world, "DIR/index", "--out", "DIR/c.json", "--relevance", "tfidf") == 0
    assert "of the pairs are; --relevant-from says otherwise" in capsys.readouterr().out


def test_a_model_that_labels_chose_learns_from_labels(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda n: (f"a thing {n}", "odd" if n % 2 else "even"), "caption\tlabel")
    model = load(world / "model", "cpu")
    assert not model.chosen_by_labels
    model.save_pretrained(world / "chosen", {**model.provenance, "chosen_by": "labels/MAP"})
    asked = ("DIR/plain", "--split", "all", "--out", "DIR/c.json")
    assert calibrate(world, "DIR/chosen", *asked) == 0
    printed = capsys.readouterr().out
    assert "no --relevance given: taking labels, by which the model was chosen" in printed
    assert "relevant from a degree of 1: the rule for Labels" in printed
    assert "12.0 relevant to a query on average" in " ".join(printed.split())
    assert Calibration.load(world / "c.json").source.startswith("learnt from Labels")
    assert calibrate(world, "DIR/chosen", *asked, "--relevance", "tfidf") == 0
    assert Calibration.load(world / "c.json").source.startswith("learnt from TfIdf")


def test_captions_without_blanks_between_words_are_learnt_from(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain(world, lambda n: (f"{'赤青'[n % 2]}い{'星円'[n // 2 % 2]}と{'猫犬鳥'[n % 3]}",))
    asked = ("DIR/model", "DIR/plain", "--split", "all", "--out", "DIR/c.json", *FEW)
    assert calibrate(world, *asked) == 0
    assert "its texts are read as words" in capsys.readouterr().out


def test_a_model_that_reads_no_words_needs_degrees(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(EncoderPair, "reads_words", property(lambda _: False))
    asked = ("DIR/model", "DIR/scenes", "--out", "DIR/c.json")
    assert calibrate(world, *asked) == 2
    assert "reads no words, so that no queries can be made; give degrees with --relevance" in capsys.readouterr().err
    assert calibrate(world, *asked, "--relevance", "tfidf", *FEW) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("hf:some/model", "DIR/scenes"), "a published model has no folder of ours"),
        (("DIR/nowhere", "DIR/scenes"), "no folder of a model on this machine"),
        (("DIR/model",), "a model learns from captions; give MODEL DATA"),
        (("DIR/index", "--split", "test"), "--split changes nothing without DATA"),
        (("DIR/index", "--layout", "table"), "--layout changes nothing without DATA"),
        (("DIR/index", "--relevance", "tfidf", "--relevant-from", 2), "degrees of --relevance are 0 to 1"),
        (("DIR/index", "DIR/scenes", "--out", "DIR/c.json"), "it is kept in one place"),
        (("DIR/model", "DIR/scenes", "--queries", 19), "--queries must be at least 20"),
        (("DIR/model", "DIR/scenes", "--relevant-from", 1), "--relevant-from changes nothing without --relevance"),
        (("DIR/model", "DIR/scenes", "--relevance", "tfidf", "--relevant-from", "nan"), "--relevant-from nan"),
        (("DIR/model", "DIR/scenes", "--relevance", "bleu"), "bleu"),
        (("DIR/model", "DIR/scenes", "--relevance", "tfidf", "--relevant-from", -1), "degrees of --relevance are 0"),
        (("DIR/model", "DIR/scenes", "--relevance", "DIR/zeros.npy"), "are 0 to 0"),
        (("DIR/model", "DIR/scenes", "--relevance", "DIR/nothing.npy"), "no pair of these captions"),
        (("DIR/model", "DIR/scenes", "--relevance", "tfidf", "--query-file", "DIR/q"), "give one of them"),
        (("DIR/model", "DIR/scenes", "--query-file", "DIR/missing"), "missing"),
        (("DIR/model", "DIR/scenes", "--query-file", "DIR/empty"), "empty: the file is empty"),
        (("DIR/model", "DIR/scenes", "--query-file", "DIR/q"), "q, line 2: give the fields query and relevant"),
        (("DIR/model", "--show"), "no calibration is kept there"),
        (("DIR/model", "DIR/scenes", "--show"), "--show prints what is kept and learns nothing from"),
        (("DIR/model", "--show", "--queries", 30), "--queries changes nothing with --show"),
        (("DIR/model", "--show", "--layout", "table"), "--layout changes nothing with --show"),
        (("DIR/model", "DIR/scenes", "--split", "all", "--layout", "folder"), "0 captions, and 20 are needed"),
        (("DIR/model", "DIR/one"), "1 picture, and relevance ends among two or more"),
        (("DIR/model", "DIR/few"), "captions, and 20 are needed"),
    ],
)
def test_what_teaches_nothing_is_refused_in_one_line(
    world: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(world / "zeros.npy", np.zeros(VALIDATION, np.float32))
    np.save(world / "nothing.npy", np.full(VALIDATION, np.nan, np.float32))
    (world / "empty").write_text(" \n\n \n")
    (world / "q").write_text('a star\n{"query": "", "relevant": []}\n')
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
