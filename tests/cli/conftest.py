import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from rungwise.scenes import SceneConfig, SceneRelevance, generate


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """Scenes with vectors that follow their relevance."""
    folder = tmp_path_factory.mktemp("audit")
    data = generate(folder / "scenes", SceneConfig(pictures=30, captions_per_picture=3, side=32))
    relevance = SceneRelevance.load(folder / "scenes", data).dense()
    left, weights, right = np.linalg.svd(relevance - relevance.mean(), full_matrices=False)
    for name, vectors in (("image", left[:, :8] * weights[:8]), ("text", right[:8].T)):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", unit.astype(np.float32))
    np.save(folder / "relevance.npy", relevance)
    return folder, data


@pytest.fixture
def connected(monkeypatch):
    """Gives an application an address where clients reach it within this process, without a socket."""
    from fastapi.testclient import TestClient

    def connect(app):
        asked = TestClient(app, base_url="http://127.0.0.1")

        class Connection:
            """What the client uses of ``http.client.HTTPConnection``."""

            def __init__(self, host, port, **_):
                assert (host, port) == ("127.0.0.1", 80)

            def request(self, method, address, body, headers):
                answer = asked.request(method, address, content=body, headers=headers)
                self.status, self.read = answer.status_code, io.BytesIO(answer.content).read

            def getresponse(self):
                return self

            def close(self):
                pass

        monkeypatch.setattr("http.client.HTTPConnection", Connection)
        return "http://127.0.0.1:80/"

    return connect


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    """As after a virtual environment was activated, so that printed commands call the program by its name alone."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
