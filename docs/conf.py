"""Sphinx configuration."""

import sys
from importlib.util import find_spec
from pathlib import Path

import latex2mathml.converter
from docutils.nodes import SkipNode

from rungwise import __version__

project = "rungwise"
author = "rungwise developers"
copyright = "2026, rungwise developers"
version = release = __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "rungwise_reference",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

highlight_language = "bash"
html_theme = "pydata_sphinx_theme"
html_title = "rungwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_depth": 3,
    "show_nav_level": 1,
    "show_toc_level": 1,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "logo": {"text": "rungwise"},
    "use_edit_page_button": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_show_sourcelink = False
# Each page of sources has the whole tree of contents: with every name in it, a build takes four times as long.
toc_object_entries = False
# Two rooms have a class Comparison, of results and of calibrations; a signature that names one links to either.

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def _formula(self, node):
    # MathML is drawn by the browser itself: formulas work offline and without a script from elsewhere.
    display = "inline" if node.tagname == "math" else "block"
    self.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise SkipNode


def _passed_on(app, what, name, _member, _skip, _options):
    # What a room passes on from an inner room is described once: there.
    if what != "module":
        return None
    exports = Path(find_spec(app.env.temp_data["autodoc:module"]).origin).with_suffix(".pyi")
    lines = exports.read_text(encoding="utf-8").splitlines() if exports.is_file() else []
    return True if any(line.endswith(f" as {name}") and not line.startswith("from ._") for line in lines) else None


def setup(app):
    app.connect("autodoc-skip-member", _passed_on)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))


html_math_renderer = "mathml"
