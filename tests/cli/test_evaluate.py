import csv
import json

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.data.scenes import SceneConfig, generate
from rungwise.evaluation import Result, evaluate
from rungwise.relevance import Labels
from rungwise.relevance.scenes import SceneRelevance


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Scenes with vectors that follow their relevance."""
    folder = tmp_path_factory.mktemp("audit")
    data = generate(folder / "scenes", SceneConfig(pictures=30, captions_per_picture=3, side=32))
    relevance = SceneRelevance.load(folder / "scenes", data).dense()
    left, weights, right = np.linalg.svd(relevance - relevance.mean(), full_matrices=False)
    for name, vectors in (("image", left[:, :8] * weights[:8]), ("text", right[:8].T)):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", unit.astype(np.float32))
    np.save(folder / "relevance.npy", relevance)
    return folder, data


def run(world, *arguments):
    folder, _ = world
    return main(["evaluate", *(str(one).replace("DIR", str(folder)) for one in arguments)])


VECTORS = ("--image-embeddings", "DIR/image.npy", "--text-embeddings", "DIR/text.npy")
SCENES = ("--data", "DIR/scenes", "--split", "all")


def expected(world, **more):
    folder, data = world
    vectors = {f"{name}_embeddings": np.load(folder / f"{name}.npy") for name in ("image", "text")}
    return evaluate(**vectors, image_of_caption=data.image_of_caption, **more)


def test_every_way_to_bring_a_model_gives_the_same_numbers(world, tmp_path, capsys):
    folder, data = world
    similarity = np.load(folder / "image.npy") @ np.load(folder / "text.npy").T
    np.save(tmp_path / "s.npy", similarity)
    (tmp_path / "s.json").write_text(json.dumps(similarity.astype(float).tolist()))
    (tmp_path / "owners.txt").write_text("\n".join(map(str, data.image_of_caption)))
    lines = [
        f"{query} Q0 {candidate} {place} {-place} me"
        for scores, queries, candidates in (
            (similarity, data.image_ids, data.caption_ids),
            (similarity.T, data.caption_ids, data.image_ids),
        )
        for query, row in zip(queries, scores, strict=True)
        for place, candidate in enumerate(np.array(candidates)[np.argsort(-row, kind="stable")])
    ]
    (tmp_path / "run.trec").write_text("\n".join(lines))
    wanted = expected(world).numbers
    ways = [
        (*VECTORS, *SCENES),
        (*VECTORS, "--captions-per-image", 3),
        (*VECTORS, "--image-of-caption", tmp_path / "owners.txt"),
        ("--similarity", tmp_path / "s.npy", *SCENES),
        ("--similarity", tmp_path / "s.json", "--captions-per-image", 3),
        ("--ranked-lists", tmp_path / "run.trec", *SCENES),
    ]
    for number, way in enumerate(ways):
        assert run(world, *way, "--out", tmp_path / "r.json") == 0, capsys.readouterr().err
        assert Result.from_json(tmp_path / "r.json").numbers == wanted, number


def test_graded_measures_take_the_degrees_of_scenes_or_of_a_file(world, tmp_path):
    folder, data = world
    measures = ("--measures", "CS@10", "nDCG@5")
    wanted = expected(world, relevance=np.load(folder / "relevance.npy"), measures=measures[1:]).numbers
    for given in ((*SCENES,), ("--captions-per-image", 3, "--relevance", "DIR/relevance.npy")):
        assert run(world, *VECTORS, *given, *measures, "--out", tmp_path / "r.json") == 0
        assert Result.from_json(tmp_path / "r.json").numbers == wanted
    Labels([str(n % 2) for n in range(30)], data.image_of_caption).save(tmp_path / "labels")
    assert run(world, *VECTORS, *SCENES, *measures, "--relevance", tmp_path / "labels") == 0


def test_labels_in_the_data_are_judged(world, tmp_path):
    _, _data = world
    rows = ["image,caption,label"] + [f"{n}.jpg,c{n},{n % 3}" for n in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    np.save(tmp_path / "s.npy", np.eye(30))
    given = ("--data", tmp_path / "t.csv", "--captions-only", "--split", "all", "--similarity", tmp_path / "s.npy")
    assert run(world, *given, "--protocol", "labels", "--out", tmp_path / "r.json") == 0
    assert list(Result.from_json(tmp_path / "r.json").numbers) == ["i2t/MAP", "t2i/MAP"]


def test_report_and_false_negatives_are_written(world, tmp_path, capsys):
    outputs = ("--report", tmp_path / "r.html", "--false-negatives", tmp_path / "f.csv")
    beside = ("--beside", "DIR/image.npy", "DIR/text.npy", "--names", "one", "two")
    assert run(world, *VECTORS, *SCENES, *outputs, *beside, "--thresholds", "1", "0.5") == 0
    said = capsys.readouterr().out
    page = (tmp_path / "r.html").read_text()
    assert "Two models side by side" in page
    assert "data:image/jpeg" in page
    with (tmp_path / "f.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert f"({len(found)} candidates)" in said
    assert {row["direction"] for row in found} <= {"i2t", "t2i"}
    assert all(float(row["degree"]) >= float(row["needed"]) for row in found)


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_other_formats_are_printed_alone(world, capsys, form):
    assert run(world, *VECTORS, *SCENES, "--measures", "R@1", "--format", form) == 0
    said = capsys.readouterr().out
    assert said.startswith({"markdown": "| measure", "latex": r"\begin", "csv": "source,", "json": "{"}[form])
    if form == "json":
        assert json.loads(said)["units"]["i2t/R@1"] == "percent"


def test_intervals_are_printed_where_they_are_asked_for(world, capsys):
    given = (*VECTORS, *SCENES, "--measures", "R@1", "--format", "json")
    assert run(world, *given, "--intervals") == 0
    said = json.loads(capsys.readouterr().out)
    assert {name: tuple(own) for name, own in said["intervals"].items()} == expected(
        world, measures=["R@1"]
    ).intervals()
    assert run(world, *given) == 0
    assert "intervals" not in json.loads(capsys.readouterr().out)


def test_short_lists_leave_out_what_they_cannot_answer(world, tmp_path, capsys):
    _, data = world
    lists = {image: list(data.caption_ids[:10]) for image in data.image_ids}
    (tmp_path / "i2t.json").write_text(json.dumps(lists))
    assert run(world, "--ranked-lists", tmp_path / "i2t.json", *SCENES, "--out", tmp_path / "r.json") == 0
    assert "left out MedR" in capsys.readouterr().out
    assert list(Result.from_json(tmp_path / "r.json").numbers) == ["i2t/R@1", "i2t/R@5", "i2t/R@10"]


def test_lengths_are_warned_of(world, tmp_path, capsys):
    folder, _ = world
    np.save(tmp_path / "long.npy", 3 * np.load(folder / "image.npy"))
    given = ("--image-embeddings", tmp_path / "long.npy", "--text-embeddings", "DIR/text.npy")
    assert run(world, *given, *SCENES) == 0
    assert "the vectors are not normalised (lengths 3 to 3)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give one thing to judge"),
        (("model", *VECTORS), "give one thing to judge"),
        (("model",), "a model and ranked lists need data"),
        (("model", "a", "--data", "b"), "data were given twice"),
        (VECTORS[:2], "go together; give both"),
        (VECTORS, "say which caption belongs to which image"),
        ((*VECTORS, "--captions-per-image", 3, "--image-of-caption", "x"), "say which caption belongs to which image"),
        ((*VECTORS, "--captions-per-image", 2), "30 images with 2 captions each make 60, but 90 were given"),
        ((*VECTORS, "--captions-per-image", 3, "--protocol", "cxc"), "protocol cxc"),
        ((*VECTORS, *SCENES, "--protocol", "labels"), "has no class labels"),
        ((*VECTORS, *SCENES, "--positives", "a.json"), "--positives takes two files"),
        ((*VECTORS, *SCENES[:2], "--split", "test"), "vectors for"),
        ((*VECTORS[2:], *VECTORS[:2], "--measures", "R@x", *SCENES), "R@x"),
        (("--image-embeddings", "DIR/text.npy", "--text-embeddings", "DIR/image.npy", *SCENES), "90 vectors for 30"),
        (("--similarity", "DIR/image.npy", *SCENES), "give scores of these data"),
        ((*VECTORS, *SCENES, "--relevance", "DIR/nothing"), "relevance is a folder"),
        ((*VECTORS, "--captions-per-image", 3, "--false-negatives", "x"), "--false-negatives needs degrees"),
        ((*VECTORS, *SCENES, "--paper", "sam"), "does not say which test set"),
        ((*VECTORS, "--captions-per-image", 3, "--beside", "a", "b", "c", "--report", "x"), "--beside takes"),
    ],
)
def test_a_mistake_gets_one_line(world, capsys, monkeypatch, tmp_path, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run(world, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("rungwise evaluate: ")
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_transposed_similarity_is_called_so(world, tmp_path, capsys):
    np.save(tmp_path / "s.npy", np.zeros((90, 30)))
    assert run(world, "--similarity", tmp_path / "s.npy", *SCENES) == 2
    assert "it is transposed; give its .T" in capsys.readouterr().err
