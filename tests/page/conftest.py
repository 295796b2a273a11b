"""A browser, and servers of ours with small indexes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rungwise.data import ImageCaptions
from rungwise.index import Index
from rungwise.serving import Reranker, ServerSettings, background
from tests.page.collection import COLOURS, PaletteModel, collection, rows_of_features
from tests.pointing_model import PointingModel
from tests.serving.conftest import PATIENT

FOR_EVER = 2**31 - 1
"""Milliseconds, the most that playwright takes: only the backstop of the tests ends what never comes. 0 means that to
actions, but not to ``expect``."""
TOKEN = "open-sesame-8"


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """A browser of the system's; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    program = next((path for path in found if path), None)
    if program is None:
        pytest.skip("there is no Chromium here")
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, timeout=FOR_EVER)
        except sync_api.Error as error:
            pytest.skip(f"Chromium does not start: {error}")
        sync_api.expect.set_options(timeout=FOR_EVER)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("squares")
    return Index.build(collection(folder / "pictures"), PaletteModel(), folder / "index")


@pytest.fixture(scope="package")
def site(index: Index) -> Iterator[str]:
    """Address of a server with squares."""
    with background(index, PaletteModel(), settings=ServerSettings(limits=PATIENT)) as address:
        yield address


@pytest.fixture(scope="package")
def why_site(index: Index) -> Iterator[str]:
    """Address of a server with squares that can say why."""
    with background(
        index, PaletteModel(), reranker=Reranker(PointingModel(COLOURS)), settings=ServerSettings(limits=PATIENT)
    ) as address:
        yield address


@pytest.fixture(scope="package")
def bare_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server with rows of features, without captions and files."""
    index = Index.build(rows_of_features(), PaletteModel(), tmp_path_factory.mktemp("rows") / "index")
    with background(index, PaletteModel(), settings=ServerSettings(limits=PATIENT)) as address:
        yield address


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """Servers of one test, which end after its pages: a page complains of a picture that it cannot load."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def new_index_site(tmp_path: Path, servers: ExitStack) -> Callable[..., str]:
    """Serves an index of what a function makes in a folder."""

    def served(make: Callable[[Path], ImageCaptions]) -> str:
        index = Index.build(make(tmp_path / "pictures"), PaletteModel(), tmp_path / "index")
        return servers.enter_context(background(index, PaletteModel(), settings=ServerSettings(limits=PATIENT)))

    return served


@pytest.fixture
def new_page(chromium: Any, servers: ExitStack) -> Iterator[Callable[..., Any]]:
    """Opens pages; what a page complains of, and what it asks of others than our server, fails the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def opened(**settings: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 800}, **settings})
        context.set_default_timeout(FOR_EVER)
        contexts.append(context)
        page = context.new_page()
        page.expected = []  # parts of complaints that a test brings about
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _ours(request.url) or complaints.append(f"asks for {request.url}"))

        def heard(message: Any) -> None:
            if message.type in ("error", "warning") and not any(part in message.text for part in page.expected):
                complaints.append(message.text)

        page.on("console", heard)
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")  # answers that were still being changed for a test
        context.close()
    assert not complaints


def _ours(url: str) -> bool:
    return url.startswith(("http://127.0.0.1", "blob:http://127.0.0.1", "data:"))


@pytest.fixture
def page(new_page: Callable[..., Any]) -> Any:
    return new_page()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture that is not in the index: mostly blue."""
    from PIL import Image

    path = tmp_path / "mine.png"
    picture = Image.new("RGB", (90, 60), (58, 110, 200))
    picture.paste((214, 69, 65), (5, 5, 20, 20))
    picture.save(path)
    return path
