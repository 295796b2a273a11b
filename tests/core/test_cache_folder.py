from pathlib import Path

from rungwise.core.cache_folder import default_cache


def test_the_users_choice_counts(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path))
    assert default_cache() == tmp_path


def test_without_one_it_is_the_systems_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNGWISE_CACHE", "")
    monkeypatch.setattr("rungwise.core.cache_folder.user_cache_path", lambda name: Path("system") / name)
    assert default_cache() == Path("system/rungwise")
