"""Commands with a model that scores pairs: as a second stage of evaluate and search, and where it can do nothing."""

import json
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.data import read
from rungwise.evaluation import Reranked, Result, evaluate, similarity_source
from rungwise.models import load
from rungwise.scenes import SceneConfig, SceneRelevance, generate
from tests.cli.test_commands import TINY

SCAN = """
model:
  kind: scan
  image: {backbone: test_resnet.r160_in1k, weights: random, size: 64, pool: regions, l2_normalise: false}
  text: {min_count: 1, directions: both, word_dimension: 8}
  dimension: 8
epochs: [1]
learning_rates: [2.0e-4]
batch_size: 16
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Scenes, runs of a model with vectors and of one without, each of one epoch, and an index of the former."""
    folder = tmp_path_factory.mktemp("made")
    generate(
        folder / "scenes", SceneConfig(pictures=40, side=32, captions_per_picture=3, val_share=0.2, test_share=0.4)
    )
    for name, config in (("vse", TINY), ("scan", SCAN)):
        (folder / f"{name}.yaml").write_text(config)
        assert main(["train", str(folder / f"{name}.yaml"), str(folder / "scenes"), "--out", str(folder / name)]) == 0
    index = [str(folder / "scenes"), "--model", str(folder / "vse" / "model"), "--out", str(folder / "index")]
    assert main(["index", *index, "--store", "exact"]) == 0
    return folder


@pytest.fixture
def world(made, tmp_path):
    shutil.copytree(made, tmp_path / "world")
    return tmp_path / "world"


def run(world, *words):
    return main([str(one).replace("DIR", str(world)) for one in words])


def by_hand(world, data, top, **more):
    """The numbers of both stages on some data, from what the models say of it."""
    first, second = load(world / "vse" / "model", "cpu"), load(world / "scan" / "model", "cpu")
    source = similarity_source(**first.on(data).for_evaluation(), image_of_caption=data.image_of_caption)
    both = Reranked(source, second.on(data), top)
    return evaluate(similarity=both, image_of_caption=data.image_of_caption, **more)


def test_the_numbers_are_those_of_both_stages_and_the_output_says_what_they_are(world, tmp_path, capsys):
    data = read(world / "scenes").split("test")
    asked = ("evaluate", "DIR/vse", "DIR/scenes", "--rerank", "DIR/scan", "--top", 4)
    outputs = ("--measures", "rsum", "CS@5", "--out", tmp_path / "r.json", "--report", tmp_path / "r.html")
    assert run(world, *asked, *outputs) == 0
    said = " ".join(capsys.readouterr().out.split())
    result = Result.from_json(tmp_path / "r.json")
    relevance = SceneRelevance.load(world / "scenes", data)
    wanted = by_hand(world, data, 4, measures=["rsum", "CS@5"], relevance=relevance)
    assert result.numbers == pytest.approx(wanted.numbers)
    hashes = {name: load(world / name / "model", "cpu").fingerprint for name in ("vse", "scan")}
    assert result.model_hash == hashes["vse"]
    assert (result.reranking.model_hash, result.reranking.top) == (hashes["scan"], 4)
    assert result.reranking.pairs == wanted.reranking.pairs
    assert "protocol full, the first 4 reranked" in said
    line = f"reranked: model {hashes['scan'][:12]} ({result.reranking.pairs:,} pairs scored) orders the first 4 of each"
    assert line in said
    assert line in (tmp_path / "r.html").read_text()
    assert "ms a query, after pictures and captions were encoded" in said
    assert not (world / "vse" / "results").exists()  # a run keeps results of its own model alone


def test_a_file_of_similarities_makes_shortlists_too(world, tmp_path):
    data = read(world / "scenes").split("test")
    matrix = np.random.default_rng(0).random((len(data), len(data.captions)))
    np.save(tmp_path / "s.npy", matrix)
    asked = ("evaluate", "DIR/scenes", "--similarity", tmp_path / "s.npy", "--rerank", "DIR/scan/model", "--top", 100)
    assert run(world, *asked, "--out", tmp_path / "r.json") == 0
    alone = load(world / "scan" / "model", "cpu").on(data)
    wanted = evaluate(**alone.for_evaluation(), image_of_caption=data.image_of_caption)
    assert Result.from_json(tmp_path / "r.json").numbers == wanted.numbers  # the whole gallery is the second model's


def test_what_the_second_model_cannot_read_is_left_out_for_both(world, tmp_path, capsys):
    data = read(world / "scenes").split("test")
    np.save(tmp_path / "s.npy", np.random.default_rng(0).random((len(data), len(data.captions))))
    data.paths[2].write_bytes(b"")
    asked = ("evaluate", "DIR/scenes", "--similarity", tmp_path / "s.npy", "--rerank", "DIR/scan/model", "--top", 3)
    assert run(world, *asked, "--measures", "nDCG@5", "--out", tmp_path / "r.json") == 0
    said = capsys.readouterr().out
    assert f"1 of {len(data)} pictures could not be read and are left out, with their captions" in said
    assert data.paths[2].name in said
    kept = [image for image in range(len(data)) if image != 2]
    captions = np.concatenate([np.flatnonzero(data.image_of_caption == image) for image in kept])
    part = data.select(kept)
    matrix = np.load(tmp_path / "s.npy")[np.ix_(kept, captions)]
    both = Reranked(matrix, load(world / "scan" / "model", "cpu").on(part), 3)
    relevance = SceneRelevance.load(world / "scenes", part)
    wanted = evaluate(similarity=both, image_of_caption=part.image_of_caption, relevance=relevance, measures=["nDCG@5"])
    assert Result.from_json(tmp_path / "r.json").numbers == pytest.approx(wanted.numbers)


def test_other_formats_say_that_it_is_reranked(world, capsys):
    asked = ("evaluate", "DIR/vse/model", "DIR/scenes", "--rerank", "DIR/scan/model", "--measures", "R@1")
    assert run(world, *asked, "--format", "json") == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["reranking"]["top"] == 50
    assert "reranking took" in found.err
    assert run(world, *asked, "--format", "csv") == 0
    assert "this model, the first 50 reranked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--top", 5), "--top changes nothing without --rerank"),
        (("--rerank", "DIR/scan", "--top", 0), "--top must be at least 1, got 0"),
        (("--rerank", "DIR/scan", "--top", -3), "--top must be at least 1, got -3"),
        (("--rerank", "DIR/scan", "--card"), "--card and --rerank"),
        (("--rerank", "DIR/scan", "--measures", "CutF1(1)"), "measures of where relevance ends and --rerank"),
        (("--rerank", "DIR/nowhere"), "DIR/nowhere"),
        (("--rerank", "DIR/scan", "--captions-only"), "a model is evaluated on pictures and captions"),
    ],
)
def test_what_reranking_cannot_mean_gets_one_line(world, capsys, words, said):
    assert run(world, "evaluate", "DIR/vse/model", "DIR/scenes", *words) == 2
    error = capsys.readouterr().err
    assert said.replace("DIR", str(world)) in error
    assert error.count("\n") == 1


def test_scores_without_a_collection_cannot_be_reranked(world, tmp_path, capsys):
    np.save(tmp_path / "s.npy", np.eye(3))
    given = ("--similarity", tmp_path / "s.npy", "--captions-per-image", 1)
    assert run(world, "evaluate", *given, "--rerank", "DIR/scan") == 2
    assert "--rerank changes nothing without DATA" in capsys.readouterr().err
    (tmp_path / "l.json").write_text("{}")
    assert run(world, "evaluate", "DIR/scenes", "--ranked-lists", tmp_path / "l.json", "--rerank", "DIR/scan") == 2
    assert "--ranked-lists and --rerank" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("index", "DIR/scenes", "--model", "DIR/scan/model", "--out", "DIR/other"),
        ("calibrate", "DIR/scan/model", "DIR/scenes"),
        ("calibrate", "DIR/scan/model", "DIR/scenes", "--out", "DIR/c.json"),
        ("export", "DIR/scan/model", "--out", "DIR/exported"),
        ("serve", "DIR/index", "--model", "DIR/scan/model"),
        ("search", "DIR/index", "a red disc", "--model", "DIR/scan/model"),
    ],
)
def test_a_command_that_needs_vectors_says_so_and_names_the_second_stage(world, capsys, words):
    assert run(world, *words) == 2
    error = capsys.readouterr().err
    assert "a model of kind 'scan'" in error
    assert "--rerank" in error
    assert error.count("\n") == 1


def test_a_training_offers_what_a_second_stage_can_do(world, tmp_path, capsys):
    out = world / "again"
    assert run(world, "train", "DIR/scan.yaml", "DIR/scenes", "--out", out) == 0
    lines = capsys.readouterr().out.replace("\n    ", " ").partition("next:\n")[2].splitlines()
    commands = [shlex.split(line)[1:] for line in lines]
    assert [words[0] for words in commands] == ["evaluate", "evaluate", "search"]
    for words in commands:
        named = {"VECTOR_MODEL": str(world / "vse"), "INDEX": str(world / "index")}
        assert main([named.get(word, word) for word in words]) == 0
    said = capsys.readouterr().out
    assert "the first 50 reranked" in said
    assert "reranked the first 40 by scan: " in said
    assert " pairs/s" in said
    card = (out / "model" / "README.md").read_text()
    assert 'rungwise search INDEX "two dogs running through snow" --rerank "this folder"' in card
    assert "rungwise index" not in card
    assert "rungwise index" in (world / "vse" / "model" / "README.md").read_text()


def test_commands_that_look_at_any_model_take_one_without_vectors(world, tmp_path, capsys):
    for words in (("verify", "DIR/scan"), ("table", "vsepp:1", "--runs", "DIR/scan")):
        assert run(world, *words) == 0
    assert run(world, "doctor", "DIR/scan") in (0, 1)
    asked = ("evaluate", "DIR/scan/model", "DIR/scenes", "--card", "--beside", "DIR/vse/model")
    assert run(world, *asked, "--report", tmp_path / "r.html", "--measures", "R@1", "CutF1(1)") == 0
    said = capsys.readouterr().out
    assert "relevance ends by: no judgements" in said
    assert "R@1" in Path(world / "scan" / "model" / "README.md").read_text()
