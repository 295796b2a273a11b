"""Sphinx configuration."""

import sys
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
    "sphinx_copybutton",
    "sphinx_design",
    "_live",
    "_room",
    "_twins",
    "rungwise_reference",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "live", "outputs"]

highlight_language = "bash"
html_theme = "pydata_sphinx_theme"
html_title = "rungwise documentation"
html_static_path = ["_static"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
smartquotes = False  # they would change commands that are quoted in the text
html_extra_path = ["live"]
html_css_files = ["site.css"]
html_theme_options = {
    "navigation_depth": 2,
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
html_copy_source = False  # each page has a twin of Markdown
html_show_sourcelink = False
markdown_anchor_signatures = True
toc_object_entries = True
toc_object_entries_show_parents = "hide"
# A few names stand in two rooms, such as Device: a signature that names one links to either.
suppress_warnings = ["ref.python"]

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


def setup(app):
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))


html_math_renderer = "mathml"
