"""Mistakes in a call, and where a study lies. Also tests rungwise.jobs.studies._study_options."""

import pytest

import rungwise
from rungwise.core import UserError
from rungwise.jobs.studies import Study
from rungwise.runs.study import StudyConfig
from tests.jobs.studies.conftest import numbers


def test_the_folder_is_what_is_said_last(tmp_path):
    path = tmp_path / "losses.yaml"
    assert str(Study(str(path)).folder_of(StudyConfig())) == "losses"
    assert str(Study(path).folder_of(StudyConfig(out="there"))) == "there"
    assert str(Study({}).folder_of(StudyConfig())) == "study"
    assert str(Study({}, out="here").folder_of(StudyConfig(out="there"))) == "here"


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        (3, {}, r"file=3: give the YAML file of a study, or its content as a mapping"),
        ({}, {"jobs": 0}, "jobs= must be at least 1, got 0"),
        ({}, {"jobs": 2, "ray": "local"}, "jobs= and ray=: each says how many runs are trained at a time"),
        ({}, {}, "arm runs: no data: name a folder or a caption file as data in the file, or by data="),
        ({"seed": [0]}, {}, r"seed: unexpected, there is no such setting; did you mean seeds\?"),
        ("no.yaml", {}, r"no\.yaml: no such file; name the YAML file of a study"),
    ],
)
def test_a_mistake_is_one_line(file, options, said, tmp_path):
    with pytest.raises(UserError, match=said):
        rungwise.study(file, out=tmp_path / "out", quiet=True, **options)
    assert not (tmp_path / "out").exists()


def test_a_study_may_be_given_as_a_value(study, tested, base, tmp_path, cache):
    config = StudyConfig(base=base, seeds=(0,))
    found = rungwise.study(config, data=tested, out=tmp_path / "value", cache=cache, device="cpu", quiet=True)
    assert list(numbers(found)) == ["runs"]
    assert study(arms=[], seeds=[0]).table == found.table
