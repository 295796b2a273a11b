"""An index and its application that every test may read, made once; whoever changes them makes some of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rungwise.index import Index
from rungwise.models import DualEncoder
from rungwise.serving import ServerSettings, ServingLimits, create_app
from rungwise.serving.state._overview import OVERVIEW_THREAD
from tests.colour_model import ColourModel, colour_pictures

MIXED = ["red", "green", "blue", "red", "yellow"]
TOKEN = "correct-horse"
PATIENT = ServingLimits(
    header_seconds=1e6,
    body_seconds=1e6,
    idle_seconds=1e6,
    send_seconds=1e6,
    waiting_seconds=1e6,
    store_seconds=1e6,
    ready_seconds=1e6,
)
"""However busy the machine is, nobody is told to come again, and nobody is left."""


def patient_app(index: Index, model: DualEncoder, token: str | None = None) -> FastAPI:
    """An application that waits for its own store, too, for as long as it takes."""
    return create_app(index, model, settings=ServerSettings(token=token, limits=PATIENT))


def settle() -> None:
    """Wait until the columns and groups that any application has begun to count are there."""
    for thread in threading.enumerate():
        if thread.name == OVERVIEW_THREAD:
            thread.join()


@pytest.fixture(scope="session")
def shared_index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Five pictures, two of them alike."""
    folder = tmp_path_factory.mktemp("served")
    return Index.build(colour_pictures(folder / "photos", MIXED), ColourModel(), folder / "index")


@pytest.fixture(scope="session")
def reader(shared_index: Index) -> Iterator[TestClient]:
    """Asks an application that nobody can change."""
    with TestClient(patient_app(shared_index, ColourModel()), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def refuser(shared_index: Index) -> Iterator[TestClient]:
    """Has the token of an application of the same pictures, for requests that are to change nothing."""
    app = patient_app(shared_index, ColourModel(), token=TOKEN)
    with TestClient(app, headers={"authorization": f"Bearer {TOKEN}"}, raise_server_exceptions=False) as client:
        yield client
