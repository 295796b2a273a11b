"""Check of vocabularies before they cut texts, and the cutting.

``tokenizer.json`` is a small program: rules rewrite a text, patterns cut it, templates add tokens. Patterns can take
forever on one caption, rules can blow it up, and a token's number can lie beyond the table of words. Only parts that do
none of this are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer, models

from rungwise.core import UserError, parse_json
from rungwise.core.output import lines_of_failure_kept
from rungwise.encoders.vocabulary._character_maps import LONGEST_TEXT, check_character_map
from rungwise.encoders.vocabulary._treebank import NORMALIZERS, PRE_TOKENIZER
from rungwise.language import growth
from rungwise.language.tokenisers import UNSPACED

PARTS: Mapping[str, frozenset[str]] = {
    "model": frozenset({"WordLevel", "WordPiece", "BPE", "Unigram"}),
    "normalizer": frozenset(
        {
            *("Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", "StripAccents", "BertNormalizer"),
            *("ByteLevel", "Nmt", "Precompiled", "Prepend", "Replace"),
        }
    ),
    "pre_tokenizer": frozenset(
        {
            *("Sequence", "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation", "Digits"),
            *("UnicodeScripts", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Split"),
        }
    ),
    "post_processor": frozenset({"Sequence", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"}),
}
"""Allowed types of a vocabulary's parts; each takes time and space in proportion to the text.

Patterns must be those of :data:`PATTERNS`, and all normalizers together may lengthen a text only so much.
"""

UNSPACED_LETTER = f"[{UNSPACED.encode().decode('unicode_escape')}]\\p{{M}}*"
"""Regular expression of a letter with its vowel signs and accents, in a script written without spaces."""

_WORDS = r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"
PATTERNS: frozenset[str] = frozenset(
    {
        *(" {2,}", r"\s+", r"\s{2,}|[\n\r\t]", r"[\n\r\t]", r"\n", UNSPACED_LETTER),
        *(rf"{_ENDINGS}|{_WORDS}", rf"(?i:{_ENDINGS})|{_WORDS}"),
        rf"<\|startoftext\|>|<\|endoftext\|>|{_ENDINGS}|{_WORDS}",
    }
)
r"""Regular expressions that a vocabulary may use: those of published models and of ours, all of linear time.

No rule tells harmless patterns from others: ``\\s+\\s+\\s+$`` looks as harmless and takes 17 seconds for 300 blanks.
"""

_ONE_CLASS = re.compile(r"\[\^?(?:\\.|[^\[\]\\])+\]\+?")
"""A class of characters, once or repeated, such as the punctuation that SigLIP removes: of linear time too."""

_WORD_FOR_WORD = {"normalizer": list(NORMALIZERS), "pre_tokenizer": [PRE_TOKENIZER]}
"""Parts whose patterns are known to be harmless, accepted only word for word."""
_IDLE = ("truncation", "padding")
"""Settings that the model decides itself."""
_MOST_FRAME = 16
"""Largest number of tokens that a template may add to a caption."""
_MOST_GROWTH = LONGEST_TEXT
"""Factor by which normalizers may lengthen a text."""
_LONGEST_WORD = 1000
"""Longest word in letters that WordPiece cuts; its time grows with their square."""
_PROBES = ("", "a", "a dog", "\u2603 qzxv 1.5 \U0001f600")


def read_vocabulary(text: str, where: str, rows: int | None = None) -> Tokenizer:
    """Check a vocabulary, whose tokens must be numbered 0, 1, 2...

    Args:
        text: Text of ``tokenizer.json``.
        where: Name of the file in errors.
        rows: Rows of the table of words, where somebody else made it for the vocabulary: numbers must lie below it, and
            may have gaps.

    Raises:
        UserError: If it is no vocabulary, has parts that are not in :data:`PARTS`, or gives numbers of no token.
    """
    said = parse_json(text, where)
    if not isinstance(said, dict):
        raise UserError(f"{where}: not a vocabulary (no JSON object); copy the folder anew")
    for name, known in PARTS.items():
        _check_part(said.get(name), name, known, where)
    for name in _IDLE:
        if said.get(name) is not None:
            raise UserError(f"{where}: {name}: must be null, since the model decides it; copy the folder anew")
    _check_growth(said.get("normalizer"), where)
    tokenizer = _parsed(text, where)
    numbers = tokenizer.get_vocab().values()
    if rows is None and sorted(numbers) != list(range(len(numbers))):
        raise UserError(
            f"{where}: its {len(numbers)} words are not numbered 0..{len(numbers) - 1}; copy the folder anew"
        )
    rows = len(numbers) if rows is None else rows
    if (largest := max(numbers, default=0)) >= rows:
        raise UserError(f"{where}: numbers a word {largest}, where the table has {rows} rows; copy both anew")
    _try_out(tokenizer, rows, where)
    return tokenizer


def _check_part(part: Any, name: str, known: frozenset[str], where: str) -> None:
    """Check a part's type and pattern, and the parts of a sequence."""
    if (part is None and name != "model") or part in _WORD_FOR_WORD.get(name, ()):
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
    elif (pattern := _pattern(part)) is not None and pattern not in PATTERNS and not _ONE_CLASS.fullmatch(pattern):
        raise UserError(
            f"{where}: {name}: the pattern {pattern[:100]!r} is none that is known here; give another model"
        )


def _pattern(part: Mapping[str, Any]) -> str | None:
    """Regular expression of a part, if it has one."""
    pattern = part.get("pattern")
    return str(pattern["Regex"]) if isinstance(pattern, dict) and "Regex" in pattern else None


def _check_prefix(part: Mapping[str, Any], where: str) -> None:
    prefix = part.get("prepend")
    if not isinstance(prefix, str) or len(prefix) > LONGEST_TEXT:
        raise UserError(f"{where}: prepend: expected a text of at most {LONGEST_TEXT} letters; copy the folder anew")


def _check_word_pieces(part: Mapping[str, Any], where: str) -> None:
    longest = part.get("max_input_chars_per_word")
    if not isinstance(longest, int) or longest > _LONGEST_WORD:
        raise UserError(
            f"{where}: max_input_chars_per_word: expected at most {_LONGEST_WORD}, got {repr(longest)[:40]};"
            " copy the folder anew"
        )


def _check_merges(part: Mapping[str, Any], where: str) -> None:
    if part.get("dropout"):
        raise UserError(f"{where}: dropout: must be null, so that a text is always cut alike; copy the folder anew")


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "BPE": _check_merges,
    "Precompiled": lambda part, where: check_character_map(part.get("precompiled_charsmap"), where),
    "Prepend": _check_prefix,
    "WordPiece": _check_word_pieces,
}
"""Checks of parts besides type and pattern."""


def _check_growth(normalizer: Any, where: str) -> None:
    """Refuse normalizers whose product could lengthen a text without bound."""
    maps = LONGEST_TEXT ** _count(normalizer, "Precompiled")
    if maps * growth(normalizer) > _MOST_GROWTH:
        raise UserError(f"{where}: normalizer: makes a text more than {_MOST_GROWTH} times as long; give another model")


def _count(part: Any, kind: str) -> int:
    """Number of parts of a type, in nested sequences too."""
    if isinstance(part, list):
        return sum(_count(one, kind) for one in part)
    return int(part.get("type") == kind) + _count(part.get("normalizers"), kind) if isinstance(part, dict) else 0


def _parsed(text: str, where: str) -> Tokenizer:
    try:
        with lines_of_failure_kept():
            return Tokenizer.from_str(text)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # the library raises nothing more precise, and its panics are no Exception
        raise UserError(f"{where}: not a vocabulary ({_line(error)}); copy the folder anew") from error


def _try_out(tokenizer: Tokenizer, rows: int, where: str) -> None:
    """Cut a few texts, since templates and fallbacks may give numbers that no word has."""
    try:
        with lines_of_failure_kept():
            found = [encoding.ids for encoding in tokenizer.encode_batch(list(_PROBES))]
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise UserError(f"{where}: cannot read a caption ({_line(error)}); copy the folder anew") from error
    if not any(found):
        raise UserError(f"{where}: makes no token of any caption; copy the folder anew")
    if len(found[0]) > _MOST_FRAME:
        raise UserError(f"{where}: adds {len(found[0])} tokens to a caption; at most {_MOST_FRAME} are taken")
    largest = max(max(ids, default=0) for ids in found)
    if largest >= rows:
        raise UserError(f"{where}: gives the number {largest}, of {rows} words; copy the folder anew")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def tokenise(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Token numbers of each text."""
    return [encoding.ids for encoding in _encoded(tokenizer, texts)]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Encoding]:
    """The library's encodings; even with a sound vocabulary, some character may make it panic."""
    try:
        with lines_of_failure_kept():
            found: list[Encoding] = tokenizer.encode_batch(_whole(texts))
            return found
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise UserError(f"the model's vocabulary cannot read a text ({_line(error)}); give another model") from error


def cutting(tokenizer: Tokenizer, longest: int | None) -> Tokenizer:
    """A copy of a tokenizer that keeps the first ``longest`` tokens, with those that frame a text; None keeps all."""
    if longest is None:
        return tokenizer
    other = Tokenizer.from_str(tokenizer.to_str())
    other.enable_truncation(longest)
    return other


def too_long(cutter: Tokenizer, texts: Sequence[str]) -> NDArray[np.int64]:
    """Positions of the texts that a tokenizer from :func:`cutting` cuts, ascending."""
    if cutter.truncation is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero([bool(encoding.overflowing) for encoding in _encoded(cutter, texts)])


def pieces(cutter: Tokenizer, text: str) -> list[str]:
    """The tokens of a text, spelled as in the text; empty for tokens that are not in it, such as its start.

    >>> from tokenizers import models, pre_tokenizers
    >>> words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "dog": 2}, unk_token="[UNK]"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> pieces(words, "a  giraffe")
    ['a', 'giraffe']
    """
    (whole,) = _whole([text])
    encoding = cutter.encode(whole)
    frames = encoding.special_tokens_mask
    places = zip(encoding.offsets, frames, strict=True)
    return ["" if is_frame else whole[begin:end].strip() for (begin, end), is_frame in places]


def unknown_words(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """The words of a text that become the unknown token, spelled as in the text, each once.

    >>> from tokenizers import models, pre_tokenizers
    >>> words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "dog": 2}, unk_token="[UNK]"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> unknown_words(words, "a dog, a giraffe")
    ('giraffe',)
    """
    unknown = getattr(tokenizer.model, "unk_token", None)
    if unknown is None:
        return ()
    (whole,) = _whole([text])
    encoding = tokenizer.encode(whole)
    cut = [
        whole[begin:end]
        for token, (begin, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        if token == unknown
    ]
    return tuple(dict.fromkeys(word for word in cut if is_word(word)))


def is_word(token: str) -> bool:
    """Whether a token holds a letter or a digit, and so is no punctuation mark."""
    return any(letter.isalnum() for letter in token)


def whole_words(tokenizer: Tokenizer) -> frozenset[str]:
    """Words that are one token of a vocabulary, in lower case; letters alone, at least two.

    >>> from tokenizers import models
    >>> sorted(whole_words(Tokenizer(models.WordPiece({"[UNK]": 0, "dog": 1, "##gy": 2, "a": 3}, unk_token="[UNK]"))))
    ['dog']
    """
    model, words = tokenizer.model, tokenizer.get_vocab(with_added_tokens=False)
    if isinstance(model, models.WordPiece):
        pieces = (word for word in words if not word.startswith(model.continuing_subword_prefix))
    elif isinstance(model, models.WordLevel):
        pieces = (word for word in words)
    elif isinstance(model, models.BPE) and (end := model.end_of_word_suffix):
        pieces = (word.removesuffix(end) for word in words if word.endswith(end))
    else:  # a mark before the first piece of a word
        pieces = (word[1:] for word in words if word[:1] in _WORD_BEGINS)
    return frozenset(word.lower() for word in pieces if len(word) > 1 and word.isalpha())


_WORD_BEGINS = ("\u2581", "\u0120")


def _whole(texts: Sequence[str]) -> list[str]:
    """Texts without halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
