"""An object store for tests, on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.ports import free_port


def program() -> str | None:
    """The server's program, of the environment that runs or of the system."""
    beside = Path(sys.executable).with_name("moto_server")
    return str(beside) if beside.is_file() else shutil.which("moto_server")


@contextmanager
def local_object_store(bucket: str) -> Iterator[None]:
    """A server with a bucket, named to everybody by the environment for as long as the block lasts."""
    server = program()
    assert server is not None, "an object store to try needs moto: pip install 'moto[server]'"
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {"AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}  # fmt: skip
    before = {name: os.environ.get(name) for name in settings}
    process = subprocess.Popen(
        [server, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                with urlopen(Request(f"{address}/{bucket}", method="PUT")):  # of this machine
                    break
            except OSError:
                assert process.poll() is None, "the object store has ended before it answered"
                time.sleep(0.1)
        os.environ.update(settings)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        process.kill()
        process.wait()
