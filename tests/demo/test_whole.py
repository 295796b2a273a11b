"""A whole demo on a small scale; ``rungwise demo --check`` runs the full one.

Also tests rungwise.demo, rungwise.demo.making, rungwise.demo.places, rungwise.demo.results, rungwise.demo.sides and
rungwise.cli.demo.
"""

import numpy as np
import pytest

from rungwise.cli.demo import _ask
from rungwise.core.errors import UserError
from rungwise.demo.making import first_object_of, forget, forget_finished, fresh_queries, with_foreign_word
from rungwise.demo.measuring import MEASURES, per_query
from rungwise.demo.places import NAMES, Places
from rungwise.demo.whole import made_before
from rungwise.scenes.collection import held_out_combinations
from rungwise.scenes.reading import read_statement, read_text
from tests.demo.conftest import SMALL


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
    places, _ = made
    assert made_before(Places(tmp_path)) is None
    for damage in (b"{}", b"not json", places.results.read_bytes().replace(b'"triplet": "', b'"triplet": "0', 1)):
        kept = places.results.read_bytes()
        places.results.write_bytes(damage)
        assert made_before(places, "cpu") is None
        places.results.write_bytes(kept)


def test_forgetting_lets_the_next_demo_train_anew(made, tmp_path):
    places = Places(tmp_path)
    for name in NAMES:
        places.run(name).mkdir(parents=True)
        (places.run(name) / "checkpoint.safetensors").touch()
        (places.run(name) / "kept").touch()
    forget(places)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["kept", "kept"]


def test_what_was_interrupted_is_gone_on_with_and_what_was_finished_is_made_anew(tmp_path):
    places = Places(tmp_path)
    checkpoint = places.run("degrees") / "checkpoint.safetensors"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    forget_finished(places)
    assert checkpoint.exists()
    places.results.touch()
    forget_finished(places)
    assert not checkpoint.exists()
    assert not places.results.exists()


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


def test_the_check_asks_for_every_part(address, demo, monkeypatch):
    _ask(address, demo)
    monkeypatch.setattr(demo.comparison, "ids", ("no such picture",))
    with pytest.raises((UserError, OSError)):
        _ask(address, demo)


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
