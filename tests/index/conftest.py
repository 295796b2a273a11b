"""What tests of indexes and stores share."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from rungwise.index import Index
from tests.colour_model import ColourModel, colour_pictures
from tests.object_store import local_object_store, program


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power stays on while these tests run; hundreds of syncs would take most of their time.

    What must be on the disk, and when, is asserted with a record of the calls in place of this.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="session")
def _colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of five colours and their index; who changes it copies both."""
    home = tmp_path_factory.mktemp("colours")
    data = colour_pictures(home / "photos", ["red", "green", "blue", "red", "yellow"])
    Index.build(data, ColourModel(), home / "index")
    return home


@pytest.fixture
def index(_colours: Path, tmp_path: Path) -> Index:
    """Pictures of five colours in ``photos``, two of them red, and their index beside it."""
    shutil.copytree(_colours, tmp_path, dirs_exist_ok=True)
    return Index.open(tmp_path / "index")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of an object store on this machine."""
    if program() is None:
        pytest.skip("an object store to try needs moto: pip install 'moto[server]'")
    with local_object_store("pets"):
        yield "s3://pets/some/index"


@pytest.fixture(scope="module")
def milvus(milvus: str) -> Iterator[str]:
    """As for all tests; a server on a busy machine is asked for as long as it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MILVUS_PATIENCE", "100000")
        yield milvus


@pytest.fixture
def milvus_in_memory(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a double of a Milvus server, which each test has for itself."""
    pytest.importorskip("pymilvus")
    from tests.index.milvus_in_memory import Kept, client_of

    monkeypatch.setattr("pymilvus.MilvusClient", client_of(Kept()))
    return f"milvus://memory-{uuid4().hex}"


@pytest.fixture(params=["milvus_in_memory", pytest.param("milvus", marks=pytest.mark.slow)])
def either_milvus(request: pytest.FixtureRequest) -> str:
    """The address of a double of a Milvus server, and in the whole tier of a real one."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder on another file system than the temporary one."""
    place = Path("/dev/shm")
    if not place.is_dir() or place.stat().st_dev == Path(tempfile.gettempdir()).stat().st_dev:
        pytest.skip("there is no second file system that may be written")
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)
