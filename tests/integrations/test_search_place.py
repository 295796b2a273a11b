"""Also tests rungwise.serving.schemas._read_answer."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.index import Index, Searcher, parse_where
from rungwise.integrations._search_place import SearchPlace
from rungwise.serving import TOKEN as VARIABLE
from rungwise.serving import Client, ServerSettings, background
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.integrations.conftest import twelve
from tests.serving.conftest import PATIENT, TOKEN

PLACES: dict[str, Callable[[Index, str], SearchPlace]] = {
    "folder": lambda index, served: SearchPlace(str(index.folder), model=ColourModel()),
    "index": lambda index, served: SearchPlace(index, model=ColourModel()),
    "searcher": lambda index, served: SearchPlace(Searcher(index, ColourModel())),
    "address": lambda index, served: SearchPlace(served, token=TOKEN),
    "pasted address": lambda index, served: SearchPlace(f"{served}?token={TOKEN}"),
    "client": lambda index, served: SearchPlace(Client(served, TOKEN)),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, colours: Index, served: str) -> SearchPlace:
    return PLACES[request.param](colours, served)


def test_hits_are_those_of_the_index(place: SearchPlace, colours: Index) -> None:
    expected = Searcher(colours, ColourModel()).search("red", 12)
    assert expected.end is not None
    count = len(expected.hits)
    everything, found = place.search("red", 12, beyond=True), place.search("red", 12)
    assert [(hit.id, hit.score) for hit in everything.hits] == [(hit.id, hit.score) for hit in expected.hits]
    assert [hit.degree for hit in everything.hits] == list(expected.end.degrees)
    assert [hit.rung for hit in everything.hits] == list(expected.end.rungs)
    assert [hit.band for hit in everything.hits] == [expected.end.band(at) for at in range(count)]
    before = sum(rung < 4 for rung in expected.end.rungs)
    assert found.hits == everything.hits[:before]
    assert 0 < before < count
    assert {hit.id: hit.alike for hit in everything.hits if hit.alike} == dict(expected.folded) != {}
    assert (found.shown, found.belief, found.source) == (
        expected.end.shown,
        expected.end.belief,
        expected.end.source,
    )
    assert (found.more, everything.more) == (False, False)
    assert place.search("red", 2, beyond=True).more


def test_facts_of_a_hit(place: SearchPlace) -> None:
    first = place.search("red", 1).hits[0]
    assert (first.captions, first.name) == (("a red square",), first.id)
    assert first.text == "a red square"
    assert first.columns["year"] in (2020, 2021)
    assert first.path.endswith(first.id)
    assert first.metadata["columns"] == first.columns
    assert place.search(where="file == '11-yellow.png'").hits[0].text == "11-yellow.png"


def test_a_picture_a_filter_and_both(place: SearchPlace, tmp_path: Path) -> None:
    (tmp_path / "given.png").write_bytes(picture_bytes(COLOURS["blue"]))
    for given in (tmp_path / "given.png", str(tmp_path / "given.png"), picture_bytes(COLOURS["blue"])):
        assert "blue" in place.search(pictures=[given], k=3, beyond=True).hits[0].id
    of_2020 = place.search("red", 12, where="year == 2020", beyond=True)
    assert len(of_2020.hits) == 6
    assert {hit.columns["year"] for hit in of_2020.hits} == {2020}
    newest = place.search(where="year == 2020", k=4)
    assert len(newest.hits) == 4
    assert newest.more
    assert {hit.score for hit in newest.hits} == {hit.rung for hit in newest.hits} == {None}
    assert (newest.shown, newest.belief) == (None, None)


def test_a_query_opens_no_file(place: SearchPlace, tmp_path: Path) -> None:
    (tmp_path / "dog.jpg").write_bytes(picture_bytes(COLOURS["blue"], "JPEG"))
    assert place.search(f"{tmp_path}/dog.jpg", beyond=True).hits


@pytest.mark.parametrize("asked", [{}, {"text": " "}, {"text": "red", "k": 0}, {"text": "red", "where": "height =="}])
def test_what_makes_no_sense_is_refused(place: SearchPlace, asked: dict[str, object]) -> None:
    with pytest.raises(UserError):
        place.search(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ("http://127.0.0.1:8000", {"model": "here"}, "model and device are of an index on this machine"),
        ("folder", {"token": "secret"}, "token is of a server"),
        (7, {}, "place is of type int"),
        ("http://", {}, "no address of a server"),
    ],
)
def test_arguments_of_the_other_kind_are_refused(given: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        SearchPlace(given, **options)  # type: ignore[arg-type]


def test_without_an_index_or_its_model(tmp_path: Path, colours: Index) -> None:
    place = SearchPlace(tmp_path / "nowhere")
    with pytest.raises(UserError, match="nowhere"):
        place.search("red")
    with pytest.raises(UserError, match="the index does not say where its model is; give it: model="):
        SearchPlace(colours).search("red")
    assert SearchPlace(colours).search(where="year == 2020").hits, "a filter needs no model"


def test_a_folder_that_changes_is_searched_in_its_new_state(colours: Index, tmp_path: Path) -> None:
    assert colours.folder is not None
    shutil.copytree(colours.folder.parent, tmp_path / "own")
    model = ColourModel()
    place = SearchPlace(tmp_path / "own" / "index", model=model)
    first = place.search("red", 1, beyond=True).hits[0].id
    Index.open(tmp_path / "own" / "index").remove([first])
    assert place.search("red", 1, beyond=True).hits[0].id != first
    assert model.hashed <= 2, "the weights are not read again for a new state"


def test_the_token_of_the_environment(monkeypatch: pytest.MonkeyPatch, served: str) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert SearchPlace(served).search("red").hits


@pytest.mark.slow
def test_the_model_is_found_as_the_index_names_it(published: object, tmp_path: Path) -> None:
    import rungwise

    data = twelve(tmp_path / "photos")
    assert isinstance(data, ImageCaptions)
    clip = str(published.clip)  # type: ignore[attr-defined]
    rungwise.build_index(tmp_path / "photos", model=clip, out=tmp_path / "index", quiet=True)
    found = SearchPlace(tmp_path / "index").search("a red square", 3, beyond=True)
    expected = rungwise.search(tmp_path / "index", "a red square", k=3)
    assert [hit.id for hit in found.hits] == [hit.id for hit in expected.hits]
    np.testing.assert_allclose([hit.score for hit in found.hits], [hit.score for hit in expected.hits], rtol=1e-6)


@pytest.mark.smoke
def test_a_server_behind_a_socket(colours: Index) -> None:
    with background(colours, ColourModel(), settings=ServerSettings(limits=PATIENT)) as address:
        found = SearchPlace(address).search("blue", 12, where="year == 2021")
    expected = Searcher(colours, ColourModel()).search("blue", 12, where=parse_where("year == 2021"))
    assert [hit.id for hit in found.hits] == [hit.id for hit in expected.hits][: len(found.hits)]
    assert found.hits
