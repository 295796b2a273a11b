"""What tests of stores share."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Power stays on while tests run; hundreds of syncs would take most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A bucket of an object store on this machine."""
    server = shutil.which("moto_server")
    if server is None:
        pytest.skip("an object store to try needs moto: pip install 'moto[server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    settings = {"AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}  # fmt: skip
    process = subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                with urlopen(Request(f"{address}/pets", method="PUT")):  # of this machine
                    break
            except OSError:
                time.sleep(0.1)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            yield "s3://pets/some/index"
    finally:
        process.kill()
        process.wait()
