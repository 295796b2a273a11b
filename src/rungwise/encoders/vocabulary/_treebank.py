"""Words as the VSE++ program counted them: lower-cased captions cut by the Penn Treebank's rules, as NLTK has them.

NLTK replaces one pattern after the other; here one pattern finds all words, so that a vocabulary keeps it as text. They
agree but for odd rows of marks (``::a``), for two quotation marks in a row, and for sentences that end within a
caption, where NLTK asks a trained model which periods are abbreviations: a list of common ones stands here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer, models, processors

_AFTER_A_SENTENCE = r"\])}>'»”’"
_ABBREVIATED = "|".join(
    rf"\b{one}"
    for one in (
        *("mr", "mrs", "ms", "dr", "st", "jr", "sr", "ft", "ave", "corp", "inc", "co", "ltd", "vs", "prof", "lt"),
        *("col", "sgt", "gen", r"[^\W\d]"),
    )
)
_PERIOD = (
    r"(?<!\.)\."
    rf"(?:(?=[{_AFTER_A_SENTENCE}]*+\s*+\z)|(?<!(?:{_ABBREVIATED}|\.[^\W\d])\.)(?=[{_AFTER_A_SENTENCE}]*+\s))"
)
"""A period that ends a sentence: always at the end of the caption, within it unless an abbreviation comes before it."""
_CONTRACTED = (
    *(r"\bcan(?=not\b)", r"(?<=\bcan)not\b", r"\b(?:gim|lem)(?=me\b)", r"(?<=\bgim|\blem)me\b"),
    *(r"\b(?:gon|wan)(?=na\b)", r"(?<=\bgon|\bwan)na\b", r"\bgot(?=ta\b)", r"(?<=\bgot)ta\b"),
    *(r"\bmore(?='n\b)", r"(?<=\bmore)'n\b", r"\bd(?='ye\b)", r"(?<=\bd)'ye\b"),
    *(r"(?<!\S)'t(?=(?:is|was)\b)", r"(?<=\s't)(?:is|was)\b"),
)
_OPENING = r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)"
_APART = "|".join(
    (
        *("``", "`", "''", r"[«“‘„»”’;@#$%&?!*\[\](){}<>\x{2012}-\x{2015}]", "--", r"\.{2,}", r"[:,](?!\d)"),
        *(_PERIOD, _OPENING, *_CONTRACTED),
    )
)
_ENDING = rf"(?<=[^'\s])(?:'(?:s|m|d|ll|re|ve)?|n't)(?=\s|\z|{_APART})"

_PLAIN = r"(?!(?:cannot|gimme|gonna|gotta|lemme|wanna)\b)\w{1,99}(?=\s|\z)"
WORD = rf"{_PLAIN}|{_APART}|{_ENDING}|(?:(?!{_APART}|{_ENDING})\S){{1,99}}"
"""One word of a lower-cased caption; most are plain ones, which are tried first.

Lengths are bounded, since the library gives up on a match that takes too many steps.
"""

_OPENING_QUOTE = r"""(?<![^ (\[{<«“‘„`])"|(?<=[ (\[{<«“‘„`])''"""

NORMALIZERS: tuple[dict[str, Any], ...] = (
    {"type": "Replace", "pattern": {"Regex": _OPENING_QUOTE}, "content": "``"},
    {"type": "Replace", "pattern": {"String": '"'}, "content": "''"},
)
PRE_TOKENIZER: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": WORD},
    "behavior": "Removed",
    "invert": True,
}
"""The parts of such a vocabulary in ``tokenizer.json``; no other patterns are accepted there."""


def treebank_vocabulary(
    numbers: Mapping[str, int], unknown: str = "<unk>", frame: tuple[str, str] = ("<start>", "<end>")
) -> Tokenizer:
    """A tokenizer of given words.

    Args:
        numbers: Number of each word, including ``unknown`` and ``frame``.
        unknown: Token for every other word.
        frame: Tokens before and after each caption.

    >>> words = ["<pad>", "<start>", "<end>", "<unk>", "a", "dog", "'s", "bone", "."]
    >>> vocabulary = treebank_vocabulary({word: number for number, word in enumerate(words)})
    >>> vocabulary.encode("A dog's (old) bone.").tokens
    ['<start>', 'a', 'dog', "'s", '<unk>', '<unk>', '<unk>', 'bone', '.', '<end>']
    """
    tokenizer = Tokenizer(models.WordLevel(dict(numbers), unk_token=unknown))
    start, end = frame
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{start} $A {end}", special_tokens=[(start, numbers[start]), (end, numbers[end])]
    )
    said = json.loads(tokenizer.to_str())
    said["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *NORMALIZERS]}
    said["pre_tokenizer"] = PRE_TOKENIZER
    return Tokenizer.from_str(json.dumps(said))
