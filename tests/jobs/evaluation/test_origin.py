from pathlib import Path

import numpy as np
import pytest

import rungwise
from rungwise.data import ImageCaptions
from rungwise.jobs.evaluation._inputs import read_scored
from rungwise.jobs.evaluation._options import Evaluate
from rungwise.jobs.evaluation._origin import origin_of

DATA = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.arange(2), name="pets")


def origin(command="", **options):
    given = Evaluate(**options)
    return origin_of(given, read_scored(given), command)


def test_arrays_are_named_by_their_shape_and_options_as_they_were_given():
    found = origin(data=DATA, similarity=np.eye(2), split="all", measures=["R@1"], relevance=np.eye(2))
    array = "<ndarray in memory, 2 x 2>"
    assert found.command == (
        f"rungwise.evaluate(data=<ImageCaptions in memory>, similarity={array}, split='all', measures=['R@1'],"
        f" relevance={array})"
    )
    assert found.files == {
        "data and captions": "<ImageCaptions in memory>; pictures were not read",
        "similarities": array,
        "degrees of relevance": array,
    }
    assert found.model == ""
    assert found.kind == "not known here: scores were given, not the model that made them"


def test_files_are_named_as_they_were_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("s.npy", np.eye(2))
    found = origin("rungwise evaluate --similarity s.npy", similarity="s.npy", captions_per_image=1)
    assert found.files == {"similarities": "s.npy"}
    assert found.command == "rungwise evaluate --similarity s.npy"


def test_a_command_of_odd_letters_is_one_printable_line():
    found = origin("rungwise\n\x1b[31m" + "x" * 9000, data=DATA, similarity=np.eye(2), split="all")
    assert found.command.isprintable()
    assert len(found.command) <= 2000


@pytest.mark.parametrize("option", ["report", "out"])
def test_a_call_in_python_has_its_report(tmp_path, option):
    rungwise.evaluate(
        data=DATA, similarity=np.eye(2), split="all", report=tmp_path / "r.html", out=tmp_path / "r.json", quiet=True
    )
    page = Path(tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"{option}=&#x27;{tmp_path}" in page
    assert "UTC" in page
