"""A model of colours behind the application, and requests to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from rungwise.model_server import ModelLimits, create_model_app
from rungwise.serving import ServerSettings
from tests.colour_model import ColourModel

PATIENT = ModelLimits(header_seconds=1e6, body_seconds=1e6, idle_seconds=1e6, send_seconds=1e6, waiting_seconds=1e6)
"""However busy the machine is, nobody is told to come again."""


@pytest.fixture
def said() -> list[str]:
    """What the server says of names."""
    return []


@pytest.fixture
def client(said: list[str]) -> Iterator[TestClient]:
    app = create_model_app(ColourModel(), settings=ServerSettings(limits=PATIENT), say=said.append)
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found
