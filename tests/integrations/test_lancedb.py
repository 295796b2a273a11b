"""Our models in tables that LanceDB makes, by its registry, and tables of an index in LanceDB alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.embeddings import EmbeddingFunctionConfig, get_registry
from PIL import Image

from rungwise.core import RungwiseWarning, UserError
from rungwise.index import Index
from rungwise.models import load_dual_encoder
from rungwise.similarity import Cosine
from tests.colour_model import ColourModel, colour_pictures

COLOURS = ("red", "green", "blue", "red")


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, for which every place holds a model of colours."""
    from rungwise.integrations import lancedb as adapter

    adapter._loaded.cache_clear()
    monkeypatch.setattr(adapter, "load_dual_encoder", lambda place, device: ColourModel())
    return adapter


def made(folder: Path, paths: list[Any], **given: Any) -> Any:
    """A table of pictures whose vectors our function makes."""
    function = get_registry().get("rungwise").create(name="colours", **given.pop("settings", {}))
    config = EmbeddingFunctionConfig(vector_column="vector", source_column="picture", function=function)
    data = pa.table({"picture": paths})
    return lancedb.connect(folder).create_table("photos", data, embedding_functions=[config], **given)


def test_a_table_is_made_and_searched_by_our_model(tmp_path: Path, ours: ModuleType) -> None:
    files = [str(one) for one in colour_pictures(tmp_path / "photos", COLOURS).paths]
    made(tmp_path / "db", files)
    table = lancedb.connect(tmp_path / "db").open_table("photos")  # which finds the function by what it keeps
    stored = np.array(table.to_arrow()["vector"].to_pylist(), np.float32)
    assert np.array_equal(stored, ColourModel().encode_image([Path(one) for one in files]).vectors)
    found = table.search("a blue square").distance_type("cosine").limit(4).to_list()
    expected = 1 - stored @ ColourModel().encode_text(["a blue square"])[0]
    assert found[0]["picture"] == files[2]
    assert [one["_distance"] for one in found] == pytest.approx(sorted(expected), abs=1e-6)
    picture = Image.open(files[1])
    for given in (picture, Path(files[1]), Path(files[1]).read_bytes()):
        assert table.search(given).limit(1).to_list()[0]["picture"] == files[1]
    table.add(pa.table({"picture": [files[1]]}))
    assert table.count_rows() == 5


def test_bytes_and_missing_pictures(tmp_path: Path, ours: ModuleType) -> None:
    files = [one.read_bytes() for one in colour_pictures(tmp_path / "photos", COLOURS).paths]
    table = made(tmp_path / "db", [files[0], None], on_bad_vectors="null")
    assert [one is None for one in table.to_arrow()["vector"].to_pylist()] == [False, True]
    function = get_registry().get("rungwise").create(name="colours")
    with pytest.warns(RungwiseWarning, match="1 of 2 pictures cannot be read and have no vector"):
        found = function.compute_source_embeddings([files[1], b"no picture"])
    assert found[1] is None
    assert found[0].shape == (3,)


def test_texts_as_sources(tmp_path: Path, ours: ModuleType) -> None:
    table = made(tmp_path / "db", ["a red one", "a green one"], settings={"source": "texts"})
    assert table.search("green").limit(1).to_list()[0]["picture"] == "a green one"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("https://example.org/a.jpg", "nothing is fetched; give the path of a file or its bytes"),
        (5, "int: is no picture; give a path, the bytes of a file or a Pillow picture"),
    ],
)
def test_what_is_no_picture_is_said(given: object, said: str, ours: ModuleType) -> None:
    function = get_registry().get("rungwise").create(name="colours")
    with pytest.raises(UserError, match=said):
        function.compute_source_embeddings_with_retry([given])
    texts = get_registry().get("rungwise").create(name="colours", source="texts")
    with pytest.raises(UserError, match="is no text; make the function with source='pictures'"):
        texts.compute_source_embeddings([b"x"])


def test_another_model_at_the_place_of_the_first_is_refused(
    tmp_path: Path, ours: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "db", [str(colour_pictures(tmp_path / "photos", ["red"]).paths[0])])
    ours._loaded.cache_clear()
    monkeypatch.setattr(ours, "load_dual_encoder", lambda place, device: ColourModel("another" * 10))
    table = lancedb.connect(tmp_path / "db").open_table("photos")
    with pytest.raises(UserError, match="colours: is model anotheranoth, and the table was made with c0ffeec0ffee"):
        table.search("red").limit(1)


def test_a_model_that_is_not_there_is_said_in_one_line() -> None:
    from rungwise.integrations import lancedb as adapter

    assert adapter.load_dual_encoder is load_dual_encoder
    function = get_registry().get("rungwise").create(name="nowhere/model")
    with pytest.raises(UserError, match="nowhere/model") as caught:
        function.ndims()
    assert "\n" not in str(caught.value)


def test_the_tables_of_an_index_open_in_plain_lancedb(tmp_path: Path) -> None:
    data, model = colour_pictures(tmp_path / "photos", COLOURS), ColourModel()
    index = Index.build(data, model, tmp_path / "photos.index", store="lance")
    database = lancedb.connect(tmp_path / "photos.index")
    table = database.open_table("pictures")
    assert {"id", "vector", "record", "words"} <= set(table.schema.names)
    query = model.encode_text(["blue"])
    found = table.search(query[0], vector_column_name="vector").distance_type("cosine").limit(4).to_list()
    ours = index.picture_store.search(query, 4)
    assert index.similarity == Cosine()
    assert [one["id"] for one in found[:1]] == list(ours.ids[0][:1])
    assert [1 - one["_distance"] for one in found] == pytest.approx(ours.scores[0].tolist(), abs=1e-6)
    assert "captions" in {name.removesuffix(".lance") for name in (one.name for one in index.folder.iterdir())}
