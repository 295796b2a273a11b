from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.calibration import Calibration
from rungwise.core import UserError
from rungwise.core.disk import check_seal, write_seal
from rungwise.core.disk.locks import LOCKS
from rungwise.models.io import ModelFolder, keep_calibration

PLAIN = Calibration.unsupervised()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    write_seal(tmp_path)
    return tmp_path


def test_a_calibration_lies_under_the_seal_of_its_model(folder: Path) -> None:
    assert ModelFolder.open(folder).calibration_file is None
    for source in ("first", "second"):
        path = keep_calibration(folder, replace(PLAIN, source=source))
        check_seal(folder)
        assert Calibration.load(path).source == source
    assert ModelFolder.open(folder).calibration_file == path
    path.write_text("{}")
    with pytest.raises(UserError, match=r"calibration\.json: altered"):
        check_seal(folder)


def test_a_folder_without_a_seal_gets_none(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()
    keep_calibration(folder, PLAIN)
    assert {file.name for file in folder.iterdir()} - LOCKS == {"config.json", "calibration.json"}


def test_a_link_that_leaves_the_folder_is_refused(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "calibration.json"
    PLAIN.save(other)
    (folder / "calibration.json").symlink_to(other)
    with pytest.raises(UserError, match="leaves the model folder"):
        _ = ModelFolder.open(folder).calibration_file
