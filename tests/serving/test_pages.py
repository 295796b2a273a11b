import gzip
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import rungwise
from rungwise.serving import mount_page
from rungwise.serving._pages import one_script

ROOMS = Path(rungwise.__file__).parent
PAGES = ["serving", "grading", "demo"]


def served(static: Path) -> TestClient:
    app = FastAPI()
    mount_page(app, static)
    return TestClient(app)


def linked(client: TestClient) -> list[str]:
    return re.findall(r'(?:href|src)="((?:static|common)/[^"]+)"', client.get("/").text)


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
    for name in ("own.js", "%00", ""):
        assert client.get(f"/static/kept/{name}").status_code == 404


@pytest.mark.parametrize("room", PAGES)
def test_a_page_asks_for_one_script_one_style_and_the_icon_and_keeps_them(room: str) -> None:
    client = served(ROOMS / room / "static")
    files = linked(client)
    assert sorted(one.rpartition(".")[2] for one in files) == ["css", "js", "svg"]
    for one in files:
        answer = client.get(f"/{one}")
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert answer.headers["content-encoding"] == "gzip"
        plain = client.get(f"/{one}", headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.content == answer.content
    assert client.get("/static/kept/" + "0" * 20 + ".js").status_code == 404


@pytest.mark.parametrize("room", PAGES)
def test_a_page_that_the_browser_has_is_not_sent_again(room: str) -> None:
    client = served(ROOMS / room / "static")
    first = client.get("/")
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("room", PAGES)
def test_the_script_holds_each_module_once(room: str) -> None:
    static = ROOMS / room / "static"
    client = served(static)
    (script,) = (client.get(f"/{one}").text for one in linked(client) if one.endswith(".js"))
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    for module in static.glob("*.js"):
        lines = [line for line in module.read_text().splitlines() if re.match(r"(async )?function \w+\(", line)]
        assert all(script.count(f"\n{line}\n") == 1 for line in lines), module.name
    (style,) = (client.get(f"/{one}").text for one in linked(client) if one.endswith(".css"))
    assert "--accent:" in style


def test_a_module_becomes_a_function_of_what_it_imports(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("import { two } from \"./b.js\";\nimport * as c from './c.js';\nc.three(two);\n")
    (tmp_path / "b.js").write_text('export { three } from "./c.js";\nconst one = 1;\nexport const two = one + 1;\n')
    (tmp_path / "c.js").write_text("const one = 3;\nexport async function three() {}\nexport { one };\n")
    script = one_script(tmp_path / "a.js")
    assert script.count("const one") == 2
    assert "return { three, two };" in script
    assert "return { three, one };" in script
    assert script.index("async function three") < script.index("const two") < script.index("c.three(two)")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ('import { a } from "./a.js";\n', "imports itself"),
        ("export default 1;\n", "cannot be put together"),
        ("export let b = 1;\n", "cannot be put together"),
        ('import "./c.js";\n', "cannot be put together"),
    ],
)
def test_what_cannot_be_put_together_is_said(tmp_path: Path, other: str, message: str) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = b;\n')
    (tmp_path / "b.js").write_text(other)
    with pytest.raises(ValueError, match=message):
        one_script(tmp_path / "a.js")


def test_a_compressed_file_is_the_file() -> None:
    client = served(ROOMS / "serving" / "static")
    with client.stream("GET", "/", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert gzip.decompress(raw) == client.get("/", headers={"accept-encoding": "identity"}).content
    assert len(raw) < 6000


@pytest.mark.parametrize("room", PAGES)
def test_colours_that_a_page_uses_are_defined(room: str) -> None:
    styles = [*(ROOMS / room / "static").glob("*.css"), ROOMS / "serving" / "common" / "looks.css"]
    texts = "".join(style.read_text() for style in styles)
    scripts = "".join(path.read_text() for path in (ROOMS / room / "static").glob("*.js"))
    defined = set(re.findall(r"(--[\w-]+)\s*:", texts)) | set(re.findall(r'setProperty\(["\'](--[\w-]+)', scripts))
    assert set(re.findall(r"var\((--[\w-]+)\)", texts)) <= defined
