from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.index import ExactStore
from rungwise.index.stores import create_store, open_store
from rungwise.similarity import Cosine


def test_what_was_made_is_opened(tmp_path: Path) -> None:
    create_store("exact", tmp_path, "pictures", 2, Cosine(), "image").upsert(["a"], [[1, 0]])
    opened = open_store("exact", tmp_path, "pictures")
    assert isinstance(opened, ExactStore)
    assert opened.count() == 1
    assert opened.about().exact


def test_an_unknown_kind_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'cloud'.*exact"):
        open_store("cloud", tmp_path, "pictures")  # type: ignore[arg-type]
