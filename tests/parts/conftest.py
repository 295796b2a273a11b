import pytest

from rungwise.core.compute import _cluster
from rungwise.parts import _named_modules


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test names is not recorded in the runs of others, nor sent to their workers."""
    for name in ("_imported", "_files", "_owned"):
        monkeypatch.setattr(_named_modules, name, dict(getattr(_named_modules, name)))
    monkeypatch.setattr(_cluster, "_whole", list(_cluster._whole))
