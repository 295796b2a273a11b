"""A browser for reports, where there is one."""

from tests.page.conftest import chromium

__all__ = ["chromium"]
