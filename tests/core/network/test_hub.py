from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from rungwise.core import UserError
from rungwise.core.network import hub_folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str], str]]:
    """What the hub was asked for; it knows every name, and has nothing."""
    calls: list[tuple[str, list[str], str]] = []

    def download(name: str, allow_patterns: list[str], revision: str) -> str:
        calls.append((name, allow_patterns, revision))
        raise LocalEntryNotFoundError("no connection\nand more lines")

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", lambda *_, **__: SimpleNamespace(sha="c0ffee"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    return calls


def unanswered(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def ask(self: object, name: str, *, timeout: float) -> None:
        assert 0 < timeout <= 30
        raise error

    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", ask)


@pytest.mark.parametrize(
    "name",
    ["./model", "../model", "/no/model", "~/model", "runs/vsepp/model", "model/", "", ".", "a\\b", "C:\\model", "-x/y",
     "runs/model", "a//b", "hf-hub:a/b", "a b/c", "a/b\n"],
)  # fmt: skip
def test_what_looks_like_a_path_is_refused_without_asking_the_network(
    name: str, asked: list[tuple[str, list[str], str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    with pytest.raises(UserError, match="no such folder; correct the path"):
        hub_folder(name, ["*.json"])
    assert asked == []


def test_only_the_files_that_are_wanted_are_asked_for(asked: list[tuple[str, list[str], str]]) -> None:
    with pytest.raises(UserError, match=r"^someone/model: no such folder, and no model .* \(no connection\); "):
        hub_folder("someone/model", ("*.json", "model.safetensors"))
    assert asked == [("someone/model", ["*.json", "model.safetensors"], "c0ffee")]


def test_what_cannot_be_fetched_comes_with_the_command_that_fetches_it(asked: list[tuple[str, list[str], str]]) -> None:
    with pytest.raises(UserError) as refused:
        hub_folder("someone/model", ("*.json", "model.safetensors"), prefix="hf:")
    assert str(refused.value).endswith(
        "on a connected machine run: hf download someone/model --include '*.json' --include model.safetensors"
        " --local-dir model; then copy that folder here and give it as hf:model"
    )


def test_an_error_of_the_library_below_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class ProxyError(Exception):
        """As the libraries of the network have it, which are no dependencies."""

    unanswered(monkeypatch, ProxyError("407 Proxy Authentication Required"))
    with pytest.raises(UserError, match=r"could be fetched \(407 Proxy Authentication Required\)"):
        hub_folder("someone/absent", [])


def test_a_name_that_the_hub_refuses_has_one_line() -> None:
    with pytest.raises(UserError, match="could be fetched"):
        hub_folder("a" * 200, [])


def test_where_the_hub_does_not_answer_in_time_the_copy_that_is_here_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(name: str, *, allow_patterns: list[str], local_files_only: bool) -> str:
        assert local_files_only
        return str(tmp_path / name)

    unanswered(monkeypatch, TimeoutError("timed out"))
    monkeypatch.setattr("huggingface_hub.snapshot_download", kept)
    assert hub_folder("model", []) == tmp_path / "model"


def test_the_folder_is_that_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(tmp_path / name))
    assert hub_folder("model", []) == tmp_path / "model"
