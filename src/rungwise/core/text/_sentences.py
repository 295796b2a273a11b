"""Sentences of docstrings, as readers of a table or a page see them."""

from __future__ import annotations

import re
from inspect import cleandoc

_END = re.compile(r"\.(?=\s+[A-Z`*]|\s*\n\s*\n|\s*$)")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


def first_sentence(docstring: str | None) -> str:
    r"""The first sentence of a docstring in one line of plain text, with its full stop; empty where there is none.

    Names of classes and functions stand without the marks of reStructuredText.

    >>> first_sentence("Share of hits (Doe et al. 2020, Eq. 1), see\n    :class:`~a.Recall`.  More.")
    'Share of hits (Doe et al. 2020, Eq. 1), see Recall.'
    >>> first_sentence("``R`` of one query\n\nMore."), first_sentence(None)
    ('R of one query.', '')
    """
    text = cleandoc(docstring or "").partition("\n\n")[0]
    text = _ROLE.sub(lambda found: found[1].rpartition(".")[2], text).replace("``", "")
    end = _END.search(text)
    text = " ".join(text[: end.start() if end else None].split()).rstrip(":")
    return f"{text}." if text else ""
