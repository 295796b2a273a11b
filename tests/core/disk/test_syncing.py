import errno
import os
import stat

import pytest

from rungwise.core.disk import sync_file, sync_folder


def test_a_file_gets_its_mode_and_goes_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    path = tmp_path / "a"
    path.touch(0o600)
    sync_file(path, 0o640)
    sync_folder(tmp_path)
    assert synced == [path.stat().st_ino, tmp_path.stat().st_ino]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_file_systems_that_sync_no_folders_are_taken_as_they_are(tmp_path, monkeypatch):
    def refuse(code: int) -> None:
        def fsync(handle: int) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fsync)

    refuse(errno.EINVAL)
    sync_folder(tmp_path)
    refuse(errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        sync_folder(tmp_path)
