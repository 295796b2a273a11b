"""A whole demo on a small scale; ``rungwise demo --check`` runs the full one, in processes and through a socket.

Also tests rungwise.demo, rungwise.demo._parts, rungwise.demo._places, rungwise.demo._record, rungwise.demo._sides and
rungwise.cli._demo.
"""

import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from fastapi.testclient import TestClient

import rungwise.cli._demo as command
from rungwise import serving
from rungwise.cli import main
from rungwise.core import UserError
from rungwise.demo import (
    FEW_QUERIES,
    FEW_SCENES,
    QUERIES,
    SCENES,
    Places,
    create_demo_app,
    discard_runs,
    made_before,
    refuse_others,
)
from rungwise.demo import _whole as whole
from rungwise.demo._measurement import MEASURES, per_query
from rungwise.demo._parts import discard_finished_runs, first_object_of, fresh_queries, with_foreign_word
from rungwise.demo._places import NAMES
from rungwise.scenes import held_out_combinations, read_statement, read_text
from rungwise.serving import ServerSettings
from tests.demo.conftest import SMALL
from tests.serving.conftest import PATIENT


def test_everything_is_made_and_found_again(made):
    places, demo = made
    assert [compared.queries for compared in demo.results.compared] == [20, 305]
    for compared in demo.results.compared:
        assert [line.name for line in compared.lines] == list(MEASURES)
        assert all(line.low <= line.degrees - line.triplet <= line.high for line in compared.lines)
    again = made_before(places, "cpu")
    assert again is not None
    assert again.results == demo.results
    assert again.comparison.ids == demo.comparison.ids
    query = "a red star above a blue heart"
    assert again.comparison.answer(query) == demo.comparison.answer(query)


def test_both_models_learnt_from_the_same_and_differ(demo):
    sides = demo.comparison.sides
    assert {name: side.ids for name, side in sides.items()} == dict.fromkeys(NAMES, demo.comparison.ids)
    assert len(set(demo.results.fingerprints.values())) == 2
    for side in sides.values():
        assert side.index.calibration.model_fingerprint == side.model.fingerprint


def test_a_damaged_or_mixed_demo_is_not_served(made, tmp_path):
    results = made[0].results.read_bytes()
    assert made_before(Places(tmp_path / "nowhere")) is None
    copied = Places(shutil.copytree(made[0].folder, tmp_path / "demo"))
    for damage in (b"{}", b"not json", results.replace(b'"triplet": "', b'"triplet": "0', 1)):
        copied.results.write_bytes(damage)
        assert made_before(copied, "cpu") is None


def test_forgetting_lets_the_next_demo_train_anew(made, tmp_path):
    places = Places(tmp_path)
    for name in NAMES:
        places.run(name).mkdir(parents=True)
        (places.run(name) / "checkpoint.safetensors").touch()
        (places.run(name) / "kept").touch()
    discard_runs(places)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["kept", "kept"]


def test_what_was_interrupted_is_gone_on_with_and_what_was_finished_is_made_anew(tmp_path):
    places = Places(tmp_path)
    checkpoint = places.run("degrees") / "checkpoint.safetensors"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    discard_finished_runs(places)
    assert checkpoint.exists()
    places.results.touch()
    discard_finished_runs(places)
    assert not checkpoint.exists()
    assert not places.results.exists()


def test_a_folder_with_other_files_is_no_place_for_a_demo(made, tmp_path):
    refuse_others(made[0])
    for at, name in enumerate(("thesis.tex", "results.json", "degrees/relevance.json", "photos/a.jpg")):
        places = Places(tmp_path / str(at))
        (places.folder / name).parent.mkdir(parents=True)
        (places.folder / name).write_text("years of work")
        with pytest.raises(UserError, match="no part of a demo; name a new|of no demo"):
            refuse_others(places)
        assert main(["demo", "--folder", str(places.folder), "--no-browser", "--port", "0"]) == 2
        assert [one.read_text() for one in places.folder.rglob("*") if one.is_file()] == ["years of work"]


def test_fresh_queries_hold_out_what_the_collection_holds_out():
    held_out = held_out_combinations(SMALL.seed, SMALL.held_out_share)
    queries = fresh_queries(SMALL, held_out, 200)
    assert len(queries) == 200
    assert not {query.combination for query in queries} & set(held_out)
    assert all(query.statement == read_statement(query.text) for query in queries)


def test_a_foreign_word_takes_the_place_of_one_shape():
    for query in fresh_queries(SMALL, (), 30):
        foreign = with_foreign_word(query, "cat")
        assert foreign.statement.facts == query.statement.facts - 1
        assert read_text(foreign.text).unknown == ("cat",)
        assert read_text(foreign.text).statement == foreign.statement
        first = first_object_of(query)
        assert read_statement(first.text) == first.statement
        assert len(first.statement.mentions) == 1


@pytest.fixture
def in_this_process(demo, monkeypatch):
    """The command makes nothing, and asks an application in the place of a server; gives what was to be made."""
    asked = []
    with TestClient(
        create_demo_app(demo, settings=ServerSettings(limits=PATIENT)), raise_server_exceptions=False
    ) as client:

        def answered(address):
            answer = client.get(address.removeprefix("http://here"))
            return nullcontext(SimpleNamespace(status=answer.status_code, read=lambda: answer.content))

        monkeypatch.setattr(command, "urlopen", answered)
        monkeypatch.setattr(
            serving, "background_app", lambda make, settings: nullcontext("http://here/"), raising=False
        )
        monkeypatch.setattr(whole, "make", lambda *_, **how: asked.append(how) or demo)
        yield asked


@pytest.mark.parametrize(("more", "scenes", "queries"), [([], SCENES, QUERIES), (["--small"], FEW_SCENES, FEW_QUERIES)])
def test_the_check_asks_for_every_part(in_this_process, demo, monkeypatch, capsys, more, scenes, queries):
    assert command.main(["--check", "--device", "cpu", *more]) == 0
    (how,) = in_this_process
    assert (how["scenes"], how["queries"]) == (scenes, queries)
    said = capsys.readouterr()
    assert "the page, its searches and its pictures answered" in said.out + said.err
    monkeypatch.setattr(demo.comparison, "ids", ("no such picture",))
    with pytest.raises(UserError, match="answered 404"):
        command._ask("http://here/", demo)


def test_a_small_demo_is_only_checked():
    with pytest.raises(UserError, match="--small changes nothing without --check"):
        command.main(["--small"])


def test_a_second_demo_serves_what_the_first_made(made, monkeypatch, capsys):
    served = []

    def serve_app(make, *, ready, **how):
        ready("http://here/")
        served.append(
            TestClient(make(ServerSettings(allowed_hosts=["testserver"]), "127.0.0.1")).get("/demo/about").json()
        )

    monkeypatch.setattr(serving, "serve_app", serve_app, raising=False)
    assert command.main(["--folder", str(made[0].folder), "--no-browser", "--device", "cpu"]) == 0
    assert served[0]["pictures"] == len(made[1].comparison.ids)
    said = capsys.readouterr()
    for part in ("two models of an earlier demo", "page: http://here/", "rungwise search", "CutF1"):
        assert part in said.out + said.err


@pytest.mark.slow
def test_the_check_asks_a_server(address, demo):
    command._ask(address, demo)


def test_what_is_measured_is_what_the_page_says_of_a_query(demo):
    """The averages are those of the models that are served."""
    query = "a red star above a blue heart"
    answer = demo.comparison.answer(query)
    degrees = demo.comparison.degrees([read_statement(query)])
    for column in answer.columns:
        side = demo.comparison.sides[column.name]
        scores, known = side.scores([query])
        values = per_query(scores, degrees, side.judged(scores, known))
        assert column.measures["nDCG@10"] == pytest.approx(values["nDCG@10"][0], abs=1e-3)
        assert column.measures["CS@100"] == pytest.approx(values["CS@100"][0], abs=1e-3)
        order = np.argsort(-scores[0], kind="stable")
        assert list(column.curve) == pytest.approx(degrees[0][order][: len(column.curve)], abs=1e-3)
