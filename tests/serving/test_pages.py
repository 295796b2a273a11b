import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import rungwise
from rungwise.serving import mount_page

ROOMS = Path(rungwise.__file__).parent
PAGES = ["serving", "grading", "demo"]


def served(static: Path) -> TestClient:
    app = FastAPI()
    mount_page(app, static)
    return TestClient(app)


def test_the_page_its_files_and_the_shared_ones(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<title>Here</title>")
    (tmp_path / "static" / "own.js").write_text("export {};")
    (tmp_path / "secret").write_text("not for the page")
    client = served(tmp_path / "static")
    assert client.get("/").text == "<title>Here</title>"
    assert client.get("/static/own.js").text == "export {};"
    assert "--accent" in client.get("/common/looks.css").text
    for address in ("/static/../secret", "/static/%2e%2e/secret", "/common/../app.py", "/common/%2e%2e/app.py"):
        assert client.get(address).status_code == 404


@pytest.mark.parametrize("room", PAGES)
def test_all_that_a_page_and_its_modules_ask_for_is_there(room: str) -> None:
    static = ROOMS / room / "static"
    client = served(static)
    linked = set(re.findall(r'(?:href|src)="((?:static|common)/[^"]+)"', client.get("/").text))
    assert {"common/looks.css", "common/icon.svg"} < linked
    for module in static.glob("*.js"):
        for asked in re.findall(r'from ["\'](\.[^"\']+)["\']', module.read_text()):
            linked.add(asked.replace("../common/", "common/").replace("./", "static/"))
    missing = sorted(one for one in linked if client.get(f"/{one}").status_code != 200)
    assert not missing


@pytest.mark.parametrize("room", PAGES)
def test_colours_that_a_page_uses_are_defined(room: str) -> None:
    styles = [*(ROOMS / room / "static").glob("*.css"), ROOMS / "serving" / "common" / "looks.css"]
    texts = "".join(style.read_text() for style in styles)
    scripts = "".join(path.read_text() for path in (ROOMS / room / "static").glob("*.js"))
    defined = set(re.findall(r"(--[\w-]+)\s*:", texts)) | set(re.findall(r'setProperty\(["\'](--[\w-]+)', scripts))
    assert set(re.findall(r"var\((--[\w-]+)\)", texts)) <= defined
