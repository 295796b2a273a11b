"""Modules that a person names, and entry points of installed packages, from the page that tells of them.

Also tests rungwise.parts._entry_points.
"""

import re
import sys
from pathlib import Path

import pytest

import rungwise
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.parts import import_named, is_imported, load_offered, offered
from rungwise.scenes import SceneConfig, generate
from tests.pages import pages_below

PAGE = pages_below("guide/python")
EXAMPLES = {match[1]: match[0] for match in re.finditer(r"(?<=```python\n)# (\w+)\.py\n.*?(?=```)", PAGE, re.DOTALL)}
SHORT = ("--epochs", "1", "--learning-rates", "1e-3", "--schedule", "phases")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    generate(folder / "scenes", SceneConfig(pictures=40, captions_per_picture=2, side=32, seed=1))
    return folder / "scenes"


@pytest.fixture
def files(tmp_path):
    """The examples of the page as files."""
    for name, text in EXAMPLES.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_page_has_its_examples():
    assert set(EXAMPLES) == {"softest_hinge", "root_rank", "lengths", "colour_grid", "listed", "rounded"}


def test_a_loss_a_measure_and_a_source_of_the_page_are_named_on_the_command_line(files, scenes, capsys):
    loss, measure, source = (str(files / f"{name}.py") for name in ("softest_hinge", "root_rank", "lengths"))
    run = str(files / "run")
    words = ["train", "scenes", str(scenes), "--module", loss, "--loss.kind", "softest_hinge", "--out", run, *SHORT]
    assert main(words) == 0, capsys.readouterr().err
    assert "softest_hinge" in (files / "run" / "config.yaml").read_text()
    longer = [str(files / "run" / "config.yaml"), "--out", run, "--resume", "--epochs", "2"]
    assert main(["train", *longer, f"--module={loss}"]) == 0
    asked = ["evaluate", run, str(scenes), "--measures", "R@1", "RootRank", "--module", measure]
    assert main([*asked, "--out", str(files / "result.json")]) == 0
    result = rungwise.Result.from_json(files / "result.json")
    assert 0 < result["i2t/RootRank"] <= 100
    assert result["i2t/RootRank"] >= result["i2t/R@1"]
    assert main(["--module", source, "relevance", "lengths", str(scenes), "--out", str(files / "degrees")]) == 0
    degrees = rungwise.evaluate(run, scenes, relevance=files / "degrees", split="all", measures=["nDCG@5"], quiet=True)
    assert degrees["i2t/nDCG@5"] > 0


def test_a_configuration_that_a_person_gives_names_modules(files, scenes, capsys):
    (files / "yaml_loss.py").write_text(EXAMPLES["softest_hinge"].replace("SoftestHinge", "YamlHinge"))
    config = files / "mine.yaml"
    config.write_text(
        f"modules: ['{files / 'yaml_loss.py'}']\nloss: yaml_hinge\nepochs: [1]\nlearning_rates: [0.001]\n"
        "model: {image: {kind: convolutions}, text: {kind: gru}, dimension: 16}\n"
    )
    words = ["train", str(config), str(scenes), "--out", str(files / "run")]
    assert main(words) == 0, capsys.readouterr().err
    assert "yaml_loss.py" in (files / "run" / "config.yaml").read_text()


def test_train_of_python_imports_the_modules_that_it_is_given(files, scenes):
    (files / "python_loss.py").write_text(EXAMPLES["softest_hinge"].replace("SoftestHinge", "PythonHinge"))
    short = {"epochs": 1, "learning_rates": 1e-3, "schedule": "phases", "quiet": True}
    module = files / "python_loss.py"
    run = rungwise.train("scenes", scenes, out=files / "run", modules=module, loss="python_hinge", **short)
    assert run.config.modules == (str(module),)


def test_what_a_run_records_is_printed_and_never_imported(files, scenes, capsys):
    trap = files / "trap.py"
    trap.write_text(f"open({str(files / 'sprung')!r}, 'w')\n")
    run = files / "run"
    (run / "model").mkdir(parents=True)
    (run / "model" / "config.json").write_text("{}")
    (run / "history.jsonl").write_text("")
    (run / "config.yaml").write_text(f"modules: ['{trap}', trap]\nloss: trap\n")
    for words in (
        ["train", str(run / "config.yaml"), str(scenes), "--out", str(run), "--resume"],
        ["train", str(run / "config.yaml"), str(scenes), "--out", str(files / "new")],
        ["evaluate", str(run), str(scenes)],
        ["doctor", str(run)],
        ["verify", str(run)],
        ["table", "vsepp:1", "--runs", str(run)],
    ):
        main(words)
        assert not (files / "sprung").exists(), words
    capsys.readouterr()
    assert main(["train", str(run / "config.yaml"), str(scenes), "--out", str(run), "--resume"]) == 2
    said = capsys.readouterr().err
    assert "what a folder names is not imported" in said
    assert f"--module {trap}" in said
    assert not is_imported("trap")


@pytest.mark.parametrize("folder", ["data", "index", "degrees"])
def test_a_module_beside_data_or_in_another_folder_is_never_imported(folder, files, scenes, monkeypatch, capsys):
    place = files / folder
    place.mkdir()
    (place / "trap.py").write_text(f"open({str(files / 'sprung')!r}, 'w')\n")
    (place / "metadata.csv").write_text("file_name,text\n")
    for words in (["inspect", str(place)], ["search", str(place), "x"], ["evaluate", str(place), str(place)]):
        main([*words, "--module", "trap"])
    assert "there is no such module on Python's import path" in capsys.readouterr().err
    assert not (files / "sprung").exists()


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("no_such_module_here", None, "there is no such module on Python's import path"),
        ("missing.py", None, "there is no such file"),
        ("broken_here.py", "x = 1 +\n", "its code fails"),
        ("raising_here.py", "raise ValueError('no\\nway')\n", "ValueError: no way; mend it"),
        ("needing_here.py", "import no_such_library_here\n", "it needs the module no_such_library_here"),
        ("json.py", "", "another module is called json"),
        ("a.b.py", "", "'a.b' is no name of a module; give the file a name of letters"),
        ("two words.py", "", "'two words' is no name of a module"),
        ("", None, "name a module after it"),
    ],
)
def test_what_cannot_be_imported_is_said_in_a_line(name, text, line, tmp_path):
    given = name
    if name.endswith(".py"):
        given = str(tmp_path / name)
        if text is not None:
            Path(given).write_text(text)
    with pytest.raises(UserError) as refused:
        import_named([given])
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_lies_on_the_import_path_is_no_other_module(tmp_path, monkeypatch):
    (tmp_path / "beside_the_program.py").write_text("VALUE = 1\n")
    other = tmp_path / "elsewhere" / "beside_the_program.py"
    other.parent.mkdir()
    other.write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match="another module is called beside_the_program"):
        import_named([str(other)])
    import_named([str(tmp_path / "beside_the_program.py")])
    assert sys.modules["beside_the_program"].VALUE == 1
    import_named(["beside_the_program", str(tmp_path / "beside_the_program.py")])
    monkeypatch.delitem(sys.modules, "beside_the_program")


def test_an_installed_package_offers_parts_which_are_loaded_when_they_are_asked_for(tmp_path, monkeypatch, scenes):
    site = tmp_path / "site"
    package = site / "offered_parts"
    package.mkdir(parents=True)
    for file, name, new in (
        ("softest_hinge", "SoftestHinge", "OfferedHinge"),
        ("root_rank", "RootRank", "OfferedRank"),
        ("lengths", '"lengths"', '"offered-lengths"'),
    ):
        (package / f"{file}.py").write_text(EXAMPLES[file].replace(name, new))
    (package / "__init__.py").write_text("")
    info = site / "offered_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[rungwise.losses]\noffered_hinge = offered_parts.softest_hinge:OfferedHinge\n"
        "[rungwise.measures]\nOfferedRank = offered_parts.root_rank:OfferedRank\n"
        "[rungwise.relevance]\noffered-lengths = offered_parts.lengths:LengthsConfig\n"
        "gone = offered_parts.gone\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert set(offered("losses")) >= {"offered_hinge"}
    assert "offered_parts.softest_hinge" not in sys.modules
    result = rungwise.evaluate(similarity=[[0.1, 0.9], [0.2, 0.3]], image_of_caption=[0, 1], measures=["OfferedRank"])
    assert result["i2t/OfferedRank"] == pytest.approx((100 / 2**0.5 + 100) / 2)
    assert rungwise.degrees("offered-lengths", scenes, split="test", quiet=True).shape[0] > 0
    run = rungwise.train(
        "scenes", scenes, out=tmp_path / "run", epochs=[1], learning_rates=[1e-3], loss="offered_hinge", quiet=True
    )
    assert run.config.loss.kind == "offered_hinge"
    with pytest.raises(UserError, match="the package offered-parts offers 'gone' under rungwise.relevance, but"):
        load_offered("relevance", "gone")
    assert load_offered("relevance", "nobody-offers-this") is None
