"""Files that change are noticed: a real folder is watched."""

from pathlib import Path

from rungwise.index.watching import changes_below


def test_changes_are_noticed_but_for_hidden_ones_and_our_own(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    noticed = changes_below(tmp_path, tmp_path / "index")
    assert next(noticed) is False
    (tmp_path / "index" / "index.json").touch()
    (tmp_path / ".hidden").touch()
    assert next(noticed) is False
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.jpg").touch()
    assert next(noticed) is True
    noticed.close()


def test_a_folder_that_was_away_is_watched_again(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    noticed = changes_below(photos, tmp_path / "index")
    assert next(noticed) is False
    photos.rename(tmp_path / "away")
    (tmp_path / "away").rename(photos)
    assert True in [next(noticed) for _ in range(3)]
    (photos / "a.jpg").touch()
    assert True in [next(noticed) for _ in range(2)]
    noticed.close()
