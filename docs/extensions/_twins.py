"""Pages for readers that are programs: beside each HTML page its Markdown, and ``llms.txt``, which lists all pages.

``llms.txt`` has the form of https://llmstxt.org: the title, a summary, and sections of links with a line each;
``llms-full.txt`` has the text of all pages in the order of the menu.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_markdown_builder.translator import MarkdownTranslator

LINK = '<link rel="alternate" type="text/markdown" href="{}" />'


class TwinTranslator(MarkdownTranslator):  # type: ignore[misc]
    """Markdown of a page whose links lead to other twins."""

    def _fetch_ref_uri(self, node: nodes.Element) -> str:
        if "refid" in node and "refuri" not in node:  # on the same page
            return f"#{node['refid']}"
        target, anchor, place = str(super()._fetch_ref_uri(node)).partition("#")
        if not re.match(r"[a-z]+:", target) and target.endswith(".html"):
            target = f"{target.removesuffix('.html')}.md"
        return f"{target}{anchor}{place}"

    def unknown_visit(self, node: nodes.Node) -> None:
        """Keep the text of what Markdown has no form for, such as a card."""

    def unknown_departure(self, node: nodes.Node) -> None:
        """Nothing was opened."""


def _write_twin(app: Sphinx, page: str, _template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    if tree is None or app.builder.name != "html":
        return
    # As the builder of that library has them.
    app.builder.current_doc_name = page  # type: ignore[attr-defined]
    app.builder.download_dir = "_downloads"  # type: ignore[attr-defined]
    translator = TwinTranslator(tree, app.builder)
    tree.walkabout(translator)
    path = Path(app.outdir, f"{page}.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"\n{3,}", "\n\n", translator.astext()).strip() + "\n", encoding="utf-8")
    context["metatags"] = context.get("metatags", "") + LINK.format(path.name)


def first_sentence(text: str) -> str:
    """The first sentence below the title of a twin, without links; empty if no paragraph is there."""
    for part in text.partition("\n")[2].split("\n\n"):
        plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        if re.match(r"[\w`*\"]", plain) and not re.match(r"\* |\d+\. ", plain):
            return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", plain)[0]
    return ""


def title(text: str) -> str:
    """The title of a twin."""
    return text.partition("\n")[0].lstrip("# ").strip()


def _below(app: Sphinx, page: str) -> Iterator[str]:
    yield page
    for one in app.env.toctree_includes.get(page, []):
        yield from _below(app, one)


def _write_lists(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return

    def twin(page: str) -> str:
        return Path(app.outdir, f"{page}.md").read_text(encoding="utf-8")

    root = str(app.config.root_doc)
    lines = [f"# {app.config.project}", "", f"> {first_sentence(twin(root))}"]
    whole = [twin(root)]
    for section in app.env.toctree_includes.get(root, []):
        lines += ["", f"## {title(twin(section))}", ""]
        for page in _below(app, section):
            text = twin(page)
            said = first_sentence(text)
            lines.append(f"- [{title(text)}]({page}.md){f': {said}' if said else ''}")
            whole.append(text)
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path(app.outdir, "llms-full.txt").write_text("\n".join(whole), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write twins as pages are written, and the lists at the end."""
    app.setup_extension("sphinx_markdown_builder")
    app.connect("html-page-context", _write_twin)
    app.connect("build-finished", _write_lists)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
