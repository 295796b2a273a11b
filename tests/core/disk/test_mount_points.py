from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.disk import _mount_points as mount_points
from rungwise.core.disk._mount_points import is_filled, is_mount_point, put_back
from rungwise.core.disk.folders import replacing_folder
from rungwise.core.disk.staging import is_draft, sweep

PARTS = {"index.json", "vectors.npy", "rows/*.jsonl"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One that is filled, as a mount point is: the process works in it."""
    place = tmp_path / "index"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def written(folder: Path, text: str) -> None:
    with replacing_folder(folder, PARTS, "an index", header="index.json") as draft:
        assert draft.parent.parent == folder
        for name in ("index.json", "vectors.npy"):
            (draft / name).write_text(text)
        (draft / "rows").mkdir()
        (draft / f"rows/{text}.jsonl").write_text(text)


def state(folder: Path) -> dict[str, str]:
    return {
        one.relative_to(folder).as_posix(): one.read_text()
        for one in folder.rglob("*")
        if one.is_file() and not any(is_draft(part) for part in one.relative_to(folder).parts)
    }


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def whole(text: str) -> dict[str, str]:
    return {"index.json": text, "vectors.npy": text, f"rows/{text}.jsonl": text}


def without_seal(folder: Path) -> dict[str, str]:
    return {name: text for name, text in state(folder).items() if name != "SHA256SUMS"}


def test_a_folder_that_cannot_be_replaced_is_filled_and_filled_again(folder):
    number = folder.stat().st_ino
    for text in ("one", "two"):
        written(folder, text)
        assert without_seal(folder) == whole(text)
    assert folder.stat().st_ino == number
    assert names(folder) == ["SHA256SUMS", "index.json", "rows", "vectors.npy"]
    assert names(folder.parent) == ["index"]


def test_the_header_goes_first_and_comes_last(folder, monkeypatch):
    written(folder, "one")
    moved, rename = [], Path.rename

    def note(self: Path, target: Path) -> Path:
        if folder in (self.parent, Path(target).parent):
            moved.append((self.name, "out" if self.parent == folder else "in"))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", note)
    written(folder, "two")
    assert moved[0] == ("index.json", "out")
    assert moved[-1] == ("index.json", "in")
    assert len(moved) == 8


def test_wherever_it_is_interrupted_the_old_state_comes_back_to_whoever_writes_next(folder, monkeypatch):
    """As after a kill: nothing is cleaned up until somebody sweeps, and no moment shows a folder with a header that is
    half old and half new."""
    rename = Path.rename
    for step in range(1, 40):
        written(folder, "one")
        left = [step]

        def stop(self: Path, target: Path, left: list[int] = left) -> Path:
            left[0] -= 1
            if left[0] <= 0:
                raise KeyboardInterrupt
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", stop)
        monkeypatch.setattr("rungwise.core.disk.staging._remove", lambda folder: None)
        try:
            written(folder, "two")
        except KeyboardInterrupt:
            ended = False
        else:
            ended = True
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        found = without_seal(folder)
        if "index.json" in found:
            assert found in (whole("one"), whole("two"))
        sweep(folder)
        assert without_seal(folder) == whole("two" if ended else "one")
        assert not any(map(is_draft, names(folder)))
        if ended:
            break
    else:
        pytest.fail("it never comes to its end")
    assert step > 8


def test_a_strangers_file_is_neither_moved_nor_removed(folder):
    written(folder, "one")
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"holds 'thesis\.tex'"):
        written(folder, "two")
    assert without_seal(folder) == {**whole("one"), "thesis.tex": "years of work"}


def test_a_plan_from_elsewhere_moves_nothing_that_it_did_not_bring(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    draft = tmp_path / ".0123456789abcdef.partial"
    (draft / "index").mkdir(parents=True)
    (draft / "before").mkdir()
    for new in ('{"mine.txt": 1}', '{"../mine.txt": 1}', '["mine.txt"]'):
        (draft / "filling.json").write_text(f'{{"content": "index", "header": "index.json", "new": {new}}}')
        put_back(draft, tmp_path)
        assert (tmp_path / "mine.txt").read_text() == "mine"
    sweep(tmp_path)
    assert names(tmp_path) == ["mine.txt"]


def test_what_is_mounted_is_read_from_the_system(tmp_path, monkeypatch):
    table, place = tmp_path / "mountinfo", tmp_path / "a b"
    place.mkdir()
    table.write_text(f"36 35 98:0 / {str(place).replace(' ', chr(92) + '040')} rw - ext4 /dev/sda rw\n")
    assert not is_mount_point(place)
    monkeypatch.setattr(mount_points, "_MOUNTS", table)
    assert is_mount_point(place)
    assert is_filled(place)
    assert not is_mount_point(tmp_path)
    monkeypatch.setattr(mount_points, "_MOUNTS", tmp_path / "nowhere")
    assert not is_mount_point(place)


def test_what_a_file_system_keeps_at_its_root_stays(tmp_path, monkeypatch):
    place, table = tmp_path / "volume", tmp_path / "mountinfo"
    (place / "lost+found").mkdir(parents=True)
    with pytest.raises(UserError, match=r"holds 'lost\+found'"):
        written(place, "one")
    table.write_text(f"36 35 98:0 / {place} rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(mount_points, "_MOUNTS", table)
    for text in ("one", "two"):
        written(place, text)
        assert without_seal(place) == whole(text)
    assert (place / "lost+found").is_dir()
