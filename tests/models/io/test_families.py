"""Which class reads a folder, and that only that one is imported; see also test_saving and test_folder.

Also tests rungwise.models._loading, rungwise.models.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rungwise.models import SavedModel, family, without_torch
from rungwise.models.export._onnx_model import OnnxModel
from rungwise.models.io import StoredModel


def test_families_are_found_by_their_kinds() -> None:
    assert family("onnx") is OnnxModel
    assert issubclass(family("vse"), SavedModel)
    assert issubclass(family("vse"), StoredModel)


def test_a_class_that_names_no_kind_takes_nobody_s_place() -> None:
    class Another(OnnxModel):
        """Of the kind of its base."""

    assert family("onnx") is OnnxModel
    assert Another.kind == "onnx"


@pytest.mark.parametrize("kind", ["bag of words", None, 3, [], ""])
def test_kinds_that_there_are_not(kind: object) -> None:
    with pytest.raises(ValueError, match=r"no model family .*; there are .*onnx.*vse"):
        family(kind)


def test_folders_of_graphs_go_without_torch(tmp_path: Path) -> None:
    assert not without_torch(tmp_path)
    (tmp_path / "image.onnx").touch()
    assert without_torch(tmp_path)
    assert without_torch(str(tmp_path))


@pytest.mark.slow
def test_the_family_of_exports_imports_no_torch() -> None:
    code = "import sys; from rungwise.models import family; family('onnx'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
