"""What tests of the page expect of it; a module that imports this is skipped where playwright is not installed."""

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
