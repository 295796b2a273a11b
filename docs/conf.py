"""Sphinx configuration."""

import latex2mathml.converter
from docutils.nodes import SkipNode

from rungwise import __version__

project = "rungwise"
author = "rungwise developers"
copyright = "2026, rungwise developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "rungwise"

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
