"""``rungwise plan``, from the words that are typed to the lines that are printed."""

import json
from pathlib import Path

import pytest

from rungwise.cli import main
from rungwise.cli.index import _plan as command
from rungwise.index import Index
from rungwise.planning import STORED, Need, Rates, plan, plan_text
from tests.colour_model import ColourModel, colour_pictures


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["plan", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_it_prints_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "1M", "--queries", "50", "--model", "quick", "--within", "24"]) == 0
    assert capsys.readouterr().out == plan_text(plan(Need(10**6, queries=50, model="quick", within=24))) + "\n"


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "5B", "--json", "--thumbnails"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["need"]["pictures"] == 5 * 10**9
    assert found == json.loads(json.dumps(plan(Need(5 * 10**9, thumbnails=True)).plain()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("0",), "pictures: there must be at least 1"),
        (("--", "-5"), "'-5' is no number of pictures"),
        (("many",), "'many' is no number of pictures; write it as 1000000, 10k, 1M or 5B"),
        (("1M", "--store", "faiss"), "'faiss' is none of 'auto', 'exact', 'lance', 'milvus'"),
        (("1M", "--store", "exact", "--half"), "the store exact keeps full precision"),
        (("1M", "--dimension", "0"), "dimension: must lie between"),
        (("1M", "--model", "unheard-of"), "pictures a second of 'unheard-of' are not known"),
        (("1M", "--device", "abacus"), "abacus"),
        (("1M", "--within", "0"), "within: must be above 0"),
        (("1M", "--folder", "somewhere"), "--folder changes nothing without --measure"),
        (("1M", "--stored", "somewhere"), "--stored changes nothing without --measure"),
        (("1M", "--measure", "--stored", "nowhere"), "nowhere"),
        (("1M", "--measure", "--measured-rows", "0"), "--measured-rows 0: must be at least 1"),
        (("1M", "--measure", "--device", "h200"), "needs a model; name it: --model"),
        ((), "missing"),
    ],
)
def test_wrong_input_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert said in refused(capsys, *words)


def test_the_name_of_a_published_model_is_known_with_its_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "1M", "--model", "hf:google/siglip2-base-patch32-256"]) == 0
    assert capsys.readouterr().out == plan_text(plan(Need(10**6, model="siglip2-base-patch32-256"))) + "\n"


def test_measure_reckons_with_this_machine_and_the_dimension_of_the_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def stored(rates: Rates, need: Need, **_: object) -> Rates:
        asked.append((rates is STORED, need.numbers, need.model_name, need.device))
        known = STORED["quick on cpu"]
        return {**rates, "model on h200": known}

    monkeypatch.setattr(command, "measured", stored)
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: ColourModel(dimension=3))
    assert main(["plan", "10k", "--measure", "--model", "run/model", "--device", "h200"]) == 0
    assert asked == [(True, 3, "model", "h200")]
    assert "D = 3" in capsys.readouterr().out
    assert "vectors of run/model have 3 numbers" in refused(
        capsys, "10k", "--measure", "--model", "run/model", "--dimension", "512"
    )


def test_measure_without_a_model_draws_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "10k", "--dimension", "16", "--measure", "--measured-rows", "200", "--json"]) == 0
    said = capsys.readouterr()
    assert "writing and searching 200 rows of 16 numbers" in said.err
    assert "drawing an index of 200 pictures (of 10,000: no more are drawn)" in said.err
    rates = [rate for one in json.loads(said.out)["quantities"] for rate in one["rates"]]
    assert any(rate["machine"] == "this machine" for rate in rates)


def test_measure_searches_an_index_that_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = colour_pictures(tmp_path / "photos", ["red", "blue"])
    folder = Index.build(photos, ColourModel(), tmp_path / "index", store="lance").folder
    monkeypatch.setattr("rungwise.jobs._models.read_dual_encoder", lambda *_, **__: ColourModel())
    assert main(["plan", "500", "--measure", "--stored", str(folder), "--model", "colours"]) == 0
    said = capsys.readouterr()
    assert "searching your index of 2 pictures" in said.out
    assert "D = 3" in said.out


def test_examples_of_the_help_can_be_given() -> None:
    for example in command._EXAMPLES:
        if "--measure" not in example:
            assert main(example.split()[1:]) == 0
