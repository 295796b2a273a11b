"""The frame and the common style of an HTML page that needs no other file.

Nothing is fetched and there is no script; light or dark follows the reader's system.
"""

from __future__ import annotations

import base64
from html import escape

_STYLE = """:root { --page: #fff; --ink: #1d2129; --soft: #5b6270; --line: #d9dce2; --card: #f6f7f9; --a: #2563b0;
  --b: #c2571a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171c; --ink: #e6e8ec; --soft: #a0a7b4; --line: #343a45; --card: #1d2229; --a: #6ea8ee;
    --b: #f0955a; }
}
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; color: var(--ink);
  background: var(--page); }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .2rem 0; } .note, small { color: var(--soft); font-size: .85rem; }
img { display: block; max-width: 100%; border-radius: 4px; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .7rem; min-width: 0; }
.missing { color: var(--b); }
"""


def page(title: str, body: str, style: str = "") -> str:
    """A whole page.

    Args:
        title: Plain text, for the window and above the body.
        body: HTML.
        style: CSS rules besides the common ones. These define the colours ``--page``, ``--ink``, ``--soft`` (ink of
            less important text), ``--line``, ``--card`` (ground of an ``article``) and two for emphasis, ``--a`` and
            ``--b``; the class ``note`` for remarks; and ``missing`` for what could not be shown.

    >>> page("Cats & dogs", "<p>None yet.</p>").splitlines()[-3:]
    ['<h1>Cats &amp; dogs</h1>', '<p>None yet.</p>', '</main></body></html>']
    """
    return whole_characters(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}{style}</style></head><body><main>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def embedded_jpeg(jpeg: bytes, name: str) -> str:
    """An ``img`` element that carries its picture inside.

    Args:
        jpeg: The file's content.
        name: Plain text that stands for the picture where it cannot be seen.

    >>> embedded_jpeg(b"...", "a dog")
    '<img alt="a dog" src="data:image/jpeg;base64,Li4u">'
    """
    return f'<img alt="{escape(name)}" src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}">'


def whole_characters(text: str) -> str:
    r"""The text with a question mark for each half of a character, which no file and no terminal takes.

    Names of files in no known encoding hold such halves.
    """
    return text.encode("utf-8", "replace").decode()
