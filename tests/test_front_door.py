"""The functions of the package: those that the command line calls too.

Also tests rungwise.jobs.results._compare, rungwise.jobs.sources._source_degrees, rungwise.jobs.sources._save_options,
rungwise.jobs._load, rungwise.jobs._options, rungwise.jobs.training._train, rungwise.jobs.training._run_record,
rungwise.jobs.training._options, rungwise.jobs.training._seeds, rungwise.jobs.searches._local_search,
rungwise.jobs.searches._server_search, rungwise.jobs.searches._options, rungwise.jobs.index._options and
rungwise.jobs.index._build.
"""

import inspect
import json
import math
import re
import subprocess
import sys
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pandas import DataFrame, Series
from PIL import Image

import rungwise
from rungwise.cli import main
from rungwise.core import UserError, digest_of_json
from rungwise.index import parse_where
from rungwise.jobs import Compare, Plot, TableOptions
from rungwise.jobs.calibration import Calibrate
from rungwise.jobs.evaluation import Evaluate
from rungwise.jobs.index import MakeIndex
from rungwise.jobs.searches import Search
from rungwise.jobs.sources import SaveOptions
from rungwise.jobs.studies import Study
from rungwise.jobs.training import Running
from rungwise.scenes import SceneConfig, generate
from rungwise.serving import ServerSettings, background
from tests.house import modules
from tests.pages import DOCS

FUNCTIONS = {
    "build_index": MakeIndex,
    "calibrate": Calibrate,
    "compare": Compare,
    "degrees": SaveOptions,
    "evaluate": Evaluate,
    "plot": Plot,
    "search": Search,
    "study": Study,
    "table": TableOptions,
    "train": Running,
}


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("door")
    generate(folder / "scenes", SceneConfig(pictures=60, captions_per_picture=3, side=32, seed=4))
    return folder


@pytest.fixture(scope="module")
def run(scenes):
    """A short run, by the function of Python."""
    return rungwise.train("scenes", scenes / "scenes", out=scenes / "run", quiet=True, **SHORT)


SHORT = {"epochs": [1], "learning_rates": [1e-3], "schedule": "phases"}
SHORT_WORDS = ("--epochs", "1", "--learning-rates", "1e-3", "--schedule", "phases")


def test_every_function_is_there_after_every_room_was_imported():
    rooms = sorted({name for name in modules() if not name.rpartition(".")[2].startswith("_")} - {"rungwise"})
    for room in rooms:
        import_module(room)
    for name in rungwise.__all__:
        found = getattr(rungwise, name)
        assert not inspect.ismodule(found), name
        assert callable(found) or name == "__version__"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_options_of_its_command_with_the_same_defaults(name):
    given = inspect.signature(getattr(rungwise, name)).parameters
    for field in fields(FUNCTIONS[name]):
        default = given[field.name].default
        plain = Path(default) if isinstance(default, str) and isinstance(field.default, Path) else default
        missing = inspect.Parameter.empty
        assert plain == field.default or (plain is missing and field.default is not None), field.name


@pytest.mark.smoke
def test_the_package_is_imported_without_torch():
    code = "import sys, rungwise; dir(rungwise); rungwise.__version__; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_python_and_the_command_line_give_the_same_numbers(scenes, run, capsys):
    data = str(scenes / "scenes")
    assert main(["train", "scenes", data, "--out", str(scenes / "other"), *SHORT_WORDS]) == 0
    assert main(["evaluate", str(scenes / "other"), data, "--out", str(scenes / "other.json")]) == 0
    ours = run.evaluate(quiet=True)
    theirs = rungwise.Result.from_json(scenes / "other.json")
    assert dict(ours.numbers) == dict(theirs.numbers)
    assert ours.model_hash == theirs.model_hash
    loaded = rungwise.evaluate(rungwise.load(run), rungwise.read(data), quiet=True)
    assert dict(loaded.numbers) == dict(theirs.numbers)
    assert [one.numbers for one in run.results] == [ours.numbers]


def test_settings_of_data_are_given_by_their_whole_names(scenes, monkeypatch):
    given = []

    def go(config, asked, data):
        given.append((config, data))
        return SimpleNamespace(run=None)

    monkeypatch.setattr("rungwise.jobs.training._train.go", go)
    rungwise.train("vsepp", scenes / "scenes", epochs=[1], learning_rates=[1e-3], **{"data.relevance": "tfidf"})
    rungwise.train("vsepp", scenes / "scenes", **{"data.key": "stem"})
    (first, read), (second, unread) = given
    assert (first.data.relevance, first.epochs, first.data.key) == ("tfidf", (1,), "dot")
    assert first.data.path == second.data.path == str(scenes / "scenes")
    assert len(read) == 60
    assert unread is None  # what was read to choose the preset was read by another key
    assert second.data.key == "stem"


def test_a_run_is_resumed_for_more_epochs(scenes):
    first = rungwise.train("scenes", scenes / "scenes", out=scenes / "longer", quiet=True, **SHORT)
    assert len(first.history) == 1
    more = first.resume(epochs=[2], quiet=True)
    assert len(more.history) == 2
    assert more.folder == first.folder
    assert len(repr(more).splitlines()) <= 12
    assert json.loads(more.to_json())["config"]["epochs"] == [2]


def test_a_collection_from_memory_is_trained_on_resumed_and_evaluated(scenes, run, tmp_path):
    frame = rungwise.read(scenes / "scenes").to_frame()
    trained = rungwise.train(
        "scenes_triplet", rungwise.read(frame), out=tmp_path / "run", quiet=True, warm_up_epochs=0, **SHORT
    )
    more = trained.resume(epochs=[2], quiet=True)
    assert len(more.history) == 2
    result = more.evaluate(quiet=True)
    assert result.numbers == rungwise.evaluate(more, scenes / "scenes", quiet=True).numbers
    later = rungwise.Run.from_json(more.to_json())
    with pytest.raises(UserError, match="does not say where the data are; give data="):
        later.resume(epochs=[3])
    assert len(later.resume(rungwise.read(frame), epochs=[3], quiet=True).history) == 3
    assert main(["train", str(tmp_path / "run" / "config.yaml"), "--out", str(tmp_path / "run"), "--resume"]) == 2


def test_a_run_is_opened_from_its_folder(scenes, run):
    found = rungwise.Run.open(scenes / "run")
    assert (found.measure, found.best_value, found.best_epoch) == (run.measure, run.best_value, run.best_epoch)
    assert (found.config, found.finished) == (run.config, True)
    assert found.history == run.history
    several = scenes / "several"
    rungwise.train("scenes", scenes / "scenes", out=several, seeds=[0], quiet=True, **SHORT)
    with pytest.raises(UserError, match="holds several seeds; open one of them, such as .*seed-0"):
        rungwise.Run.open(several)
    assert rungwise.Run.open(several / "seed-0").best_epoch == 1


def test_frames_are_read_wherever_data_are_asked_for(scenes, run, tmp_path):
    frame = rungwise.read(scenes / "scenes").to_frame()
    expected = rungwise.evaluate(run, scenes / "scenes", quiet=True)
    assert rungwise.evaluate(run, frame, quiet=True).numbers == expected.numbers
    assert rungwise.degrees("tfidf", frame, quiet=True).shape == (60, 180)
    trained = rungwise.train("scenes_triplet", frame, out=tmp_path / "run", quiet=True, warm_up_epochs=0, **SHORT)
    assert trained.data is not None
    with pytest.raises(UserError, match="an index follows a folder, and this collection is in memory"):
        rungwise.build_index(frame, model=run, out=tmp_path / "index")
    matrix = np.eye(3)
    of_frame = rungwise.evaluate(similarity=DataFrame(matrix), image_of_caption=Series([0, 1, 2]), quiet=True)
    assert of_frame["rsum"] == rungwise.evaluate(similarity=matrix, image_of_caption=[0, 1, 2], quiet=True)["rsum"]


def test_a_run_whose_data_are_not_there_says_from_where_it_looked(scenes, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(scenes)
    rungwise.train("scenes", "scenes", out=tmp_path / "run", quiet=True, **SHORT)
    monkeypatch.chdir(tmp_path)
    run = rungwise.Run.open(tmp_path / "run")
    line = f"the data of the run, scenes, are not there, seen from {tmp_path}; name where they are"
    for go_on in (run.evaluate, run.resume):
        with pytest.raises(UserError, match=re.escape(line)):
            go_on(quiet=True)
    assert main(["train", "run/config.yaml", "--out", "run", "--resume"]) == 2
    assert line in capsys.readouterr().err
    assert main(["train", "elsewhere/config.yaml", "--out", "run", "--resume"]) == 2
    assert "elsewhere/config.yaml: no such configuration file" in capsys.readouterr().err
    assert run.evaluate(scenes / "scenes", quiet=True).numbers


def test_a_run_of_a_schedule_for_the_whole_run_goes_on_in_another(scenes, tmp_path):
    run = rungwise.train(
        "scenes", scenes / "scenes", out=tmp_path / "run", quiet=True, **{**SHORT, "schedule": "cosine"}
    )
    with pytest.raises(UserError, match="schedule cosine is of the whole run, which cannot be made longer; .*another"):
        run.resume(epochs=2, quiet=True)
    for start in (run, Path(run.folder), str(run.folder)):
        out = tmp_path / type(start).__name__
        after = rungwise.train("scenes", scenes / "scenes", out=out, start=start, quiet=True, **SHORT)
        assert after.config.start == str(run.folder)


def test_a_run_is_found_from_another_folder(scenes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = rungwise.train("scenes", scenes / "scenes", out="run", quiet=True, **SHORT)
    opened = rungwise.Run.open("run")
    assert repr(run).startswith("run run: ")
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(tmp_path / "beside")
    for one in (run, opened):
        assert one.folder == tmp_path / "run"
        assert len(one.history) == 1
        assert one.evaluate(scenes / "scenes", quiet=True).numbers
        assert one.resume(scenes / "scenes", quiet=True).folder == tmp_path / "run"
    assert repr(run).startswith("run ../run: ")


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"config": None}, "config=None: give a preset, a YAML file or data, and settings by their names: epochs=3"),
        ({"config": {"epochs": 1}}, "config={'epochs': 1}: give a preset, a YAML file or data"),
        ({"data": []}, "data= is an empty list"),
        ({"data": {"path": "scenes"}}, "data= got dict, which is no collection"),
        ({"modules": "no_such_module"}, "modules= no_such_module: there is no such module on Python's import path"),
        ({"modules": [3]}, "modules=[3]: give a list of names of modules, or of files such as mylosses.py"),
        ({"seeds": 3}, "seeds=3: give a list of whole numbers"),
    ],
)
def test_what_train_does_not_take_is_named(scenes, wrong, line):
    given = {"config": "scenes", "data": scenes / "scenes", **wrong}
    with pytest.raises(UserError, match=f"^{re.escape(line)}"):
        rungwise.train(**given, out=scenes / "never", quiet=True)


def test_data_are_given_to_train_once(scenes, tmp_path):
    with pytest.raises(UserError, match="data are given twice, in place of the configuration and as data="):
        rungwise.train(rungwise.read(scenes / "scenes"), tmp_path, out=tmp_path / "run", quiet=True)


def test_numbers_of_numpy_are_numbers(scenes, tmp_path):
    settings = {"epochs": np.int64(1), "learning_rates": np.array([1e-3]), "seeds": np.arange(1), "schedule": "phases"}
    run = rungwise.train("scenes", scenes / "scenes", out=tmp_path / "run", quiet=True, **settings)
    assert list(run.seeds) == [0]
    degrees = {"top": np.int64(3), "out": tmp_path / "degrees", "quiet": np.bool_(True)}
    rungwise.degrees("tfidf", scenes / "scenes", **degrees)
    assert json.loads((tmp_path / "degrees" / "relevance.json").read_text())


def test_a_run_goes_on_in_its_folder_alone(scenes, run, tmp_path):
    for name, value in (("out", tmp_path), ("seeds", (0, 1)), ("resume", True), ("config", "quick")):
        with pytest.raises(UserError, match=f"{name}= is of another run; leave it out, or give it to rungwise.train"):
            run.resume(quiet=True, **{name: value})
    with pytest.raises(UserError, match="holds a run of one seed; name another folder for runs of several"):
        rungwise.train("scenes", scenes / "scenes", out=scenes / "run", resume=True, seeds=(0, 1), quiet=True, **SHORT)


def test_commands_of_other_programs_are_shown_as_they_are(scenes, tmp_path):
    with pytest.raises(UserError, match="hf download nowhere --include .* --local-dir"):
        rungwise.train("scenes", scenes / "scenes", out=tmp_path / "run", start="nowhere", quiet=True, **SHORT)


def test_what_is_given_in_the_wrong_place_is_named(scenes, run, tmp_path):
    lines = {
        "a model is evaluated on data; give a folder or a caption file": lambda: rungwise.evaluate(str(run.folder)),
        "numbers.npy: a file of numbers; give it as similarity=": lambda: rungwise.evaluate(
            str(tmp_path / "numbers.npy")
        ),
        "numbers.npy: a file, no folder of a model": lambda: rungwise.load(tmp_path / "numbers.npy"),
        "image_of_caption is empty": lambda: rungwise.evaluate(similarity=np.eye(2), image_of_caption=[]),
        "save the degrees of these data and this split": lambda: rungwise.evaluate(
            run, scenes / "scenes", relevance=tmp_path / "degrees", measures=["nDCG@5"]
        ),
        "holds several seeds; give one of them, such as": lambda: rungwise.evaluate(
            tmp_path / "seeds", scenes / "scenes"
        ),
        "caption 1 is NoneType; give texts": lambda: rungwise.Collection(["a"], ["A dog.", None], [0, 0]),
    }
    np.save(tmp_path / "numbers.npy", np.eye(2))
    rungwise.degrees("tfidf", scenes / "scenes", out=tmp_path / "degrees", quiet=True)
    rungwise.train("scenes", scenes / "scenes", out=tmp_path / "seeds", seeds=[0], quiet=True, **SHORT)
    for line, call in lines.items():
        with pytest.raises(UserError, match=re.escape(line)):
            call()


def test_a_run_is_not_written_among_the_data(scenes):
    with pytest.raises(UserError, match="holds the data; name another folder for the run"):
        rungwise.train("scenes", scenes / "scenes", out=scenes / "scenes", quiet=True, **SHORT)
    assert not (scenes / "scenes" / "config.yaml").exists()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"epoch": 1}, "epoch: unexpected, there is no such setting; did you mean epochs?"),
        ({"frobnicate": 1}, "frobnicate: unexpected, there is no such setting"),
        ({"batch_size": "many"}, "batch_size: must be a whole number (got 'many')"),
        ({"loss": {"kind": "ladder", "margins": 3}}, "loss.ladder.margins: must be a list (got 3)"),
    ],
)
def test_a_wrong_setting_is_named_as_it_was_given(scenes, settings, line):
    with pytest.raises(UserError) as refused:
        rungwise.train("scenes", scenes / "scenes", out=scenes / "never", quiet=True, **settings)
    assert str(refused.value) == line


def test_help_of_the_functions_is_readable():
    for name in rungwise.__all__:
        if name in FUNCTIONS:
            assert "tyro" not in str(inspect.signature(getattr(rungwise, name)))
    assert dir(rungwise) == sorted(rungwise.__all__)


def test_a_run_turns_into_tables_and_text_and_back(scenes, run, tmp_path):
    run.to_json(tmp_path / "run.json")
    same = rungwise.Run.from_json(tmp_path / "run.json")
    assert (same, hash(same)) == (run, hash(run))
    assert same.history == run.history
    assert same.model.fingerprint == run.model.fingerprint
    assert same.evaluate(quiet=True).numbers == run.evaluate(quiet=True).numbers
    frame = run.to_frame()
    assert list(frame.index) == [1.0]
    assert frame["rsum"].iloc[0] == run.history[0]["rsum"]
    assert f"{run.history[0]['rsum']:.4g}" in run.to_markdown()
    assert "peak_memory_gb" not in run.to_latex()
    text = run.to_json()
    with pytest.raises(UserError, match="was altered after it was written"):
        rungwise.Run.from_json(text.replace('"best_epoch": 1', '"best_epoch": 2'))
    long = replace(run, _history=tuple(dict(run.history[0], epoch=float(n)) for n in range(1, 31)))
    assert long._repr_html_().count("<tr>") == 13
    assert "18 earlier rows are not shown" in long._repr_html_()
    seeds = replace(run, seeds={0: run, 7: same})
    assert rungwise.Run.from_json(seeds.to_json()).seeds == seeds.seeds


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"folder": 3}, "folder: must be text"),
        ({"history": [["epoch", 1]]}, "history.0: must be a mapping"),
        ({"seeds": {"x": {}}}, "the run is damaged"),
        ({"more": 1}, "more: Unexpected"),
        ({"config": {"loss": "no_such_loss"}}, "there is no loss 'no_such_loss'"),
    ],
)
def test_the_text_of_a_run_is_checked(run, change, line):
    content = json.loads(run.to_json()) | change
    del content["checksum"], content["format"]
    content = {"format": "rungwise-run/1"} | content | {"checksum": digest_of_json(content)}
    with pytest.raises(UserError) as refused:
        rungwise.Run.from_json(json.dumps(content))
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_index_is_made_searched_and_calibrated(scenes, run, capsys):
    index = rungwise.build_index(scenes / "scenes", model=run, out=scenes / "index", quiet=True)
    assert len(index) == 60
    answer = rungwise.search(index, "a red square", k=5, quiet=True)
    assert len(answer.hits) == 5
    frame = index.to_frame()
    assert list(frame.index) == [one.id for one in index.items()]
    assert list(frame["captions"].iloc[0]) == list(next(iter(index.items())).captions)
    assert {"path", "width"} <= set(frame.columns)
    assert index.to_frame(parse_where("width > 9999")).empty
    again = rungwise.search(rungwise.open_index(scenes / "index"), "a red square", k=5)
    assert again.hits == answer.hits
    capsys.readouterr()
    assert main(["search", str(scenes / "index"), "a red square", "--k", "5", "--all", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [hit["id"] for hit in printed["hits"]] == [hit.id for hit in answer.hits]
    assert rungwise.search(index, like=answer.hits[0].id, quiet=True).hits[0].id != answer.hits[0].id
    for place in (scenes / "index", index):
        found = rungwise.calibrate(place, queries=40, quiet=True)
        assert found.place is not None or found.why_not


def test_an_index_is_of_a_collection_as_it_was_read(scenes, run):
    folder = scenes / "scenes"
    data = rungwise.read(folder / "pictures", exclude="*[1-9].png", captions=folder / "captions.jsonl")
    given = {"model": run, "out": scenes / "of_data.index", "quiet": True}
    for one in (data, rungwise.read([f"a={folder}"], layout="folder")):
        index = rungwise.build_index(one, overwrite=True, **given)
        assert tuple(index.to_frame().index) == one.image_ids
        assert [text for item in index.items() for text in item.captions] == list(one.captions)
    with pytest.raises(UserError, match="exclude= changes nothing for .* is indexed as it was read"):
        rungwise.build_index(data, exclude=["*.png"], **given)
    with pytest.raises(UserError, match="hold another collection than the one given"):
        rungwise.build_index(replace(data, captions=("changed",) * len(data.captions)), overwrite=True, **given)


def test_an_opened_index_says_that_it_was_changed_since(scenes, run, capsys):
    given = {"model": run, "out": scenes / "changing.index", "overwrite": True, "store": "exact"}
    index = rungwise.build_index(scenes / "scenes", **given)
    capsys.readouterr()
    rungwise.search(index, where="width >= 1")
    assert "open it again" not in capsys.readouterr().out
    rungwise.build_index(scenes / "scenes", **given)
    capsys.readouterr()
    rungwise.search(index, where="width >= 1")
    assert "the index was changed since it was opened" in capsys.readouterr().out
    with pytest.raises(UserError, match="the index was changed since it was opened; open it again"):
        rungwise.search(index, like="no such picture")


def test_a_search_takes_pictures_in_memory_and_integers_of_numpy(scenes, run):
    index = rungwise.build_index(scenes / "scenes", model=run, out=scenes / "memory.index", quiet=True)
    file = next(iter(index.items())).path
    with Image.open(file) as picture:
        picture.load()
    expected = rungwise.search(index, image=file, k=3, quiet=True).hits
    for given in (picture, np.asarray(picture), file.read_bytes(), [picture]):
        answer = rungwise.search(index, image=given, k=np.int64(3), quiet=True)
        assert answer.hits == expected
        assert "pictures like the picture 1 in memory" in repr(answer)
        assert rungwise.Answer.from_json(answer.to_json()) == answer
    with pytest.raises(UserError, match="query= got a picture; give it as image="):
        rungwise.search(index, picture)


@pytest.mark.slow
def test_a_server_is_searched_as_its_index_is(scenes, run, monkeypatch):
    if not (scenes / "served").exists():
        rungwise.build_index(scenes / "scenes", model=run, out=scenes / "served", quiet=True)
    index, model = rungwise.open_index(scenes / "served"), rungwise.load(run)
    asked = {"k": 5, "where": "width >= 1", "quiet": True}
    local = rungwise.search(index, "a red square qqzzx", **asked)
    token = "correct-horse"
    with background(index, model, settings=ServerSettings(token=token)) as address:
        found = rungwise.search(address, "a red square qqzzx", token=token, **asked)
        monkeypatch.setenv("RUNGWISE_TOKEN", token)
        assert rungwise.search(address, "a red square qqzzx", end="off", **asked).end is None
        newest = rungwise.search(address, **asked)
        picture = scenes / "scenes" / local.hits[0].id
        assert rungwise.search(address, image=picture, quiet=True).hits[0].id == local.hits[0].id
        assert found._repr_html_().count("data:image/jpeg") == 5
        with pytest.raises(UserError, match="model= changes nothing at a server"):
            rungwise.search(address, "a red square", model=run)
        monkeypatch.delenv("RUNGWISE_TOKEN")
        with pytest.raises(UserError, match="the token is missing or wrong"):
            rungwise.search(address, "a red square")
    assert [hit.id for hit in found.hits] == [hit.id for hit in local.hits]
    assert [hit.score for hit in found.hits] == pytest.approx([hit.score for hit in local.hits], abs=1e-6)
    assert found.unknown == local.unknown
    assert found.unknown
    assert found.end is not None
    assert found.end.rungs == local.end.rungs
    assert rungwise.Answer.from_json(found.to_json()) == found
    assert [hit.id for hit in newest.hits] == list(index.newest(5, 0, parse_where("width >= 1")))
    assert math.isnan(newest.hits[0].score)
    with pytest.raises(UserError, match="token= changes nothing in a folder"):
        rungwise.search(index, "a red square", token=token)


@pytest.mark.slow
def test_the_page_runs_as_it_is_printed(tmp_path, monkeypatch):
    page = (DOCS / "guide" / "python" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "docs/guide/python/python.md", "exec"), names)
    assert names["result"].numbers == names["same"].numbers
    assert len(names["answer"].hits) == 5


def test_quiet_prints_nothing_and_else_the_lines_of_the_command_are_printed(scenes, run, capsys):
    rungwise.evaluate(run, scenes / "scenes", quiet=True)
    assert capsys.readouterr().out == ""
    rungwise.evaluate(run, scenes / "scenes")
    assert "kept in the run" in capsys.readouterr().out


def test_degrees_are_written_and_read(scenes):
    made = rungwise.degrees("tfidf", rungwise.read(scenes / "scenes"), split="test", quiet=True)
    kept = rungwise.degrees("tfidf", scenes / "scenes", split="test", out=scenes / "degrees", quiet=True)
    np.testing.assert_array_equal(made.dense(), kept.dense())
    listed = rungwise.degrees(
        "tfidf", scenes / "scenes", split="test", out=scenes / "best", top=3, shards=2, quiet=True
    )
    assert listed.topk(3)[0].shape == (made.shape[0], 3)
    with pytest.raises(UserError, match="shards= changes nothing without top="):
        rungwise.degrees("tfidf", scenes / "scenes", out=scenes / "best", shards=2)
    with pytest.raises(UserError, match="cbow needs vectors="):
        rungwise.degrees("cbow", scenes / "scenes")
    assert main(["relevance", "tfidf", str(scenes / "scenes"), "--split", "test", "--out", str(scenes / "same")]) == 0
    np.testing.assert_array_equal(rungwise.degrees("tfidf", scenes / "scenes", split="test").dense(), made.dense())


def test_results_are_evaluated_anew_from_their_values(tmp_path):
    scores = np.random.default_rng(2).normal(size=(8, 8))
    result = rungwise.evaluate(similarity=scores, image_of_caption=range(8), out=tmp_path / "one.json", quiet=True)
    read = rungwise.evaluate(tmp_path / "one.json", measures=["R@5"])
    assert dict(read.numbers) == {name: result[name] for name in ("i2t/R@5", "t2i/R@5")}
    with pytest.raises(UserError, match=r"split= changes nothing for a result"):
        rungwise.evaluate(result, split="val")
    with pytest.raises(UserError, match=r"R@3: was not measured"):
        rungwise.evaluate(result, measures=["R@3"])


def test_an_option_wins_over_settings_and_that_is_said(capsys):
    from rungwise.calibration import FlatThreshold
    from rungwise.evaluation import EvaluationSettings

    scores = np.random.default_rng(2).normal(size=(8, 8))
    given = {"similarity": scores, "image_of_caption": range(8), "relevance": np.eye(8), "measures": ["CutF1(0.5)"]}
    low, high = FlatThreshold(-9.0), FlatThreshold(9.0)
    alone = rungwise.evaluate(**given, calibration=low)
    both = rungwise.evaluate(**given, calibration=low, settings=EvaluationSettings(ends=high))
    assert "ends of settings is left aside" in capsys.readouterr().out
    assert dict(both.numbers) == dict(alone.numbers)
    assert dict(rungwise.evaluate(**given, settings=EvaluationSettings(ends=high)).numbers) != dict(alone.numbers)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: rungwise.evaluate(similarity=np.eye(3)), "one of DATA, captions_per_image= N and image_of_caption="),
        (lambda: rungwise.load(5), "model=5: give the folder or name of a model"),
        (lambda: rungwise.open_index(None), "place=None: give the folder or address of an index"),
        (lambda: rungwise.search(5, "dog"), "index=5: give an index, its folder, or the address of a server"),
        (lambda: rungwise.search("nowhere", 5), "query=5: give a text"),
        (lambda: rungwise.search("nowhere", "dog", end=True), "end=True: give 'on', 'off'"),
        (lambda: rungwise.search("nowhere", "dog", image=np.zeros((2, 2))), "image=, picture 0: an array of float64"),
        (lambda: rungwise.search("nowhere", "dog", image=[5]), "image=[5]: give a picture or its path, or a list of"),
        (lambda: rungwise.evaluate(5, "photos"), "model=5: give a model, or its folder or name"),
        (lambda: rungwise.evaluate("run", mesures=["R@1"]), "evaluate() has no parameter mesures=; did you mean meas"),
        (lambda: rungwise.evaluate("run", "photos", measures=None), "measures=None: give a list"),
        (lambda: rungwise.evaluate("run", "photos", settings={}), "settings={}: give a value of rungwise.evaluation.E"),
        (lambda: rungwise.evaluate("run", "photos", precision="int4"), "precision='int4': give 'auto', 'float32', 'bf"),
        (
            lambda: rungwise.evaluate("run", "photos", captions_per_image="2"),
            "captions_per_image='2': give a whole num",
        ),
        (lambda: rungwise.compare(5, "b.json"), "systems[0]=5: give a result, its file, the text of to_json(), a run"),
        (lambda: rungwise.compare("a.json", "b.json", ["i2t/R@1"]), "are no systems; give the measures as measures="),
        (lambda: rungwise.compare("a.json", "b.json", seed="a"), "seed='a': give a whole number"),
        (lambda: rungwise.compare("a.json", "b.json", seed=-1), "seed= must be 0 or more, got -1"),
        (lambda: rungwise.degrees(5, "photos"), "source=5: give the name of a source, or its configuration"),
        (lambda: rungwise.train("vsepp", "photos", out=5), "out=5: give a path"),
        (lambda: rungwise.train("vsepp", "photos", seeds=3), "seeds=3: give a list of whole numbers"),
        (lambda: rungwise.build_index("photos", store=5), "store=5: give a text"),
        (lambda: rungwise.Run.open("nowhere"), "nowhere: holds no run"),
        (lambda: rungwise.load("nowhere/model"), "nowhere/model"),
        (lambda: rungwise.search("nowhere", " "), "the query is empty"),
        (lambda: rungwise.search("http://127.0.0.1:1/", "dog"), "is the server running?"),
        (lambda: rungwise.train("vsep"), "neither a configuration file nor a preset; do you mean vsepp"),
        (lambda: rungwise.degrees("bleu", "photos"), "bleu"),
        (lambda: rungwise.build_index([]), "name the folder of pictures"),
    ],
)
def test_a_mistake_is_one_line_that_names_parameters(call, line):
    with pytest.raises(UserError) as refused:
        call()
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
