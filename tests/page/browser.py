"""What tests of the page expect of it; a module that imports this is skipped where playwright is not installed."""

from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


def expect_drawn(picture: Any, width: int) -> None:
    """Waits until a picture is there, `width` pixels wide.

    `decode()` of an `img` is no way to wait: it fails where the page meanwhile gives the `img` another address, as it
    does when the large picture takes the place of the small one.
    """
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("complete", True)
    expect(picture).to_have_js_property("naturalWidth", width)


def scroll_to_the_end(page: Any) -> None:
    """Scrolls with every frame until the page says that there is no more."""
    page.wait_for_function(
        "() => (scrollTo(0, document.documentElement.scrollHeight), document.querySelector('#end').textContent)"
    )


def expect_told(page: Any) -> None:
    """Waits until the server has told the page of the collection: the row for grading then moves what was found."""
    expect(page.locator("#about")).not_to_be_empty()


def settle(page: Any) -> None:
    """Waits until a page that was scrolled has looked at what is in sight, and would have asked for more."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )
