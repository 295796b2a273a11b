"""What a command takes as scores of a collection.

Also tests rungwise.jobs.evaluation._options, rungwise.jobs.evaluation._run and rungwise.jobs.evaluation._inputs.
"""

import csv
import json
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.evaluation import Result, evaluate
from rungwise.relevance import CIDErD, Labels


def run(world, *arguments):
    folder, _ = world
    return main(["evaluate", *(str(one).replace("DIR", str(folder)) for one in arguments)])


VECTORS = ("--image-embeddings", "DIR/image.npy", "--text-embeddings", "DIR/text.npy")
SCENES = ("DIR/scenes", "--split", "all")


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
        ("DIR/scenes", "--similarity", tmp_path / "s.npy", "--split", "all"),
        ("--similarity", tmp_path / "s.npy", *SCENES),
        ("--similarity", tmp_path / "s.json", "--captions-per-image", 3),
        (*SCENES, "--ranked-lists", tmp_path / "run.trec"),
    ]
    for number, way in enumerate(ways):
        assert run(world, *way, "--out", tmp_path / "r.json") == 0, capsys.readouterr().err
        assert Result.from_json(tmp_path / "r.json").numbers == wanted, number


def test_a_result_is_printed_anew_in_any_format(world, tmp_path, capsys):
    kept = tmp_path / "r.json"
    assert run(world, *VECTORS, "--captions-per-image", 3, "--out", kept) == 0
    for form, expected_there in (("table", "R@10"), ("markdown", "| R@10"), ("json", '"i2t/R@10"')):
        capsys.readouterr()
        assert run(world, kept, "--format", form, "--intervals") == 0, capsys.readouterr().err
        assert expected_there in capsys.readouterr().out
    assert run(world, kept, "--measures", "R@1", "--out", tmp_path / "one.json") == 0
    assert set(Result.from_json(tmp_path / "one.json").numbers) == {"i2t/R@1", "t2i/R@1"}
    assert run(world, kept, "--split", "val") == 2
    assert "--split changes nothing for a result" in capsys.readouterr().err


def test_graded_measures_take_the_degrees_of_scenes_or_of_a_file(world, tmp_path):
    folder, data = world
    measures = ("--measures", "CS@10", "nDCG@5")
    wanted = expected(world, relevance=np.load(folder / "relevance.npy"), measures=measures[1:]).numbers
    for given in ((*SCENES,), ("--captions-per-image", 3, "--relevance", "DIR/relevance.npy")):
        assert run(world, *VECTORS, *given, *measures, "--out", tmp_path / "r.json") == 0
        assert Result.from_json(tmp_path / "r.json").numbers == wanted
    Labels([str(n % 2) for n in range(30)], data.image_of_caption).save(tmp_path / "labels")
    assert run(world, *VECTORS, *SCENES, *measures, "--relevance", tmp_path / "labels") == 0


def test_results_say_which_degrees_graded_them(world, tmp_path):
    folder, _ = world
    given = (*VECTORS, *SCENES, "--measures", "CS@10")
    np.save(tmp_path / "other.npy", np.load(folder / "relevance.npy") + 1)
    named = {}
    for name, degrees in (
        ("exact", ()),
        ("file", ("--relevance", "DIR/relevance.npy")),
        ("other", ("--relevance", tmp_path / "other.npy")),
    ):
        assert run(world, *given, *degrees, "--out", tmp_path / f"{name}.json") == 0
        named[name] = Result.from_json(tmp_path / f"{name}.json").relevance
    assert named["exact"].startswith("SceneRelevance, hash ")
    assert named["file"].startswith("relevance.npy, hash ")
    assert named["other"].startswith("other.npy, hash ")
    assert main(["compare", str(tmp_path / "file.json"), str(tmp_path / "other.json")]) == 2


def test_labels_in_the_data_are_right_answers(world, tmp_path):
    _, _data = world
    rows = ["image,caption,label"] + [f"{n}.jpg,c{n},{n % 3}" for n in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    np.save(tmp_path / "s.npy", np.eye(30))
    given = (tmp_path / "t.csv", "--captions-only", "--split", "all", "--similarity", tmp_path / "s.npy")
    assert run(world, *given, "--protocol", "labels", "--out", tmp_path / "r.json") == 0
    assert list(Result.from_json(tmp_path / "r.json").numbers) == ["i2t/MAP", "t2i/MAP", "i2t/MAP@50", "t2i/MAP@50"]


@pytest.fixture
def labelled(tmp_path):
    rows = ["image,caption,label"] + [f"{n}.jpg,c{n},{n % 3}" for n in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    np.save(tmp_path / "s.npy", np.random.default_rng(0).random((30, 30)))
    return (tmp_path / "t.csv", "--captions-only", "--split", "all", "--similarity", tmp_path / "s.npy")


def test_numbers_by_class_are_printed_and_kept(world, tmp_path, labelled, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a path is printed whole, so a long one would be wider than the terminal
    asked = ("--protocol", "labels", "--measures", "MAP", "P@10", "--by-class")
    assert run(world, *labelled, *asked, "--out", "r.json") == 0
    said = capsys.readouterr().out
    assert "image to text, by class" in said
    assert max(map(len, said.splitlines()[:30])) <= 80
    found = Result.from_json(tmp_path / "r.json").by_class.classes["i2t"]
    assert [(one.label, one.queries, list(one.numbers)) for one in found] == [
        (str(n), 10, ["MAP", "P@10"]) for n in range(3)
    ]
    assert run(world, *labelled, *asked, "--format", "json") == 0
    own = json.loads(capsys.readouterr().out)["by_class"]["classes"]["t2i"]
    assert [one["label"] for one in own] == ["0", "1", "2"]
    assert run(world, *labelled, *asked, "--format", "csv") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["class"] for row in rows} == {"", "0", "1", "2"}
    assert len(rows) == 4 + 3 * 2 * 3  # both measures and the number of queries, in both directions
    assert run(world, *labelled, *asked, "--format", "markdown") == 0
    assert "| class | queries | MAP | P@10 |" in capsys.readouterr().out


def test_a_report_of_labels_draws_more_than_was_asked_for(world, tmp_path, labelled, monkeypatch, capsys):
    passes = []
    monkeypatch.setattr("rungwise.jobs.evaluation._run.measured", lambda **given: passes.append(1) or evaluate(**given))
    outputs = ("--report", tmp_path / "r.html", "--out", tmp_path / "r.json")
    assert run(world, *labelled, "--protocol", "labels", "--measures", "MAP", *outputs) == 0
    assert passes == [1]
    page = (tmp_path / "r.html").read_text()
    for heading in ("Precision curves", "Numbers by class", "Which class is taken for which"):
        assert f"<h2>{heading}</h2>" in page
    assert list(Result.from_json(tmp_path / "r.json").numbers) == ["i2t/MAP", "t2i/MAP"]


def test_classes_without_labels_are_refused(world, labelled, capsys):
    assert run(world, *labelled, "--by-class") == 2
    assert "--by-class changes nothing without --protocol labels; give both, or" in capsys.readouterr().err


def test_report_and_false_negatives_are_written(world, tmp_path, capsys):
    outputs = ("--report", tmp_path / "r.html", "--false-negatives", tmp_path / "f.csv")
    beside = ("--beside", "DIR/image.npy", "DIR/text.npy", "--names", "one", "two")
    assert run(world, *VECTORS, *SCENES, *outputs, *beside, "--thresholds", "1", "0.5") == 0
    said = capsys.readouterr().out
    page = (tmp_path / "r.html").read_text()
    assert "Two models side by side" in page
    assert "data:image/jpeg" in page
    assert "<dt>command</dt><dd><code>rungwise evaluate --image-embeddings " in page
    assert f"--report {tmp_path}/r.html" in page
    with (tmp_path / "f.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert f"({len(found)} candidates)" in said
    assert {row["direction"] for row in found} <= {"i2t", "t2i"}
    assert all(float(row["degree"]) >= float(row["needed"]) for row in found)


def test_where_no_candidate_is_relevant_enough_a_lower_bound_is_asked_for(world, tmp_path, capsys):
    wrong = ("--false-negatives", tmp_path / "f.csv")
    assert run(world, *VECTORS, *SCENES, *wrong, "--right-from", 2) == 0
    said = capsys.readouterr().out
    assert "(0 candidates)\nnone of the candidates ranked first reaches 2; give a lower --right-from\n" in said
    assert run(world, *VECTORS, *SCENES, *wrong, "--right-from", 0) == 0
    assert "--right-from" not in capsys.readouterr().out


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json"])
def test_other_formats_are_printed_alone(world, capsys, form):
    assert run(world, *VECTORS, *SCENES, "--measures", "R@1", "--format", form) == 0
    said = capsys.readouterr().out
    assert said.startswith({"markdown": "| measure", "latex": r"\begin", "csv": "source,", "json": "{"}[form])
    if form == "json":
        assert json.loads(said)["units"]["i2t/R@1"] == "percent"


def test_messages_keep_out_of_what_a_program_reads(world, tmp_path, capsys):
    np.save(tmp_path / "long.npy", 3 * np.load(world[0] / "image.npy"))
    given = ("--image-embeddings", tmp_path / "long.npy", "--text-embeddings", "DIR/text.npy", *SCENES)
    outputs = ("--out", tmp_path / "r.json", "--report", tmp_path / "r.html")
    assert run(world, *given, "--measures", "R@1", *outputs, "--format", "json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["units"] == {"i2t/R@1": "percent", "t2i/R@1": "percent"}
    for message in ("the vectors are not normalised", "written: ", "report: "):
        assert message in said.err
    assert run(world, *given, "--measures", "R@1") == 0
    assert "the vectors are not normalised" in capsys.readouterr().out


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
DISK_IS_FULL = "rungwise evaluate: standard output: the disk is full; free some space, then run again\n"


@pytest.fixture
def unread():
    """The end of a pipe that nobody reads from."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@FULL
@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_full_disk_behind_the_output_is_one_line(world, form, capsys):
    with Path("/dev/full").open("w") as full, redirect_stdout(full):
        assert run(world, *VECTORS, "--captions-per-image", 3, "--format", form) == 2
    assert capsys.readouterr().err == DISK_IS_FULL


@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_reader_that_has_seen_enough_is_no_mistake(world, form, unread, capsys):
    with os.fdopen(unread, "w") as output, redirect_stdout(output):
        assert run(world, *VECTORS, "--captions-per-image", 3, "--format", form) == 0
    assert capsys.readouterr().err == ""


def test_a_closed_output_is_no_mistake(world, tmp_path, capsys):
    with redirect_stdout(None):
        assert run(world, *VECTORS, "--captions-per-image", 3, "--out", tmp_path / "r.json") == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "r.json").exists()


def in_a_process(world, output):
    """Exit status, and all that is said on standard error until the interpreter has ended."""
    program = [sys.executable, "-c", "import sys; from rungwise.cli import main; sys.exit(main())", "evaluate"]
    given = [str(one).replace("DIR", str(world[0])) for one in (*VECTORS, "--captions-per-image", 3)]
    done = subprocess.run([*program, *given], stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
@FULL
def test_nor_does_the_interpreter_complain_of_a_full_disk_at_its_end(world):
    with Path("/dev/full").open("w") as full:
        assert in_a_process(world, full) == (2, DISK_IS_FULL)


@pytest.mark.slow
def test_nor_of_a_reader_that_has_seen_enough(world, unread):
    with os.fdopen(unread, "w") as output:
        assert in_a_process(world, output) == (0, "")


def test_another_model_is_read_as_the_first_one(world, tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for name in ("image", "text"):
        vectors = np.load(world[0] / f"{name}.npy")
        ids = [f"{name} {place}" for place in range(len(vectors))]
        pq.write_table(pa.table({"id": ids, "vector": vectors.tolist()}), tmp_path / f"{name}.parquet")
    other = (tmp_path / "image.parquet", tmp_path / "text.parquet")
    given = (*VECTORS, "--captions-per-image", 3, "--report", tmp_path / "r.html")
    assert run(world, *given, "--beside", *other) == 0, capsys.readouterr().err


def test_one_of_several_arrays_of_degrees_is_named(world, tmp_path, capsys):
    degrees = np.load(world[0] / "relevance.npy")
    np.savez(tmp_path / "r.npz", mine=degrees, other=degrees.T)
    given = (*VECTORS, "--captions-per-image", 3, "--measures", "CS@10", "--out", tmp_path / "r.json")
    assert run(world, *given, "--relevance", f"{tmp_path}/r.npz:mine") == 0
    assert (
        Result.from_json(tmp_path / "r.json").numbers == expected(world, relevance=degrees, measures=["CS@10"]).numbers
    )
    assert run(world, *given, "--relevance", tmp_path / "r.npz") == 2
    assert "holds 2 arrays (mine, other); say which with FILE:KEY" in capsys.readouterr().err


def test_where_data_came_without_splits_the_remedy_is_to_take_all(tmp_path, world, capsys):
    (tmp_path / "t.csv").write_text("image,caption\n" + "".join(f"{n}.jpg,caption {n}\n" for n in range(40)))
    np.save(tmp_path / "v.npy", np.eye(40))
    vectors = ("--image-embeddings", tmp_path / "v.npy", "--text-embeddings", tmp_path / "v.npy")
    given = (tmp_path / "t.csv", "--captions-only")
    for way in (vectors, ("--similarity", tmp_path / "v.npy")):
        assert run(world, *way, *given) == 2
        assert "of split 'test' (--split all takes every one)" in capsys.readouterr().err
        assert run(world, *way, *given, "--split", "all") == 0


def test_published_rows_without_a_measure_of_the_result_are_refused(world, tmp_path, capsys):
    np.save(tmp_path / "s.npy", np.eye(1000))
    given = ("--similarity", tmp_path / "s.npy", "--captions-per-image", 1, "--protocol", "one-caption-per-image")
    assert run(world, *given, "--measures", "MRR", "--paper", "ladder_loss", "--dataset", "flickr30k") == 2
    assert "--paper ladder_loss: its rows have none of these --measures; ask for one of CS@" in capsys.readouterr().err


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
    assert run(world, *SCENES, "--ranked-lists", tmp_path / "i2t.json", "--out", tmp_path / "r.json") == 0
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
        ((), "give one thing to evaluate"),
        (("model", "data", *VECTORS), "give one thing to evaluate"),
        (("nowhere", *VECTORS), "nowhere: no such file or folder"),
        (("model",), "a model is evaluated on data; give a folder or a caption file after it"),
        (VECTORS[:2], "go together; give both"),
        (VECTORS, "say which caption belongs to which image"),
        (
            (*VECTORS, "--captions-per-image", 3, "--image-of-caption", "x"),
            "both say whose a caption is; give one of them",
        ),
        ((*VECTORS, "--captions-per-image", 2), "30 images with 2 captions each make 60, but 90 were given"),
        ((*VECTORS, "--captions-per-image", 3, "--protocol", "cxc"), "protocol cxc"),
        ((*VECTORS, *SCENES, "--protocol", "labels"), "has no class labels"),
        ((*VECTORS, *SCENES, "--positives", "a.json"), "--positives takes two files"),
        ((*VECTORS, *SCENES[:1], "--split", "test"), "vectors for"),
        ((*VECTORS[2:], *VECTORS[:2], *SCENES, "--measures", "R@x"), "R@x"),
        (("--image-embeddings", "DIR/text.npy", "--text-embeddings", "DIR/image.npy", *SCENES), "90 vectors for 30"),
        (("--similarity", "DIR/image.npy", *SCENES), "give scores of these data"),
        ((*VECTORS, *SCENES, "--relevance", "DIR/nothing", "--measures", "CS@1"), "nothing: no such file or folder"),
        ((*VECTORS, *SCENES, "--relevance", "DIR/scenes/scenes.json", "--measures", "CS@1"), "relevance is a folder"),
        ((*VECTORS, "--captions-per-image", 3, "--false-negatives", "x"), "--false-negatives needs degrees"),
        (
            (*VECTORS, "--captions-per-image", 3, "--measures", "CS@9"),
            "CS@9 needs degrees of relevance; give --relevance",
        ),
        ((*VECTORS, *SCENES, "--beside", "nowhere.npy"), "--beside changes nothing without --report"),
        ((*VECTORS, *SCENES, "--thresholds", 1), "--thresholds changes nothing without --report"),
        ((*VECTORS, *SCENES, "--right-from", 0), "--right-from changes nothing without --false-negatives or --report"),
        ((*VECTORS, *SCENES, "--dataset", "mars"), "--dataset changes nothing without --paper"),
        ((*VECTORS, "--captions-per-image", 3, "--split", "all"), "--split changes nothing without DATA"),
        ((*VECTORS, "--captions-per-image", 3, "--captions-only"), "--captions-only changes nothing without DATA"),
        ((*VECTORS, "--captions-per-image", 3, "--join-restval"), "--join-restval changes nothing without DATA"),
        ((*VECTORS, "--captions-per-image", 3, "--key", "stem"), "--key changes nothing without DATA"),
        ((*VECTORS, *SCENES, "--captions-per-image", 7), "--captions-per-image contradicts DATA"),
        ((*VECTORS, *SCENES, "--image-of-caption", "nowhere"), "--image-of-caption contradicts DATA"),
        ((*VECTORS, "--captions-per-image", 3, "--thresholds", 1, "--report", "x"), "--thresholds needs degrees"),
        ((*VECTORS, "--captions-per-image", 3, "--right-from", 0, "--report", "x"), "--right-from needs degrees"),
        ((*VECTORS, *SCENES, "--out", "DIR"), "a folder stands here; name a file"),
        ((*VECTORS, *SCENES, "--out", "DIR/image.npy/x.json"), "a file stands where a folder is needed"),
        ((*VECTORS, *SCENES, "--report", "DIR"), "a folder stands here; name a file"),
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


def test_degrees_of_other_captions_are_refused(world, tmp_path, capsys):
    _, data = world
    CIDErD(data.captions[::-1], data.image_of_caption).save(tmp_path / "stale")
    graded = ("--relevance", tmp_path / "stale", "--measures", "CS@1")
    assert run(world, *VECTORS, *SCENES, *graded) == 2
    assert "or other ones (hash" in capsys.readouterr().err
    assert run(world, *VECTORS, "--captions-per-image", 3, *graded) == 0
