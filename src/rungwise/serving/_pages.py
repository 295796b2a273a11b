"""Pages of applications: the page at ``/``, its own files, and the files that all pages share."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

_COMMON = Path(__file__).parent / "common"


def mount_page(app: FastAPI, static: Path) -> None:
    """Serve a page: ``index.html`` at ``/``, the folder's files below ``/static``, the shared ones below ``/common``.

    The shared files are the colours and base rules (``looks.css``), the making of elements (``elements.js``) and the
    icon. ``static`` is the folder that holds ``index.html``.
    """

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(static / "index.html")

    app.mount("/static", StaticFiles(directory=static))
    app.mount("/common", StaticFiles(directory=_COMMON))
