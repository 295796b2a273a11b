"""What tests of stores share."""

import os
from collections.abc import Iterator

import pytest

from tests.object_store import local_object_store, program


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Power stays on while tests run; hundreds of syncs would take most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A bucket of an object store on this machine."""
    if program() is None:
        pytest.skip("an object store to try needs moto: pip install 'moto[server]'")
    with local_object_store("pets"):
        yield "s3://pets/some/index"
