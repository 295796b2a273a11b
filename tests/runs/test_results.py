import json
from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.evaluation import Provenance, evaluate
from rungwise.models import load
from rungwise.runs import is_run_folder, keep_result
from rungwise.runs._results import RESULTS, kept_results


@pytest.fixture(scope="module")
def trained(trained_run, tmp_path_factory):
    """A copy of a run, once for all tests here; they write nothing but its results."""
    return trained_run.copied(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture
def run(trained):
    yield trained
    for path in (trained / RESULTS).glob("*"):
        path.unlink()


def result_of(run, data, *, split="val", data_hash=None, **more):
    model = load(run / "model", "cpu")
    scores = model.on(data.split("val"))
    return evaluate(
        **scores.for_evaluation(),
        image_of_caption=scores.data.image_of_caption,
        provenance=Provenance(
            data_hash=data_hash or scores.data.content_hash(), split=split, model_hash=model.fingerprint
        ),
        **more,
    )


def test_a_result_is_kept_and_read_again(run, coloured):
    result = result_of(run, coloured)
    path = keep_result(run, result)
    assert path.parent == run / RESULTS
    assert path.name.startswith("full-val-")
    (kept,) = kept_results(run)
    assert (kept.path, kept.result) == (path, result)
    assert kept.result.has_queries


def test_the_same_question_takes_the_place_and_others_stand_beside(run, coloured):
    first = keep_result(run, result_of(run, coloured))
    assert keep_result(run, result_of(run, coloured)) == first
    others = {
        keep_result(run, result_of(run, coloured, measures=["R@1"])),
        keep_result(run, result_of(run, coloured, data_hash="other")),
        keep_result(run, result_of(run, coloured, split="test")),
        keep_result(run, result_of(run, coloured, protocol="one-caption-per-image")),
    }
    assert len(others | {first}) == 5
    assert len(kept_results(run)) == 5


def test_names_of_splits_make_no_paths(run, coloured):
    path = keep_result(run, result_of(run, coloured, split="../../x y"))
    assert path.parent == run / RESULTS
    assert kept_results(run)[0].result.split == "../../x y"


def test_a_result_of_another_model_is_refused(run, coloured):
    path = keep_result(run, replace(result_of(run, coloured), model_hash="0123456789abcdef"))
    with pytest.raises(UserError, match=r"is the result of another model \(0123456789ab\) than .*; evaluate") as caught:
        kept_results(run)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="without the hash of its model cannot be kept"):
        keep_result(run, replace(result_of(run, coloured), model_hash=""))


@pytest.mark.parametrize("damage", ["cut", "altered", "other"])
def test_a_damaged_result_is_refused_in_one_line(run, coloured, damage):
    path = keep_result(run, result_of(run, coloured))
    text = path.read_text()
    if damage == "cut":
        path.write_text(text[: len(text) // 2])
    elif damage == "altered":
        read = json.loads(text)
        read["seed"] = 12
        path.write_text(json.dumps(read))
    else:
        path.write_text("[1, 2]")
    with pytest.raises(UserError) as caught:
        kept_results(run)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_a_run_with_a_model_is_one(run, tmp_path):
    assert is_run_folder(run)
    assert not is_run_folder(run / "model")
    assert not is_run_folder(tmp_path)
    assert kept_results(tmp_path) == ()
