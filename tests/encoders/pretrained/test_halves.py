import shutil
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.encoders.pretrained._halves import open_image, open_text
from tests.published import Published

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache on a machine without a network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def put(model: Path, name: str, hub: Path) -> None:
    """A model as the hub's client keeps it: files by their hashes, and links to them."""
    place = hub / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(COMMIT)
    (place / "blobs").mkdir()
    for number, file in enumerate(sorted(one for one in model.rglob("*") if one.is_file())):
        link = place / "snapshots" / COMMIT / file.relative_to(model)
        link.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place / "blobs" / f"{number:064x}")
        link.symlink_to(place / "blobs" / f"{number:064x}")


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("clip", "hf:someone/clip"),
        ("siglip2", "hf:someone/siglip2"),
        ("open_clip", "open_clip:someone/model"),
        ("sentence", "st:someone/model"),
        ("old_sentence", "st:sentence-transformers/clip-ViT-B-32"),
        ("old_sentence", "st:clip-ViT-B-32"),
    ],
)
def test_a_model_of_the_cache_is_read_without_a_network(
    kind: str, source: str, hub: Path, published: Published
) -> None:
    name = source.partition(":")[2]
    put(getattr(published, kind), name if "/" in name else f"sentence-transformers/{name}", hub)
    assert open_image(source).tower.width == open_text(source).tower.width


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ("hf:google/siglip2-base-patch32-256", "hf download google/siglip2-base-patch32-256 --include '*.json' "),
        ("st:someone/model", "hf download someone/model --include '*.json' "),
        ("st:clip-ViT-B-32", "hf download sentence-transformers/clip-ViT-B-32 --include '*.json' "),
        ("open_clip:someone/model", "hf download someone/model --include open_clip_config.json "),
        ("open_clip:ViT-B-32/laion2b_s34b_b79k", "hf download laion/CLIP-ViT-B-32-laion2B-s34B-b79K --include "),
    ],
)
def test_what_is_neither_here_nor_to_be_had_comes_with_the_command_that_fetches_it(
    source: str, command: str, hub: Path
) -> None:
    with pytest.raises(UserError) as refused:
        open_image(source)
    said = str(refused.value)
    assert command in said
    assert "on a connected machine run:" in said
    folder = said.rpartition(":")[2]
    assert (
        f"--local-dir {folder}; then copy that folder here and give it as {source.partition(':')[0]}:{folder}" in said
    )
    assert "\n" not in said


def test_a_folder_that_is_not_there_is_refused_without_asking_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("asked the hub"))
    with pytest.raises(UserError, match=r"hf:\./nowhere: no such folder; correct the path"):
        open_image("hf:./nowhere")


def test_a_side_needs_a_source() -> None:
    with pytest.raises(UserError, match="write hf:, open_clip: or st:"):
        open_text("some/folder")
