"""Scripts that are written without blanks between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rungwise.core.text._positions import evenly_spread

_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSPACED = _LETTERS + _IDEOGRAPHS
"""Scripts that are written without blanks between words: Thai, Lao, Burmese, Khmer, Chinese and Japanese."""

_STRETCH = re.compile(rf"[{UNSPACED}]+")
_IS_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_SAMPLE, _LONGEST = 1000, 1000
_WORD_OF_IDEOGRAPHS, _WORD_OF_LETTERS = 3, 9
"""Characters of a stretch that are more than one word on average; words between blanks are shorter."""


def written_without_blanks(texts: Sequence[str]) -> bool:
    """Whether texts are of a language without blanks between words, and were not cut into words.

    At most 1000 texts, evenly spread, are looked at, the first 1000 characters of each. One counts if more than half of
    its letters are of such a script (:data:`UNSPACED`). The answer is yes where at least half of the texts count, and
    their stretches between blanks and signs have on average at least 3 characters in Chinese and Japanese, 9 in others.

    >>> written_without_blanks(["一只棕色的狗在草地上奔跑", "两个人"]), written_without_blanks(["一只 棕色 的 狗"])
    (True, False)
    >>> written_without_blanks(["A red scarf 红色", "Two dogs"]), written_without_blanks([])
    (False, False)
    """
    seen = counted = 0
    characters = needed = 0
    for at in evenly_spread(len(texts), _SAMPLE).tolist() if texts else ():
        text = texts[at][:_LONGEST]
        letters = sum(map(str.isalpha, text))
        stretches = _STRETCH.findall(text)
        inside = sum(sum(map(str.isalpha, stretch)) for stretch in stretches)
        seen += letters > 0
        if 2 * inside > letters:
            counted += 1
            characters += sum(map(len, stretches))
            needed += sum(
                _WORD_OF_IDEOGRAPHS if _IS_IDEOGRAPH.match(stretch) else _WORD_OF_LETTERS for stretch in stretches
            )
    return 2 * counted >= seen > 0 and characters >= needed > 0
