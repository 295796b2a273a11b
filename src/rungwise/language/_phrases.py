"""Phrases of texts, and those that the texts of several pictures share.

A phrase is one to four words that stand beside each other in a text. Words with digits, and what stands behind a comma
or another mark, belong to no phrase: neither a product's number nor the name of a file becomes one. In scripts without
blanks a phrase is a run of two to six characters.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

_MOST_WORDS, _MOST_CHARACTERS = 4, 6
_MOST_TEXTS, _LONGEST_TEXT = 20, 400
"""Number of texts of a picture, and of characters of a text, that are looked at."""
_FEW = 20
"""Below this number of pictures two may share a phrase; from it on three must."""
_COMMON = 0.5
"""Share of pictures beyond which a phrase says nothing about any of them."""
_LEAST_LIFT = math.log(1.15)
_WORD_SHARE, _PHRASE_SHARE, _TIMES = 0.3, 0.12, 1.3
"""Share of a group that must have a word, or several, that name it; and how much oftener than elsewhere."""
_OF_A_WORD_MORE = 2.0
"""How much more a phrase says of a group for each further word: "little girl" names it better than "girl"."""
_WITHOUT_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(
    rf"[{_WITHOUT_BLANKS}]|(?:(?![{_WITHOUT_BLANKS}])[^\W_])+(?:['’-](?:(?![{_WITHOUT_BLANKS}])[^\W_])+)*"
)
_CHARACTER = re.compile(f"[{_WITHOUT_BLANKS}]")
_SHORTEST = 3
"""Letters of the shortest word with which a phrase begins or ends; shorter ones join others, in most languages."""
_NAME = re.compile(r"[_/\\]|\.\w")
"""Pattern of what stands in names of files, and in few words."""
_JOINING = """
the and with for from are was were its his her their she they them this that there who which while into onto over
under near next down out off some one another other through behind front has have having being not
der die das den dem des ein eine einen einem einer eines und oder auf mit von vor zum zur bei aus ist sind wird
sich sie ihr ihre ihrem sein seine als durch neben
les une des dans sur avec par pour aux est sont qui que ses son elle
los las una unos del con por para
gli che nel nella sul sulla alla dalla sono
uma dos das nos nas com
het een van met aan zijn haar hun dat bij
ett och som det till från sin sitt står
til sig
для под над при или его она они как что это из-за
は が を に の で と も へ や た て い る な し 的 了 在 是 一 个 個 和 与 着 上 有
"""
# English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Russian; particles of Japanese and
# Chinese. Of other languages only length and how often a word stands decide.
JOINING = frozenset(_JOINING.split())
"""Words that join others and name nothing."""

Phrases = Mapping[tuple[str, ...], str]
"""Phrases of one picture: their words without case, and how they are written."""


def phrases_of(texts: Iterable[str]) -> Phrases:
    """Phrases of the texts of a picture.

    >>> sorted(phrases_of(["A brown dog, and 2 Cats"]).values())
    ['Cats', 'brown', 'brown dog', 'dog']
    """
    found: dict[tuple[str, ...], str] = {}
    for text in islice(texts, _MOST_TEXTS):
        for run in _runs(text[:_LONGEST_TEXT]):
            for start, first in enumerate(run):
                if _is_edge(first):
                    continue
                drawn = _is_drawn(first)
                longest = _MOST_CHARACTERS if drawn else _MOST_WORDS
                for end in range(start + 1 + drawn, min(len(run), start + longest) + 1):
                    if not _is_edge(run[end - 1]):
                        words = run[start:end]
                        found.setdefault(tuple(map(str.casefold, words)), ("" if drawn else " ").join(words))
    return found


def shared_phrases(pictures: Sequence[Phrases], most: int) -> tuple[str, ...]:
    """Phrases that several pictures share, and that say something: the most telling first, no word in two of them.

    >>> dogs = [phrases_of([f"a brown dog on {place}"]) for place in ("grass", "sand", "snow")]
    >>> shared_phrases([*dogs, *[phrases_of([f"a {colour} boat"]) for colour in ("red", "blue", "grey")]], 2)
    ('brown dog', 'boat')
    """
    counts: Counter[tuple[str, ...]] = Counter(phrase for one in pictures for phrase in one)
    least = 2 if len(pictures) < _FEW else 3
    usual = {words: many for words, many in counts.items() if least <= many <= max(least, _COMMON * len(pictures))}
    lifts = {words: _lift(words, many, counts, len(pictures)) for words, many in usual.items()}

    def worth(words: tuple[str, ...]) -> tuple[int, float, tuple[str, ...]]:
        together = lifts[words] >= _LEAST_LIFT
        kind = 1 if len(words) == 1 else 0 if together else 2
        return kind, -usual[words] * (lifts[words] if together else 1.0), words

    chosen: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for words in sorted(usual, key=worth):
        if len(chosen) == most:
            break
        if taken.isdisjoint(_telling(words)):
            chosen.append(words)
            taken |= _telling(words)
    return tuple(_written(words, pictures) for words in chosen)


def typical_phrases(
    members: Sequence[Phrases], usual: Mapping[tuple[str, ...], int], of: int
) -> dict[str, tuple[str, ...]]:
    """Phrases that many members of a group have and that are rarer elsewhere, with their words; the most typical first.

    Args:
        members: Phrases of each picture of the group.
        usual: Number of pictures that have a phrase, the group included.
        of: Number of pictures.

    >>> dogs = [phrases_of(["a brown dog"])] * 3
    >>> next(iter(typical_phrases(dogs, {("brown",): 3, ("dog",): 3, ("brown", "dog"): 3}, 9).items()))
    ('brown dog', ('brown', 'dog'))
    """
    here = Counter(phrase for one in members for phrase in one)
    worth = {}
    for words, many in here.items():
        share, elsewhere = many / len(members), usual[words] / of
        least = _WORD_SHARE if len(words) == 1 else _PHRASE_SHARE
        if many >= (2 if of < _FEW else 3) and share >= least and share > _TIMES * elsewhere:
            worth[words] = (share - elsewhere) * (1 + _OF_A_WORD_MORE * (len(words) - 1))
    return {_written(words, members): words for words in sorted(worth, key=lambda words: (-worth[words], words))}


def _runs(text: str) -> Iterator[list[str]]:
    """Words of a text that stand beside each other with nothing but blanks between them; names of files are none."""
    run: list[str] = []
    for part in text.split():
        end = 0
        for found in () if _NAME.search(part) else _TOKEN.finditer(part):
            word, numbered = found[0], any(map(str.isdigit, found[0]))
            # Words have a blank between them, and characters have nothing.
            joins = run and found.start() == end and (end > 0) == _is_drawn(word) == _is_drawn(run[-1])
            if run and (numbered or not joins):
                yield run
                run = []
            if not numbered:
                run.append(word)
            end = found.end()
        if run and end < len(part):
            yield run
            run = []
    if run:
        yield run


def _is_drawn(word: str) -> bool:
    """Whether a word is a character of a script without blanks."""
    return bool(_CHARACTER.match(word))


def _is_edge(word: str) -> bool:
    return word.casefold() in JOINING or (len(word) < _SHORTEST and not _is_drawn(word))


def _lift(words: tuple[str, ...], many: int, counts: Mapping[tuple[str, ...], int], of: int) -> float:
    """Logarithm of how much oftener a phrase stands than its first and last word would by chance.

    Of characters, which are no words, it is their number.
    """
    if _is_drawn(words[0]):
        return len(words) - 1.0
    ends = [counts.get((words[0],), 0), counts.get((words[-1],), 0)]
    return math.log(many * of / math.prod(ends)) if len(words) > 1 and all(ends) else 1.0


def _telling(words: tuple[str, ...]) -> set[str]:
    """What two phrases should not both have: words, or pairs of characters."""
    if _is_drawn(words[0]):
        return {one + other for one, other in pairwise(words)}
    return {word for word in words if not _is_edge(word)}


def _written(words: tuple[str, ...], pictures: Iterable[Phrases]) -> str:
    """A phrase as most pictures write it."""
    ways = Counter(one[words] for one in pictures if words in one)
    return min(ways, key=lambda way: (-ways[way], way))
