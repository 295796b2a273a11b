"""A saved vocabulary, looked through before it cuts captions.

``tokenizer.json`` is a small program: rules rewrite a text, patterns cut it, templates add tokens. Patterns can take
for ever on one caption, rules can blow it up, and a token's number can lie beyond the table of words. Here only parts
are taken that do none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer

from rungwise.core.errors import UserError
from rungwise.core.reading import parse_json
from rungwise.encoders.treebank import NORMALIZERS, PRE_TOKENIZER

PARTS: Mapping[str, frozenset[str]] = {
    "model": frozenset({"WordLevel", "WordPiece", "BPE", "Unigram"}),
    "normalizer": frozenset(
        {"Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "BertNormalizer"}
    ),
    "pre_tokenizer": frozenset(
        {
            *("Sequence", "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation", "Digits"),
            *("UnicodeScripts", "ByteLevel", "Metaspace"),
        }
    ),
    "post_processor": frozenset({"Sequence", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"}),
}
"""What the parts of a vocabulary may be of: each takes a time and a space in proportion to the text."""
_WORD_FOR_WORD = {"normalizer": list(NORMALIZERS), "pre_tokenizer": [PRE_TOKENIZER]}
"""Parts with patterns, which are taken exactly as they are known here."""

_IDLE = ("truncation", "padding")
"""What a model decides itself."""
_MOST_FRAME = 16
"""Tokens that a template may add to a caption."""
_PROBES = ("", "a", "a dog", "\u2603 qzxv 1.5 \U0001f600")


def read_vocabulary(text: str, where: str) -> Tokenizer:
    """A vocabulary whose tokens are numbered 0, 1, 2...

    Args:
        text: What ``tokenizer.json`` says.
        where: What to name in an error.

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
    if sorted(numbers) != list(range(len(numbers))):
        raise UserError(
            f"{where}: its {len(numbers)} words are not numbered 0..{len(numbers) - 1}; copy the folder anew"
        )
    _try_out(tokenizer, where)
    return tokenizer


def _check_part(part: Any, name: str, known: frozenset[str], where: str) -> None:
    """Its type, and those of the parts of a sequence."""
    if (part is None and name != "model") or part in _WORD_FOR_WORD.get(name, ()):
        return
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise UserError(
            f"{where}: {name}: expected one of {', '.join(sorted(known))}; got {repr(kind)[:60]}; copy the folder anew"
        )
    if kind == "Sequence":
        key = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "post_processor": "processors"}[name]
        parts = part.get(key)
        if not isinstance(parts, list) or len(parts) > _MOST_FRAME:
            raise UserError(f"{where}: {name}: expected a list of at most {_MOST_FRAME}; copy the folder anew")
        for one in parts:
            _check_part(one, name, known, where)


def _parsed(text: str, where: str) -> Tokenizer:
    try:
        return Tokenizer.from_str(text)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing more precise, and its panics are no Exception
        raise UserError(f"{where}: not a vocabulary ({_line(error)}); copy the folder anew") from None


def _try_out(tokenizer: Tokenizer, where: str) -> None:
    """Templates and fallbacks may give numbers that no word has."""
    words = tokenizer.get_vocab_size()
    try:
        found = [encoding.ids for encoding in tokenizer.encode_batch(list(_PROBES))]
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise UserError(f"{where}: cannot read a caption ({_line(error)}); copy the folder anew") from None
    if len(found[0]) > _MOST_FRAME:
        raise UserError(f"{where}: adds {len(found[0])} tokens to a caption; at most {_MOST_FRAME} are taken")
    largest = max(max(ids, default=0) for ids in found)
    if largest >= words:
        raise UserError(f"{where}: gives the number {largest}, of {words} words; copy the folder anew")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
