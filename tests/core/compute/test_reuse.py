import ctypes

import pytest

from rungwise.core.compute import _reuse as reuse
from rungwise.core.compute import freed_memory_kept, keep_compiled_products


class Library:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: dict[int, int] = {}
        self.trimmed = 0

    def mallopt(self, parameter: int, value: int) -> int:
        self.told[parameter] = value
        return 1

    def malloc_trim(self, left: int) -> int:
        self.trimmed += 1
        return 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    library = Library()
    monkeypatch.setattr(reuse, "_glibc", lambda: library)
    for name in reuse._SET_BY_USER:
        monkeypatch.delenv(name, raising=False)
    return library


def test_the_outermost_block_gives_memory_back(library: Library) -> None:
    with freed_memory_kept():
        assert library.told == reuse._KEPT
        with pytest.raises(KeyError), freed_memory_kept():
            raise KeyError
        assert (library.told, library.trimmed) == (reuse._KEPT, 0)
    assert (library.told, library.trimmed) == (reuse._USUAL, 1)


def test_what_the_user_has_set_stays(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=4")
    with freed_memory_kept():
        assert not library.told
    settings = {reuse._PRODUCTS: "7"}
    keep_compiled_products(settings)
    assert settings == {reuse._PRODUCTS: "7"}


def test_other_c_libraries_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse.platform, "libc_ver", lambda: ("musl", "1.2"))
    reuse._glibc.cache_clear()
    with freed_memory_kept():
        assert reuse._glibc() is None
    reuse._glibc.cache_clear()


def test_the_parameters_are_those_of_glibc() -> None:
    if (library := reuse._glibc()) is None:
        pytest.skip("glibc is not the C library here")
    assert isinstance(library, ctypes.CDLL)
    with freed_memory_kept():
        assert all(library.mallopt(parameter, value) == 1 for parameter, value in reuse._KEPT.items())
    assert all(library.mallopt(parameter, value) == 1 for parameter, value in reuse._USUAL.items())
