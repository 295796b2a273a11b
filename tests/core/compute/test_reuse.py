import platform
import resource

import pytest

from rungwise.core.compute import _reuse as reuse
from rungwise.core.compute import freed_memory_kept, keep_compiled_products

PAGE = reuse._LARGE_PAGE


class Library:
    """A C library whose heap grows as it is told, and which notes what it is asked."""

    def __init__(self, grows: bool = True) -> None:
        self.told: dict[int, int] = {}
        self.trimmed = 0
        self.grows, self.end = grows, PAGE + 1
        self.held: list[int] = []
        self.advised: list[tuple[int, int, int]] = []

    def mallopt(self, parameter: int, value: int) -> int:
        self.told[parameter] = value
        return 1

    def malloc_trim(self, left: int) -> int:
        self.trimmed += 1
        return 1

    def sbrk(self, more: int) -> int:
        return self.end

    def malloc(self, size: int) -> int:
        if self.grows:
            self.end += self.told[reuse._TOP_PAD] // 8
        self.held.append(self.end)
        return self.end

    def free(self, place: int) -> None:
        self.held.remove(place)

    def madvise(self, begin: int, size: int, what: int) -> int:
        self.advised.append((begin, size, what))
        return 0


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
    assert (library.told, library.trimmed) == (reuse._AFTER, 1)


def test_what_the_heap_grew_by_is_asked_for_in_large_pages(library: Library) -> None:
    with freed_memory_kept(), freed_memory_kept():
        pass
    assert library.advised == [(2 * PAGE, reuse._ROOM - PAGE, reuse._MADV_HUGEPAGE)]
    assert not library.held


def test_a_heap_that_does_not_grow_is_left_as_it_is(library: Library) -> None:
    library.grows = False
    with freed_memory_kept():
        assert not library.advised
    assert library.told == reuse._AFTER


def test_a_process_of_limited_memory_takes_no_room_in_advance(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reuse, "memory_limit", lambda: ("ulimit -v", 1 << 32))
    with freed_memory_kept():
        assert (library.told, library.advised) == (reuse._KEPT, [])


def test_what_the_user_has_set_stays(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=4")
    with freed_memory_kept():
        assert not library.told
    settings = {reuse._PRODUCTS: "7"}
    keep_compiled_products(settings)
    assert settings == {reuse._PRODUCTS: "7"}


def test_other_c_libraries_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse.platform, "libc_ver", lambda: ("musl", "1.2"))
    assert reuse._glibc.__wrapped__() is None
    monkeypatch.setattr(reuse, "_glibc", lambda: None)
    with freed_memory_kept():
        pass


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc is not the C library here")
def test_a_block_that_is_freed_and_asked_for_again_costs_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in reuse._SET_BY_USER:
        monkeypatch.delenv(name, raising=False)

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(8):
            bytearray(24 << 20)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with freed_memory_kept():
        faults()
        assert faults() < 1000  # one block has 6,144 pages
