"""A saved vocabulary, looked through before it cuts captions.

``tokenizer.json`` is a small program: rules rewrite a text, patterns cut it, templates add tokens. Patterns can take
for ever on one caption, rules can blow it up, and a token's number can lie beyond the table of words. Here only parts
are taken that do none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tokenizers import Tokenizer

from rungwise.core.errors import UserError
from rungwise.core.reading import parse_json
from rungwise.encoders.character_maps import check_character_map
from rungwise.relevance.tokenisers import UNSPACED

PARTS: Mapping[str, frozenset[str]] = {
    "model": frozenset({"WordLevel", "WordPiece", "BPE", "Unigram"}),
    "normalizer": frozenset(
        {
            *("Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "BertNormalizer"),
            *("Precompiled", "Replace"),
        }
    ),
    "pre_tokenizer": frozenset(
        {
            *("Sequence", "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation", "Digits"),
            *("UnicodeScripts", "ByteLevel", "Metaspace", "Split"),
        }
    ),
    "post_processor": frozenset({"Sequence", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"}),
}
"""What the parts of a vocabulary may be of: each takes a time and a space in proportion to the text.

``Split`` may cut by :data:`UNSPACED_LETTER` alone; what a ``Replace`` or a ``Precompiled`` may put in place of a text is
bounded.
"""

UNSPACED_LETTER = f"[{UNSPACED.encode().decode('unicode_escape')}]\\p{{M}}*"
"""A letter of a script that is written without spaces, with its vowel signs and accents, as a regular expression."""

_BLANKS = (" {2,}", r"\s{2,}|[\n\r\t]", r"\s+")
"""Patterns that published vocabularies replace by one character."""
_GROWING = ("Precompiled", "Sequence")
"""Parts that may make a text longer, or that may hold such: one after the other they would without end."""
_LONGEST_WORD = 1000
"""Letters of a word that WordPiece still cuts; its time grows with their square."""

_IDLE = ("truncation", "padding")
"""What a model decides itself."""
_MOST_FRAME = 16
"""Tokens that a template may add to a caption."""
_PROBES = ("", "a", "a dog", "\u2603 qzxv 1.5 \U0001f600")


def read_vocabulary(text: str, where: str, rows: int | None = None) -> Tokenizer:
    """A vocabulary whose tokens are numbered 0, 1, 2...

    Args:
        text: What ``tokenizer.json`` says.
        where: What to name in an error.
        rows: Of the table of words; None if it is made as long as the vocabulary. With it, numbers may be left out.

    Raises:
        UserError: If it is none, has parts that are not listed in :data:`PARTS`, or gives numbers of no token.

    >>> read_vocabulary('{"version": "1.0"}', "tokenizer.json")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: tokenizer.json: model: expected one of BPE, Unigram, WordLevel, WordPiece; ...
    """
    said = parse_json(text, where)
    if not isinstance(said, dict):
        raise UserError(f"{where}: not a vocabulary (no JSON object); copy the folder anew")
    for name, known in PARTS.items():
        _check_part(said.get(name), name, known, where)
    for name in _IDLE:
        if said.get(name) is not None:
            raise UserError(f"{where}: {name}: must be null, since the model decides it; copy the folder anew")
    tokenizer = _parsed(text, where)
    numbers = tokenizer.get_vocab().values()
    if rows is None and sorted(numbers) != list(range(len(numbers))):
        raise UserError(
            f"{where}: its {len(numbers)} words are not numbered 0..{len(numbers) - 1}; copy the folder anew"
        )
    rows = len(numbers) if rows is None else rows
    if (largest := max(numbers, default=0)) >= rows:
        raise UserError(f"{where}: numbers a word {largest}, where the table has {rows} rows; copy the folder anew")
    _try_out(tokenizer, rows, where)
    return tokenizer


def _check_part(part: Any, name: str, known: frozenset[str], where: str) -> None:
    """Its type, and those of the parts of a sequence."""
    if part is None and name != "model":
        return
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise UserError(
            f"{where}: {name}: expected one of {', '.join(sorted(known))}; got {repr(kind)[:60]}; copy the folder anew"
        )
    if kind in _CHECKS:
        _CHECKS[kind](part, where)
    if kind == "Sequence":
        key = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}[name]
        parts = part.get(key)
        if not isinstance(parts, list) or len(parts) > _MOST_FRAME:
            raise UserError(f"{where}: {name}: expected a list of at most {_MOST_FRAME}; copy the folder anew")
        for one in parts:
            _check_part(one, name, known, where)
        if sum(isinstance(one, dict) and one.get("type") in _GROWING for one in parts) > 1:
            raise UserError(f"{where}: {name}: more than one of {', '.join(_GROWING)}; copy the folder anew")


def _check_replacement(part: Mapping[str, Any], where: str) -> None:
    """What is put in a text may be no longer than what it replaces."""
    pattern, content = part.get("pattern"), part.get("content")
    given = pattern.get("String") if isinstance(pattern, dict) else None
    blanks = isinstance(pattern, dict) and pattern.get("Regex") in _BLANKS
    longest = len(given) if isinstance(given, str) else int(blanks)
    if not isinstance(content, str) or not 0 < longest or len(content) > longest:
        raise UserError(
            f"{where}: Replace: expected a text, or one of the patterns {', '.join(map(repr, _BLANKS))}, and what is no"
            " longer in its place; copy the folder anew"
        )


def _check_cut(part: Mapping[str, Any], where: str) -> None:
    if part.get("pattern") != {"Regex": UNSPACED_LETTER}:
        raise UserError(
            f"{where}: Split: cuts by a pattern that is not read here; cut by the letters of scripts without spaces"
        )


def _check_word_pieces(part: Mapping[str, Any], where: str) -> None:
    longest = part.get("max_input_chars_per_word")
    if not isinstance(longest, int) or longest > _LONGEST_WORD:
        raise UserError(
            f"{where}: max_input_chars_per_word: expected at most {_LONGEST_WORD}, got {repr(longest)[:40]};"
            " copy the folder anew"
        )


def _check_merges(part: Mapping[str, Any], where: str) -> None:
    if part.get("dropout"):
        raise UserError(
            f"{where}: dropout: must be null, since words are to be cut alike each time; save the model anew"
        )


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "BPE": _check_merges,
    "Precompiled": lambda part, where: check_character_map(part.get("precompiled_charsmap"), where),
    "Replace": _check_replacement,
    "Split": _check_cut,
    "WordPiece": _check_word_pieces,
}
"""What is looked at besides the name."""


def _parsed(text: str, where: str) -> Tokenizer:
    try:
        return Tokenizer.from_str(text)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing more precise, and its panics are no Exception
        raise UserError(f"{where}: not a vocabulary ({_line(error)}); copy the folder anew") from None


def _try_out(tokenizer: Tokenizer, rows: int, where: str) -> None:
    """Templates and fallbacks may give numbers that no word has."""
    try:
        found = [encoding.ids for encoding in tokenizer.encode_batch(list(_PROBES))]
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise UserError(f"{where}: cannot read a caption ({_line(error)}); copy the folder anew") from None
    if len(found[0]) > _MOST_FRAME:
        raise UserError(f"{where}: adds {len(found[0])} tokens to a caption; at most {_MOST_FRAME} are taken")
    largest = max(max(ids, default=0) for ids in found)
    if largest >= rows:
        raise UserError(f"{where}: gives the number {largest}, of {rows} words; copy the folder anew")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
