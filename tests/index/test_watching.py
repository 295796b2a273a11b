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
