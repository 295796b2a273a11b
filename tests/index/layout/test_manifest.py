from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.index import Manifest
from rungwise.index.layout import manifest as storage


def test_what_a_manifest_says_comes_back(tmp_path: Path) -> None:
    manifest = Manifest("Bilder", "9a3f", "hub/ä", 8, skipped=3)
    storage.write_manifest(tmp_path, manifest)
    assert storage.read_manifest(tmp_path) == manifest
    assert storage.is_index(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not the description of a 'rungwise-index'"),
        ('{"format": "rungwise-index", "version": 9}', "of version 9"),
        ('{"format": "rungwise-index", "version": 1, "name": "pets"}', "checksums differ"),
    ],
)
def test_a_damaged_manifest_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(UserError, match=message) as error:
        storage.read_manifest(tmp_path)
    assert "\n" not in str(error.value)


def test_only_an_index_is_replaced_and_only_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with storage.replacing_folder(folder, overwrite=False) as draft:
        (draft / "pictures").mkdir()
        (draft / "pictures" / "store.json").write_text("{}")
    with pytest.raises(UserError, match="overwrite=True"), storage.replacing_folder(folder, overwrite=False):
        pass
    with storage.replacing_folder(folder, overwrite=True) as draft:
        (draft / "index.json").write_text("{}")
    assert [file.name for file in folder.iterdir()] == ["index.json"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"notes\.txt"), storage.replacing_folder(folder, overwrite=True):
        pass
