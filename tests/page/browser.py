"""What tests of the page expect of it; a module that imports this is skipped where playwright is not installed."""

import time
from typing import Any

import pytest

SCROLLING = 20  # seconds for all pictures to come, on a busy machine

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
    """Scrolls until the page says that there is no more."""
    patience = time.monotonic() + SCROLLING
    while not page.locator("#end").inner_text() and time.monotonic() < patience:
        page.mouse.wheel(0, 6000)
        page.wait_for_timeout(50)
