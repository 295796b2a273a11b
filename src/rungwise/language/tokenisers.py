"""Tokenisers of three kinds that published relevance degrees use, and of languages without spaces.

A tokeniser is any callable from a text to a list of tokens; give your own wherever one is taken. Scores of one and the
same metric differ between tokenisers (CIDEr-D of ``ptb`` and ``whitespace`` correlate by 0.98 only), so name the one
you used.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from rungwise.core import MissingExtraError
from rungwise.core.text import UNSPACED, normalised, unescaped

__all__ = ["UNSPACED", "Tokeniser", "character_bigrams", "icu_words", "name_of", "ptb", "unicode_words", "whitespace"]

Tokeniser = Callable[[str], list[str]]


def name_of(reader: Callable[[str], Any]) -> str:
    """Name of a tokeniser, or of any other function or class that reads a text."""
    return str(getattr(reader, "__qualname__", type(reader).__qualname__))


_DROPPED = frozenset(("''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";", '"', "’", "‘", "“", "”"))
"""Tokens that the captioning tools drop. They list the brackets too, but in upper case, after lower-casing: they stay.
"""

_RENAMED = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}

_ABBREVIATIONS = (
    "mr|mrs|ms|dr|drs|st|jr|sr|prof|rev|gen|col|capt|lt|sgt|gov|sen|rep|pres|hon|messrs|mt|ft|corp|inc|ltd|co|cos|bros"
    "|dept|est|etc|vs|jan|feb|aug|sept?|oct|nov|dec|mon|tues?|wed|thu|thurs|fri|ave|blvd|rd|univ|assn|approx|fig|vol|maj"
)
_LETTER = r"[^\W\d_]"
_TOKEN = re.compile(
    rf"""
      https?://\S+ | www\.\S*\w                                 # addresses
    | [\w.+-]{{1,64}}@\w+(?:[.-]\w+)*\.{_LETTER}{{2,}}            # of a name as long as mail servers take
    | {_LETTER}(?:\.{_LETTER})+\.?(?!\w)                        # u.s., a.m., t.v
    | (?:{_LETTER} | {_ABBREVIATIONS})\.(?!\w)                  # w. bush, mr. bean
    | can(?=not\b) | gon(?=na\b) | got(?=ta\b) | wan(?=na\b) | gim(?=me\b) | lem(?=me\b)
    | {_LETTER}+(?=n['’]t\b) | n['’]t\b                         # did n't
    | ['’](?:s|m|d|ll|re|ve|em|tis|twas|n['’])(?!\w)            # he 's, they 're, rock 'n' roll
    | [odl]['’](?={_LETTER}{{2}})\w+(?:-\w+)*                   # o'clock, d'oeuvres
    | \d+(?:[.,:/]\d+)+(?:st|nd|rd|th|s)?(?![\w-]) | \.\d+ | \d+:\d+   # 1,000, 5:30, 1/2
    | \w+&{_LETTER}(?!\w) | {_LETTER}&{_LETTER}(?=s\b)          # a&m, m&m s
    | {_LETTER}+(?:\.{_LETTER}+)+(?!\w)                           # fork.a: a full stop without a space joins
    | \w+(?:[-/]\w+)*
    | (?:\.\.+ | -+ | `+ | ['’]['’])(?P<marks>) | \S
    """,
    re.VERBOSE,
)
_JOINED = frozenset(("cannot", "gonna", "gotta", "wanna", "gimme", "lemme"))


def ptb(text: str) -> list[str]:
    """Penn-Treebank tokens, lower-cased, without punctuation: what the captioning tools (pycocoevalcap) feed CIDEr.

    It is meant for English. ``benchmarks/relevance.py tokenisers`` counts where it differs from the Java program.

    >>> ptb("He's holding a T-shirt (50% off), isn't he?")
    ['he', "'s", 'holding', 'a', 't-shirt', '-lrb-', '50', '%', 'off', '-rrb-', 'is', "n't", 'he']
    """
    tokens: list[str] = []
    for chunk in unescaped(text).lower().split():
        if chunk.isalpha() and chunk not in _JOINED:
            tokens.append(chunk)
        else:
            tokens += _split(chunk)
    return tokens


@lru_cache(maxsize=2**16)
def _split(chunk: str) -> tuple[str, ...]:
    found = (match for match in _TOKEN.finditer(chunk) if match["marks"] is None)
    return tuple(_RENAMED.get(token, token) for token in (match[0] for match in found) if token not in _DROPPED)


def whitespace(text: str) -> list[str]:
    """Lower-cased words between spaces, punctuation left on them, as the NCS program (Biten et al. 2022) splits.

    >>> whitespace("A man in a hat.")
    ['a', 'man', 'in', 'a', 'hat.']
    """
    return text.lower().split()


_BESIDE = r"\u3005-\u3007"
"""Signs within words of these scripts: the repetition in 人々, and the round zero. Saved vocabularies are without."""


@cache
def _unicode_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns of letters of scripts without spaces, of stretches of them, and of words.

    A vowel sign or accent belongs to its letter, which re ignores.
    """
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    letter = rf"(?:[^\W_][{marks}\u200c\u200d]*)"
    unspaced = rf"[{UNSPACED}{_BESIDE}][{marks}]*"
    word = re.compile(rf"{letter}+(?:['’·-]{letter}+)*")
    return re.compile(unspaced), re.compile(f"(?:{unspaced})+"), word


def unicode_words(text: str) -> list[str]:
    """Words of any script: composed (NFC), case folded, without punctuation; hyphens and apostrophes join.

    Scripts that are written without spaces (Chinese, Japanese, Thai, ...) give one token a character, so that n-grams
    stand for words.

    >>> unicode_words("Die Männer fahren U-Bahn, 3 STRAẞEN weit.")
    ['die', 'männer', 'fahren', 'u-bahn', '3', 'strassen', 'weit']
    >>> unicode_words("一隻狗 runs")
    ['一', '隻', '狗', 'runs']
    """
    return _words(text, lambda characters: characters)


def character_bigrams(text: str) -> list[str]:
    """As :func:`unicode_words`, but two characters a token in scripts without spaces, as search engines index them.

    Pairs overlap, so that every word of two characters is among them; a character that stands alone is a token.

    >>> character_bigrams("一隻狗在跑 runs 犬")
    ['一隻', '隻狗', '狗在', '在跑', 'runs', '犬']
    """
    return _words(text, lambda characters: map("".join, pairwise(characters)) if characters[1:] else characters)


def icu_words(text: str) -> list[str]:
    """As :func:`unicode_words`, but words in scripts without spaces, by the dictionaries of ICU.

    ICU has dictionaries of Chinese, Japanese, Thai, Lao, Khmer and Burmese. It needs the extra ``rungwise[languages]``.

    >>> icu_words("一只棕色的狗在草地上奔跑。")
    ['一只', '棕色', '的', '狗', '在', '草地', '上', '奔跑']
    """
    breaker = _breaker()
    return _words(text, lambda characters: (str(word) for word in breaker("".join(characters), "")))


def _words(text: str, cut: Callable[[list[str]], Iterable[str]]) -> list[str]:
    """Words of any script, where ``cut`` makes tokens of the characters of a stretch without spaces."""
    character, stretch, word = _unicode_patterns()
    folded = normalised(normalised(text, "NFC").casefold(), "NFC")
    apart = stretch.sub(lambda found: f" {' '.join(cut(character.findall(found[0])))} ", folded)
    return word.findall(apart)


@cache
def _breaker() -> Callable[[str, str], Iterable[str]]:
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        otherwise = ", or take the tokenizer unicode or bigrams"
        raise MissingExtraError("icu4py", "tokenizer icu", otherwise=otherwise) from error
    breaker: Callable[[str, str], Iterable[str]] = WordBreaker
    return breaker
