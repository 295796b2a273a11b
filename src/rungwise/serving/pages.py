"""What every application with a page does: the page at ``/``, its own files, and the files that all pages share."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

_COMMON = Path(__file__).parent / "common"


def mount_page(app: FastAPI, static: Path) -> None:
    """Serve a page: ``index.html`` at ``/``, the folder's files below ``/static``, the shared ones below ``/common``.

    Shared are the colours and base rules (``looks.css``), the making of elements (``elements.js``) and the icon.

    Args:
        app: That gets the page.
        static: Folder of the page; it holds ``index.html``.

    >>> app = FastAPI()
    >>> mount_page(app, Path("."))
    >>> [route.path for route in app.routes][-3:]
    ['/', '/static', '/common']
    """

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(static / "index.html")

    app.mount("/static", StaticFiles(directory=static))
    app.mount("/common", StaticFiles(directory=_COMMON))
