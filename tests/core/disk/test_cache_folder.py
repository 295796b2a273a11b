import warnings
from pathlib import Path

import pytest

from rungwise.core import RungwiseWarning, UserError
from rungwise.core.disk import _cache_folder as cache_folder
from rungwise.core.disk import default_cache, usable_cache


def test_the_users_choice_counts(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path))
    assert default_cache() == tmp_path


def test_without_one_it_is_the_systems_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNGWISE_CACHE", "")
    monkeypatch.setattr("rungwise.core.disk._cache_folder.user_cache_path", lambda name: Path("system") / name)
    assert default_cache() == Path("system/rungwise")


@pytest.fixture
def _untried():
    cache_folder._try.cache_clear()
    cache_folder._instead.cache_clear()
    yield
    cache_folder._instead.cache_clear()


@pytest.mark.usefixtures("_untried")
def test_a_folder_that_was_named_is_an_order(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"RUNGWISE_CACHE=.*file: a file stands .*, or unset RUNGWISE_CACHE"):
        usable_cache()
    with pytest.raises(UserError, match="file: a file stands"):
        usable_cache(tmp_path / "file")
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))
    assert usable_cache() == tmp_path / "cache"
    assert usable_cache(tmp_path / "mine") == tmp_path / "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"], "a folder is made when something is kept"


@pytest.mark.usefixtures("_untried")
@pytest.mark.parametrize("place", ["file", "~"])
def test_the_systems_folder_is_done_without_and_that_is_said_once(monkeypatch, tmp_path, place):
    (tmp_path / "file").touch()
    found = tmp_path / "file" / "rungwise" if place == "file" else Path("~/.cache/rungwise")
    monkeypatch.delenv("RUNGWISE_CACHE", raising=False)
    monkeypatch.setattr("rungwise.core.disk._cache_folder.user_cache_path", lambda name: found)
    with pytest.warns(RungwiseWarning, match="nothing is cached beyond this run; RUNGWISE_CACHE names another folder"):
        instead = usable_cache()
    assert instead.is_dir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert usable_cache() == instead
