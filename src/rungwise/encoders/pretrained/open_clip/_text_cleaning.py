"""open_clip's cleaning of a text before it is cut into tokens, without torch.

It equals ``open_clip.tokenizer.get_clean_fn``, with which a test compares it.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal

from rungwise.core import MissingExtraError
from rungwise.core.text import unescaped, with_few_marks

Cleaning = Literal["none", "lower", "whitespace", "canonicalize"]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def cleaner(kind: Cleaning) -> Callable[[str], str] | None:
    """The cleaning of a text; None for none.

    Args:
        kind: ``"whitespace"`` repairs broken characters and joins words by single blanks; ``"lower"`` also turns to
            lower case; ``"canonicalize"`` also removes punctuation.

    Raises:
        UserError: If ftfy is missing, which repairs characters.

    >>> cleaner("canonicalize")("A  DOG's &amp; a_cat")
    'a dogs a cat'
    """
    if kind == "none":
        return None
    _ftfy()
    return {"lower": _lower, "whitespace": _whitespace, "canonicalize": _canonical}[kind]


def _lower(text: str) -> str:
    return _whitespace(text).lower()


def _whitespace(text: str) -> str:
    return " ".join(_mended(text).split())


def _canonical(text: str) -> str:
    return " ".join(_mended(text).replace("_", " ").translate(_NO_PUNCTUATION).lower().split())


def _mended(text: str) -> str:
    return unescaped(unescaped(_ftfy().fix_text(with_few_marks(text)))).strip()


@cache
def _ftfy() -> Any:
    try:
        return import_module("ftfy")
    except ImportError as error:
        raise MissingExtraError("ftfy", "to clean texts as open_clip does") from error
