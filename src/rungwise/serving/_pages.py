"""Pages of applications: the page at ``/``, its own files, and the files that all pages share.

A browser asks for one script and one style of a page, and keeps them: their names hold the hash of their content. They
are put together from the modules when the server starts, and sent compressed.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rungwise.core import digest_of_parts

_COMMON = Path(__file__).parent / "common"
_ASKED_ANEW, _FOR_EVER = "private, no-cache", "private, max-age=31536000, immutable"

_STYLES = re.compile(r'(?:<link rel="stylesheet" href="[^"]+">\n)+')
_SCRIPT = re.compile(r'(?<=<script src=")[^"]+(?=" type="module">)')
_ICON = re.compile(r'(?<=<link rel="icon" href=")[^"]+')
_LINKED = re.compile(r'href="([^"]+)"')
_FROM = re.compile(r"""^(import|export) (\{ [^{}\n]* \}|\* as \w+) from ["'](\.[^"'\n]+)["'];$""", re.MULTILINE)
_DECLARED = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_LISTED = re.compile(r"^export \{ ([\w, ]+) \};$", re.MULTILINE)


class _PageFile:
    """A file of a page, as it is and compressed.

    Args:
        content: Content of the file.
        kind: Its media type.
    """

    def __init__(self, content: bytes, kind: str) -> None:
        self.tag = digest_of_parts([content])[:20]
        self._content, self._kind = content, kind
        self._compressed = gzip.compress(content, 9, mtime=0)

    def answer(self, request: Request, control: str) -> Response:
        """Answer with the file, or with status 304 if the browser has it; ``control`` says how long it may keep it."""
        headers = {"ETag": f'"{self.tag}"', "Cache-Control": control, "Vary": "Accept-Encoding"}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if not takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(self._content, headers=headers, media_type=self._kind)
        return Response(self._compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self._kind)


def mount_page(app: FastAPI, static: Path) -> None:
    """Serve a page: ``index.html`` at ``/``, the folder's files below ``/static``, the shared ones below ``/common``.

    The shared files are the colours and base rules (``looks.css``), the making of elements (``elements.js``) and the
    icon. The page that is sent names one script and one style below ``/static/kept`` in place of the files that
    ``index.html`` names. ``static`` is the folder that holds ``index.html``.
    """
    page, kept = _put_together(static)

    @app.get("/", include_in_schema=False)
    async def start(request: Request) -> Response:
        return page.answer(request, _ASKED_ANEW)

    @app.get("/static/kept/{name}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        if name not in kept:
            raise HTTPException(404, "this file is of another version of the page; load the page again")
        return kept[name].answer(request, _FOR_EVER)

    app.mount("/static", StaticFiles(directory=static))
    app.mount("/common", StaticFiles(directory=_COMMON))


def takes_gzip(accepted: str) -> bool:
    """Whether a client takes answers that are compressed with gzip, by its header ``Accept-Encoding``.

    >>> takes_gzip("br, gzip"), takes_gzip("gzip;q=0"), takes_gzip("")
    (True, False, False)
    """
    for one in accepted.lower().split(","):
        name, _, quality = one.partition(";")
        if name.strip() == "gzip":
            return quality.strip().rstrip("0").rstrip(".") not in ("q=", "q=0")
    return False


def page_files(page: Path) -> dict[str, bytes]:
    """The files of a page that any web server can send, by name: ``index.html``, one script, one style and the icon.

    Args:
        page: The HTML of the page. It links to ``FOLDER/FILE`` for files in folders beside its own, and to
            ``common/FILE`` for those that all pages share.
    """
    files: dict[str, bytes] = {}

    def keep(content: bytes, ending: str, kind: str) -> str:
        files[f"page.{ending}"] = content
        return f"page.{ending}"

    # From a file of the disk, browsers load no modules.
    html = _linking(page, keep).replace('" type="module">', '" defer>')
    return {"index.html": html.encode(), **files}


def _put_together(static: Path) -> tuple[_PageFile, Mapping[str, _PageFile]]:
    """The page, and the files that it names, by their names below ``/static/kept``."""
    kept: dict[str, _PageFile] = {}

    def keep(content: bytes, ending: str, kind: str) -> str:
        file = _PageFile(content, kind)
        kept[f"{file.tag}.{ending}"] = file
        return f"static/kept/{file.tag}.{ending}"

    return _PageFile(_linking(static / "index.html", keep).encode(), "text/html"), kept


def _linking(page: Path, keep: Callable[[bytes, str, str], str]) -> str:
    """The HTML of a page, which names what ``keep`` says in place of its files."""

    def path(linked: str) -> Path:
        folder, _, name = linked.partition("/")
        return (_COMMON if folder == "common" else page.parent.parent / folder) / name

    def styles(found: re.Match[str]) -> str:
        content = b"".join(path(one).read_bytes() for one in _LINKED.findall(found[0]))
        return f'<link rel="stylesheet" href="{keep(content, "css", "text/css")}">\n'

    html = _STYLES.sub(styles, page.read_text(encoding="utf-8"))
    html = _SCRIPT.sub(lambda found: keep(one_script(path(found[0])).encode(), "js", "text/javascript"), html)
    return _ICON.sub(lambda found: keep(path(found[0]).read_bytes(), "svg", "image/svg+xml"), html)


def one_script(path: Path) -> str:
    """One script that does what a module does with all that it imports; each module becomes a function of its own.

    Modules import and export as ours do, each in one line: ``import { a, b } from "./c.js";``, ``import * as c from``,
    ``export { a } from``, ``export { a };``, and ``export`` before a function, a class or a constant.

    Args:
        path: Path of the module; ``../common/`` in an import is the folder that all pages share.

    Raises:
        ValueError: If modules import each other in a circle, or one imports or exports in another way.
    """
    parts: list[str] = []
    names: dict[Path, str] = {}
    _add_module(path, parts, names, ())
    return "".join(parts)


def _add_module(path: Path, parts: list[str], names: dict[Path, str], importing: tuple[Path, ...]) -> str:
    """Add a module behind those that it imports, unless it is there; returns the name of what it exports."""
    if path in names:
        return names[path]
    if path in importing:
        raise ValueError(f"{path.name} imports itself through {importing[-1].name}")
    exported: list[str] = []

    def taken(found: re.Match[str]) -> str:
        verb, what, source = found.groups()
        file = _COMMON / source.removeprefix("../common/") if source.startswith("../common/") else path.parent / source
        given = _add_module(file.resolve(), parts, names, (*importing, path))
        if verb == "export":
            exported.extend(name.strip() for name in what.strip("{} ").split(","))
        return f"const {what.removeprefix('* as ')} = {given};"

    text = _FROM.sub(taken, path.read_text(encoding="utf-8"))
    exported += _DECLARED.findall(text)
    exported += [name.strip() for found in _LISTED.findall(text) for name in found.split(",")]
    text = _LISTED.sub("", _DECLARED.sub("", text))
    if other := re.search(r"^(?:import|export|await)\b.*", text, re.MULTILINE):
        raise ValueError(f"{path.name}: cannot be put together with others: {other[0]}")
    names[path] = name = f"module{len(names)}"
    parts.append(f"const {name} = (() => {{\n{text}\nreturn {{ {', '.join(exported)} }};\n}})();\n")
    return name
