"""Tokens mapped to their stems, as CIDEr's paper has it (Vedantam et al. 2015: words are mapped to root forms).

The stemmers are those of Snowball (Porter 2001); ``english`` is known as Porter's second. They need the extra
``rungwise[languages]``.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from rungwise.core import MissingExtraError, UserError
from rungwise.language.tokenisers import Tokeniser

_alone = threading.Lock()
"""Lock of the stemmers: a stemmer keeps the word it works on."""


@dataclass(frozen=True)
class Stemmed:
    """A tokeniser whose tokens are mapped to their stems.

    Attributes:
        tokeniser: Text to tokens.
        language: Name of the language, such as ``"english"`` or ``"german"``.

    >>> from rungwise.language.tokenisers import ptb
    >>> Stemmed(ptb, "english")("Two dogs are running; they're happily playing")
    ['two', 'dog', 'are', 'run', 'they', 're', 'happili', 'play']
    """

    tokeniser: Tokeniser
    language: str

    def __post_init__(self) -> None:
        _stemmer(self.language)

    def __call__(self, text: str) -> list[str]:
        """The stems of a text's tokens."""
        return [_stem(self.language, token) for token in self.tokeniser(text)]


def stemmed(tokeniser: Tokeniser, language: str | None) -> Tokeniser:
    """A tokeniser with the stems of a language; unchanged for None. Errors are those of :class:`Stemmed`."""
    return tokeniser if language is None else Stemmed(tokeniser, language)


@lru_cache(maxsize=2**16)
def _stem(language: str, token: str) -> str:
    with _alone:
        return str(_stemmer(language).stemWord(token)) or token


@cache
def _stemmer(language: str) -> Any:
    try:
        import snowballstemmer
    except ImportError as error:
        raise MissingExtraError("snowballstemmer", "stemming", otherwise=", or leave stemming out") from error
    known = snowballstemmer.algorithms()
    if language not in known:
        raise UserError(f"stemming: no stemmer of {language[:40]!r}; there are {', '.join(known)}")
    return snowballstemmer.stemmer(language)
