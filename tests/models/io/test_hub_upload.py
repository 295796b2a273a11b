"""What is sent to a hub: once by the library's own code to a server of this machine, else to a double of it."""

import base64
import json
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub.constants
import pytest
from huggingface_hub.errors import HfHubHTTPError

from rungwise.core import UserError
from rungwise.core.disk import check_seal
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import JointEmbedding, VSEConfig, push_to_hub


class Hub(ThreadingHTTPServer):
    """Takes what comes, and remembers it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.calls: list[tuple[str, str, bytes]] = []
        self.tokens: set[str | None] = set()

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def sent(self, path: str) -> list[dict[str, Any]]:
        """The lines of JSON that were sent to a path."""
        return [json.loads(line) for _, to, body in self.calls if path in to for line in body.splitlines()]


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        self.server.calls.append((self.command, self.path, body))
        if self.path.startswith(("/api/repos", "/api/models")):  # what is told nobody's secret needs no token
            self.server.tokens.add(self.headers.get("authorization"))
        said: Any = {}
        if "/tree/" in self.path:
            said = [{"type": "file", "path": name, "size": 1, "oid": "b"} for name in ("old.json", ".gitattributes")]
        elif self.path == "/api/repos/create":
            said = {"url": f"{self.server.place}/me/model"}
        elif "/preupload/" in self.path:
            said = {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                              for one in json.loads(body)["files"]]}  # fmt: skip
        elif "/commit/" in self.path:
            said = {"commitUrl": f"{self.server.place}/me/model/commit/abc", "commitOid": "abc"}
        data = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _chunk(self) -> bytes:
        data = self.rfile.read(int(self.rfile.readline(), 16))
        self.rfile.readline()
        return data

    def log_message(self, *_: object) -> None:
        """Keep the output of the tests clean."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.place)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_environment")
    yield server
    server.shutdown()
    server.server_close()


class Taken:
    """What a hub was sent in the place of the library, or what it refuses with.

    Attributes:
        files: By their names.
        tokens: Of those who asked.
        status: Of its answer.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tokens: list[str | bool | None] = []
        self.status = 200

    def create_repo(self, asking: Any, repository: str, **_: object) -> SimpleNamespace:
        self.tokens.append(asking.token)
        if self.status != 200:
            response = SimpleNamespace(status_code=self.status, headers={}, request=None)
            raise HfHubHTTPError("refused", response=response)  # type: ignore[arg-type]
        return SimpleNamespace(repo_id=repository)

    def upload_folder(self, folder_path: Path, allow_patterns: list[str], **_: object) -> SimpleNamespace:
        for file in Path(folder_path).iterdir():
            if any(fnmatch(file.name, pattern) for pattern in allow_patterns):
                self.files[file.name] = file.read_bytes()
        return SimpleNamespace(commit_url="there")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Taken:
    taken = Taken()
    monkeypatch.setattr(
        huggingface_hub.HfApi, "create_repo", lambda *given, **named: taken.create_repo(*given, **named)
    )
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", lambda _, **named: taken.upload_folder(**named))
    return taken


@pytest.fixture
def model() -> JointEmbedding:
    return JointEmbedding.create(VSEConfig(image=FeatureConfig(width=3), text=GRUConfig(4, 1), dimension=4), ["a dog"])


@pytest.mark.smoke
def test_every_sealed_file_is_uploaded_and_no_other(server: Hub, model: JointEmbedding, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / ".DS_Store").write_text("left by a file manager")
    where = push_to_hub(tmp_path / "model", "me/model", private=True, message="First")
    assert where == f"{server.place}/me/model/commit/abc"
    wanted = {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir() if file.name != ".DS_Store"}
    sent = [one["value"] for one in server.sent("/commit/") if one["key"] == "file"]
    assert {one["path"]: base64.b64decode(one["content"]) for one in sent} == wanted
    (asked,) = server.sent("/api/repos/create")
    assert (asked["name"], asked["organization"]) == ("model", "me")
    assert asked.get("private", asked.get("visibility") == "private")
    commit = server.sent("/commit/")
    assert commit[0]["value"]["summary"] == "First"
    assert [one["value"]["path"] for one in commit if one["key"] == "deletedFile"] == ["old.json"]
    assert server.tokens == {"Bearer hf_of_the_environment"}


def test_a_card_of_ones_own_is_uploaded_with_a_seal_that_knows_it(
    hub: Taken, model: JointEmbedding, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    before = (folder / "SHA256SUMS").read_bytes()
    (folder / "README.md").write_text("# My model\n")
    assert push_to_hub(folder, "me/model") == "there"
    assert (folder / "SHA256SUMS").read_bytes() == before
    (tmp_path / "fetched").mkdir()
    for name, data in hub.files.items():
        (tmp_path / "fetched" / name).write_bytes(data)
    check_seal(tmp_path / "fetched")
    assert (tmp_path / "fetched" / "README.md").read_text() == "# My model\n"


def test_a_model_in_memory_is_uploaded_as_it_is_saved(hub: Taken, model: JointEmbedding, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    model.push_to_hub("me/model", token="hf_given")
    assert hub.files == {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    assert hub.tokens == ["hf_given"]


def test_an_altered_folder_is_refused_before_the_hub_is_asked(
    hub: Taken, model: JointEmbedding, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with pytest.raises(UserError, match=r"config.json: altered or damaged"):
        push_to_hub(folder, "me/model")
    model.save_pretrained(folder)
    (folder / "secret.txt").write_text("mine")
    with pytest.raises(UserError, match=r"secret.txt: was put here after the folder was written"):
        push_to_hub(folder, "me/model")
    (folder / "secret.txt").unlink()
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(UserError, match=r"SHA256SUMS: missing"):
        push_to_hub(folder, "me/model")
    assert not hub.tokens


def test_a_name_that_is_none_is_refused(hub: Taken, model: JointEmbedding, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    for name in ("", "a b", "../x", "a/b/c", "/etc", "a//b", "-x", "hf:me/model", "me/\x1b"):
        with pytest.raises(UserError, match="is no name of a repository; write OWNER/NAME"):
            push_to_hub(tmp_path / "model", name)
    assert not hub.tokens


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (401, "no token that it takes; log in with: hf auth login, or set HF_TOKEN"),
        (403, "the account may not write there"),
        (404, "could not be uploaded to me/model"),
    ],
)
def test_what_the_hub_refuses_is_one_line(
    hub: Taken, model: JointEmbedding, tmp_path: Path, status: int, line: str
) -> None:
    model.save_pretrained(tmp_path / "model")
    hub.status = status
    with pytest.raises(UserError, match=line) as refused:
        push_to_hub(tmp_path / "model", "me/model", token="hf_given")
    assert "\n" not in str(refused.value)
    assert "hf_given" not in str(refused.value)


def test_without_a_network_one_line_says_what_to_do(
    model: JointEmbedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(UserError, match="copy the folder to a connected machine and push from there") as refused:
        push_to_hub(tmp_path / "model", "me/model")
    assert "\n" not in str(refused.value)
