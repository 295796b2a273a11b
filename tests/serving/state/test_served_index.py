import itertools
import logging
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from rungwise.core import UnavailableError, UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index, Searcher
from rungwise.index.layout.manifest import stamps
from rungwise.models import EncodedImages
from rungwise.serving import _app as app
from rungwise.serving import create_app
from rungwise.serving.state import Current, _served_index
from tests.colour_model import COLOURS, ColourModel, colour_pictures


def build(place: Path, colours: list[str], model: ColourModel | None = None) -> Index:
    data = colour_pictures(place / f"photos-{'-'.join(colours)}", colours)
    return Index.build(data, model or ColourModel(), place / "index", overwrite=True)


@pytest.fixture
def served(tmp_path: Path) -> Current:
    return Current(Searcher(build(tmp_path, ["red", "blue"]), ColourModel()), seconds=0)


@pytest.fixture
def _always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applications look at the index with every request."""
    monkeypatch.setattr(app, "Current", partial(Current, seconds=0))


def settled(served: Current) -> Current:
    served.settle()  # a look that began before a change may not have seen it
    served.now()
    served.settle()
    return served


def test_nothing_changes_while_nothing_changes(served: Current) -> None:
    first = served.now()
    assert settled(served).now() is first


def test_a_replaced_index_is_served_and_who_began_before_keeps_the_old(served: Current, tmp_path: Path) -> None:
    old = served.now()
    build(tmp_path, ["green", "yellow", "red"])
    new = settled(served).now()
    assert (len(old.index), len(new.index), served.problem) == (2, 3, None)
    assert old.version != new.version
    for version, words in ((old, ["0-red", "1-blue"]), (new, ["0-green", "1-yellow", "2-red"])):
        assert sorted(hit.id for hit in version.searcher.search_text("red", 9)) == words


def test_pictures_that_are_added_are_a_new_version(served: Current, tmp_path: Path) -> None:
    old = served.now()
    more = ImageCaptions(("more",), (), np.array([], int), features=FeatureRows(np.array([COLOURS["red"]], np.float32)))
    Index.open(tmp_path / "index").upsert(more, ColourModel())
    new = settled(served).now()
    assert (len(old.index), len(new.index)) == (2, 3)
    assert old.version != new.version


def test_pictures_that_this_process_adds_to_the_served_index_are_a_new_version(tmp_path: Path) -> None:
    index = build(tmp_path, ["red", "blue"])
    served = Current(Searcher(index, ColourModel()), seconds=0)
    old = served.now().version
    index.remove(["0-red"])
    new = settled(served).now()
    assert new.version != old
    assert [hit.id for hit in new.searcher.search_text("red", 9)] == ["1-blue"]


def test_an_index_that_was_replaced_before_it_is_served_is_read_anew(tmp_path: Path) -> None:
    index = build(tmp_path, ["red"])
    build(tmp_path, ["blue", "green"])
    assert len(settled(Current(Searcher(index, ColourModel()), seconds=0)).now().index) == 2


def test_the_version_is_that_of_what_is_stored(served: Current, tmp_path: Path) -> None:
    again = Current(Searcher(Index.open(tmp_path / "index"), ColourModel()))
    assert again.now().version == served.now().version


def test_weights_are_not_read_again(tmp_path: Path) -> None:
    model = ColourModel()
    served = Current(Searcher(build(tmp_path, ["red"]), model), seconds=0)
    hashed = model.hashed
    build(tmp_path, ["blue"])
    assert settled(served).now().index.picture_store.newest(1) == ("0-blue",)
    assert model.hashed == hashed


def test_an_index_of_another_model_is_not_served_and_said_once(
    served: Current, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    old = served.now()
    build(tmp_path, ["green"], ColourModel(fingerprint="another" * 6))
    for _ in range(3):
        assert settled(served).now() is old
    assert served.problem is not None
    assert served.problem.startswith("another model built the index that stands there now; the old one is served while")
    assert len(caplog.messages) == 1
    assert "c0ffeec0ffee" in caplog.text
    build(tmp_path, ["yellow"])
    assert settled(served).now().index.picture_store.newest(1) == ("0-yellow",)
    assert served.problem is None


def test_no_request_waits_for_a_place_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Current(Searcher(build(tmp_path, ["red"]), ColourModel()), seconds=0)
    looks, release = [0], threading.Event()

    def hanging(place: Path) -> object:
        looks[0] += 1
        release.wait()
        return stamps(place)

    monkeypatch.setattr(_served_index, "stamps", hanging)
    old = served.now()
    assert [served.now() for _ in range(3)] == [old] * 3
    build(tmp_path, ["green"])
    release.set()
    assert settled(served).now().index.picture_store.newest(1) == ("0-green",)
    assert looks[0] >= 1


def test_a_place_that_is_away_is_said_once_and_the_old_index_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    served = Current(Searcher(build(tmp_path, ["red"]), ColourModel()), seconds=0)

    def away(place: Path) -> object:
        raise UnavailableError("milvus://pets: the server does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(_served_index, "stamps", away)
        for _ in range(3):
            settled(served)
    assert len(caplog.messages) == 1
    assert "what was read is served on" in caplog.text
    assert served.problem is None
    build(tmp_path, ["green"])
    assert settled(served).now().index.picture_store.newest(1) == ("0-green",)


def test_the_old_index_that_stands_there_again_is_no_problem(served: Current, tmp_path: Path) -> None:
    old = served.now()
    index = tmp_path / "index"
    moved = index.rename(tmp_path / "moved")
    build(tmp_path, ["green"], ColourModel(fingerprint="another" * 6))
    assert settled(served).problem is not None
    shutil.rmtree(index)
    moved.rename(index)
    assert settled(served).now() is old
    assert served.problem is None


def reloading(tmp_path: Path, load: Callable[[Index], ColourModel], **named: object) -> Current:
    searcher = Searcher(build(tmp_path, ["red", "blue"]), ColourModel())
    return Current(searcher, seconds=0, reload=lambda index: Searcher(index, load(index)), **named)


def test_the_model_of_another_index_is_loaded_while_the_old_one_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    other = ColourModel(fingerprint="another" * 6)
    asked, loaded = threading.Event(), threading.Event()

    def load(index: Index) -> ColourModel:
        asked.set()
        loaded.wait()
        assert index.manifest.model_fingerprint == other.identity
        return other

    served = reloading(tmp_path, load)
    old = served.now()
    build(tmp_path, ["green"], other)
    served.now()
    asked.wait()
    assert served.now() is old
    assert served.problem is not None
    assert "is being loaded" in served.problem
    loaded.set()
    served.settle()
    new = served.now()
    assert (new.searcher.model, new.pictures, served.problem) == (other, 1, None)
    assert old.searcher.model is not other
    assert len(caplog.messages) == 2  # that it is loaded, and that it is served


def test_a_model_that_cannot_be_loaded_is_said_once_and_tried_again_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    now, tries = [0.0], [0]

    def load(index: Index) -> ColourModel:
        tries[0] += 1
        if tries[0] < 3:
            raise UserError("/models/new: no such folder")
        return ColourModel(fingerprint="another" * 6)

    served = reloading(tmp_path, load, clock=lambda: now[0])
    old = served.now()
    build(tmp_path, ["green"], ColourModel(fingerprint="another" * 6))
    for now[0] in (1.0, 2.0, 32.0):
        assert settled(served).now() is old
        assert served.problem is not None
        assert "cannot be loaded; the old one is served while its files are there" in served.problem
        assert "/models" not in served.problem
    assert (tries[0], len(caplog.messages)) == (2, 2)
    assert "/models/new" in caplog.messages[1]
    now[0] = 64.0
    assert settled(served).now().pictures == 1
    assert served.problem is None


def test_a_model_that_did_not_build_the_index_is_not_taken(tmp_path: Path) -> None:
    served = reloading(tmp_path, lambda index: ColourModel(fingerprint="a third one"))
    old = served.now()
    build(tmp_path, ["green"], ColourModel(fingerprint="another" * 6))
    assert settled(served).now() is old
    assert served.problem is not None
    assert "cannot be loaded" in served.problem


def test_an_index_that_changes_while_another_is_read_is_not_lost(tmp_path: Path) -> None:
    """The change belongs to the index that stands there when it is made, and is served when it answers."""
    other = ColourModel(fingerprint="another" * 6)
    asked, loaded = threading.Event(), threading.Event()

    def load(index: Index) -> ColourModel:
        asked.set()
        loaded.wait()
        return other

    served = reloading(tmp_path, load)
    build(tmp_path, ["green"], other)
    served.now()
    asked.wait()
    build(tmp_path, ["red", "blue", "yellow"])  # the old model again
    _, changed = served.change(lambda index: index.remove(["0-red"]))
    loaded.set()
    served.settle()
    assert served.now() is changed
    assert settled(served).now() is changed
    assert changed.pictures == 2


def test_a_damaged_index_is_not_served_and_its_path_is_not_told(
    served: Current, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # whatever level a library has given to all
    old = served.now()
    (tmp_path / "index" / "index.json").write_text("{")
    assert settled(served).now() is old
    assert served.problem is not None
    assert str(tmp_path) not in served.problem
    assert "index.json" in caplog.text
    assert [hit.id for hit in old.searcher.search_text("red", 1)] == ["0-red"]


def test_an_index_that_is_gone_is_served_on(served: Current, tmp_path: Path) -> None:
    old = served.now()
    shutil.rmtree(tmp_path / "index")
    assert settled(served).now() is old
    assert [hit.id for hit in old.searcher.search_text("blue", 1)] == ["1-blue"]
    build(tmp_path, ["green"])
    assert settled(served).now().index.picture_store.newest(1) == ("0-green",)


def test_the_index_is_not_looked_at_with_every_request(tmp_path: Path) -> None:
    now = [0.0]
    served = Current(Searcher(build(tmp_path, ["red", "blue"]), ColourModel()), seconds=1.0, clock=lambda: now[0])
    build(tmp_path, ["green"])
    now[0] = 0.9
    assert len(settled(served).now().index) == 2
    now[0] = 1.1
    assert len(settled(served).now().index) == 1


def test_what_was_refused_is_tried_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    served = Current(Searcher(build(tmp_path, ["red", "blue"]), ColourModel()), seconds=0, clock=lambda: now[0])

    def fail(folder: Path) -> Index:
        raise MemoryError

    build(tmp_path, ["green"])
    with monkeypatch.context() as patch:
        patch.setattr(Index, "open", fail)
        assert len(settled(served).now().index) == 2
    now[0] = 29.0
    assert len(settled(served).now().index) == 2
    now[0] = 31.0
    assert len(settled(served).now().index) == 1


def test_an_index_in_no_folder_stays(tmp_path: Path) -> None:
    built = build(tmp_path, ["red"])
    free = Index(built.manifest, built.picture_store, built.caption_store)
    one, other = (Current(Searcher(free, ColourModel()), seconds=0) for _ in range(2))
    assert one.now().version != other.now().version
    assert settled(one).now() is one.now()


@pytest.mark.usefixtures("_always_looking")
def test_ids_stay_valid_when_the_index_is_replaced(tmp_path: Path) -> None:
    client = TestClient(create_app(build(tmp_path, ["red", "blue"]), ColourModel()))
    old = client.get("/search?q=red").json()
    assert old["index_version"] == client.get("/about").json()["index_version"]
    build(tmp_path, ["red", "yellow"])
    while client.get("/about").json()["index_version"] == old["index_version"]:
        pass
    for address in ("/images/0-red", "/items/0-red", "/similar?id=0-red"):
        assert client.get(address).status_code == 200
    for address in ("/images/1-blue", "/items/1-blue", "/similar?id=1-blue"):
        answer = client.get(address)
        assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_a_change_is_served_at_once(served: Current) -> None:
    old = served.now()
    removed, new = served.change(lambda index: index.remove(["0-red"]))
    assert (removed, new.pictures, served.now()) == (1, 1, new)
    assert new.version != old.version
    assert [hit.id for hit in old.searcher.search_text("red", 9)] == ["0-red", "1-blue"]
    assert settled(served).now() is new


def test_a_change_that_fails_changes_nothing(served: Current) -> None:
    old = served.now()
    with pytest.raises(ZeroDivisionError):
        served.change(lambda index: 1 / 0)
    assert served.now() is old


def test_an_index_of_another_model_is_not_changed(served: Current, tmp_path: Path) -> None:
    build(tmp_path, ["green"], ColourModel(fingerprint="another" * 6))
    with pytest.raises(UserError, match="not by"):
        served.change(lambda index: index.remove(["0-green"]))


def test_examples_are_phrases_of_columns_where_there_are_no_captions(tmp_path: Path) -> None:
    rows = FeatureRows(np.array([COLOURS["red"]] * 4, np.float32))
    titles = {"title": ("Red running shoe", "Blue running shoe", "Watch", "Bag"), "year": (2021,) * 4}
    data = ImageCaptions(tuple("abcd"), (), np.array([], int), features=rows, columns=titles)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    now = Current(Searcher(index, ColourModel())).now()
    assert now.examples == ("running shoe",)
    assert {(column.name, column.type) for column in now.columns} >= {("title", "text"), ("year", "number")}


@pytest.mark.usefixtures("_always_looking")
def test_every_answer_is_of_one_version_while_the_index_is_replaced_again_and_again(tmp_path: Path) -> None:
    """The two take turns."""
    versions = (["red", "blue", "green"], ["green", "red", "blue", "yellow"])
    client = TestClient(create_app(build(tmp_path, versions[0]), ColourModel()))
    done = threading.Event()

    def replace() -> None:
        for turn in itertools.count(1):
            if done.is_set():
                return
            build(tmp_path, versions[turn % 2])

    replacing = threading.Thread(target=replace)
    replacing.start()
    seen: Counter[str] = Counter()
    try:
        while len(seen) < 2 or seen.total() < 40:
            answer = client.get("/search?q=red&k=9&fold=false").json()
            colours = versions[len(answer["hits"]) - 3]
            seen[answer["index_version"]] += 1
            best = answer["hits"][0]
            assert best["score"] == pytest.approx(1, abs=1e-5)
            assert best["id"] == f"{colours.index('red')}-red"
            for hit in answer["hits"]:
                position, _, colour = hit["id"].partition("-")
                assert (colours[int(position)], hit["captions"]) == (colour, [f"a {colour} square"])
    finally:
        done.set()
        replacing.join()


class Rotated(ColourModel):
    """Another model: it sees other colours, so that no vector of one is that of the other."""

    def __init__(self) -> None:
        super().__init__(fingerprint="another" * 6)

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.roll(super().encode_text(texts), 1, axis=1)

    @staticmethod
    def _rolled(encoded: EncodedImages) -> EncodedImages:
        return replace(encoded, vectors=np.roll(encoded.vectors, 1, axis=1))

    def encode_image(self, *given: Any, **named: Any) -> EncodedImages:
        return self._rolled(super().encode_image(*given, **named))


@pytest.mark.usefixtures("_always_looking")
def test_clients_see_no_exchange_of_the_model(tmp_path: Path) -> None:
    """Indexes of two models take turns; texts that wait together may be of both."""
    colours, models = ["red", "blue", "green"], (ColourModel(), Rotated())
    built = build(tmp_path, colours, models[0])
    by_fingerprint = {model.identity: model for model in models}
    app = create_app(built, models[0], reload=lambda index: by_fingerprint[index.manifest.model_fingerprint])
    done = threading.Event()

    def replace_again() -> None:
        for turn in itertools.count(1):
            if done.is_set():
                return
            build(tmp_path, colours, models[turn % 2])

    seen: dict[str, str] = {}

    def search(client: TestClient, colour: str) -> None:
        while not done.is_set():
            answer = client.get(f"/search?q={colour}&k=9&fold=false")
            assert answer.status_code == 200, answer.json()
            hits = answer.json()["hits"]
            assert hits[0]["id"] == f"{colours.index(colour)}-{colour}"
            assert hits[0]["score"] == pytest.approx(1, abs=1e-5)
            about = client.get("/about").json()
            seen[about["index_version"]] = about["model"]

    with TestClient(app) as client, ThreadPoolExecutor(4) as pool:
        replacing = pool.submit(replace_again)
        searching = [pool.submit(search, client, colour) for colour in colours]
        try:
            while len(set(seen.values())) < 2 and not any(one.done() for one in searching):
                pass
        finally:
            done.set()
        for one in (*searching, replacing):
            one.result()
