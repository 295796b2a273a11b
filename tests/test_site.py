"""The built site: twins of Markdown beside its pages, the list for programs, and nothing is fetched from elsewhere."""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.pages import DOCS

PAGES = {
    "index.md": "# Small site\n\nA site of three pages. It is read by programs too.\n\n"
    "```{toctree}\n:hidden:\nguide\n```\n",
    "guide.md": "# Guide\n\nWhat the pages are for.\n\n## A formula\n\n"
    "$x^2$, and {py:class}`rungwise.grading.Questions`.\n\n"
    "```{toctree}\nrungwise.grading\n```\n",
    "rungwise.grading.md": "# rungwise.grading\n\nAsk people.\n\n```{room} rungwise.grading\n```\n",
}


class Sources(HTMLParser):
    """What a page loads, what it links, and where its twin is."""

    def __init__(self, text):
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.twins: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = {name: value or "" for name, value in attributes}
        self.ids.add(found.get("id", ""))
        if tag == "link" and found.get("type") == "text/markdown":
            self.twins.append(found["href"])
        elif tag == "a":
            self.linked.append(found.get("href", ""))
        else:
            self.loaded += [found[name] for name in ("src", "href", "srcset", "data", "poster") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name, text in PAGES.items():
        (source / name).write_text(text, encoding="utf-8")
    shutil.copy(DOCS / "conf.py", source)
    (source / "live").mkdir()  # what the settings copy to the site as it is
    for folder in ("extensions", "_static"):
        shutil.copytree(DOCS / folder, source / folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(source), str(built)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return built


def html(site: Path):
    return {
        path: Sources(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if "_static" not in path.parts
    }


@pytest.mark.slow
def test_every_page_has_a_twin_that_it_names(site):
    for name in PAGES:
        page = Sources((site / name).with_suffix("").with_name(f"{name[:-3]}.html").read_text(encoding="utf-8"))
        assert page.twins == [name]
        assert (site / name).read_text(encoding="utf-8").startswith(PAGES[name].partition("\n\n")[0])


@pytest.mark.slow
def test_twins_link_twins_and_have_no_directives(site):
    guide = (site / "guide.md").read_text(encoding="utf-8")
    assert "](rungwise.grading.md#rungwise.grading.Questions)" in guide
    assert "[rungwise.grading](rungwise.grading.md)" in guide
    assert "x^2" in guide
    room = (site / "rungwise.grading.md").read_text(encoding="utf-8")
    assert re.search(r"\| \[`Questions`\]\(#rungwise.grading.Questions\) +\| class +\| \S", room)
    for name in PAGES:
        text = (site / name).read_text(encoding="utf-8")
        assert "```{" not in text
        assert ":py:" not in text
        assert ".html" not in text


@pytest.mark.slow
def test_the_list_for_programs_has_every_page_once(site):
    assert (site / "llms.txt").read_text(encoding="utf-8") == (
        "# rungwise\n\n> A site of three pages.\n\n## Guide\n\n"
        "- [Guide](guide.md): What the pages are for.\n"
        "- [rungwise.grading](rungwise.grading.md): Ask people.\n"
    )
    assert "All pairs to grade" in (site / "llms-full.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_nothing_is_fetched_from_another_host(site):
    for path, page in html(site).items():
        elsewhere = [one for one in page.loaded if re.match(r"([a-z]+:)?//", one)]
        assert not elsewhere, f"{path.name}: {elsewhere}"


@pytest.mark.slow
def test_the_search_is_local(site):
    assert "rungwise.grading" in (site / "searchindex.js").read_text(encoding="utf-8")
    loaded = Sources((site / "search.html").read_text(encoding="utf-8")).loaded
    scripts = [one.partition("?")[0] for one in loaded if one.partition("?")[0].endswith(".js")]
    assert "searchindex.js" in scripts
    assert all((site / one).is_file() for one in scripts)


@pytest.mark.slow
def test_every_name_of_a_module_has_an_anchor_and_a_row(site):
    from rungwise import grading

    page = Sources((site / "rungwise.grading.html").read_text(encoding="utf-8"))
    assert {f"rungwise.grading.{name}" for name in grading.__all__} <= page.ids
    assert {f"#rungwise.grading.{name}" for name in grading.__all__} <= set(page.linked)
