"""English words that take something away: "a beach without people", "a dog, not a cat", "a street with no cars".

A model of images and texts hardly reads such words: "a beach without people" is nearest to beaches with people. So what
they take away is cut out and subtracted. Where it is not plain what such a word belongs to, the text stays whole; so it
does where a second one is more than the next of a list: "a dog without a leash without people".

Time is proportional to the text: blanks in a row become one first, so that no pattern repeats without end, and what
stands around the cues is looked up and not cut out anew for each of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left

_CUE = re.compile(r"(?<![\w'’-])(without|not|no)(?![\w'’-])", re.IGNORECASE)
_NOT_NEGATED = frozenset(
    {
        *("only", "just", "even", "yet", "too", "so", "very", "quite", "far", "long", "because", "necessarily"),
        *("a.m.", "many", "much", "always", "sure"),
    }
)
"""Words after "not" with which the sentence goes on, and nothing is taken away."""
_SIGNS = frozenset(
    {
        *("parking", "smoking", "entry", "exit", "swimming", "trespassing", "fishing", "diving", "stopping"),
        *("running", "camping", "littering", "dumping", "loitering", "photography", "u-turn", "u-turns"),
        *("turn", "outlet", "access", "vacancy", "entrance", "admittance", "one", "man's", "way", "signal"),
        *("longer", "more", "doubt", "matter", "problem", "worries", "idea"),
    }
)
"""Words after "no" and "without" of what a sign says, or of a fixed phrase."""
_SAYING = frozenset(
    {
        *("says", "say", "saying", "reads", "read", "reading", "a", "an", "the", "this", "that", "word"),
        *("words", "sign", "signs", "vitamin", "dr", "casino", "or"),
    }
)
"""Words before "no" where it is quoted, or part of a name."""
_LETTERS = re.compile(r"\w+")
_WORD = re.compile(r"[\w'’.-]{0,64}\w")
_LONGEST_WORD = 64
"""Number of characters of a word that are compared with the words above."""
_JOINING = re.compile(
    r"(?: ?[,;]| (?:but|and|with|having|there (?:is|are)"
    r"|(?:(?:that|which|who) )?(?:is|are|was|were|does|do|has|have)))\Z",
    re.IGNORECASE,
)
_LONGEST_JOINING = 16
_TAIL = re.compile(
    r" (?:at|on|in|during|near|by|under|beside|behind|inside|outside|over|above|below|along|against|beneath"
    r"|while|when|next to)(?= )",
    re.IGNORECASE,
)
"""Where what is taken away ends and the scene goes on: "a man without a hat on a bench"."""
_BACK = re.compile(r"\b(?:it|its|them|their|his|her|hers|him|they|he|she|itself|themselves|top)\b", re.IGNORECASE)
"""Words of the tail that refer to what was taken away: "a dog without a ball in its mouth"."""
_ALTERNATIVES = re.compile(
    r" ?,? (?:or|nor) (?:(?:no|not|without) )?| and (?:no|not|without) "
    r"| ?[,;] ?(?:(?:and|or|nor) )?(?:(?:no|not|without) )?",
    re.IGNORECASE,
)


def split_negation(text: str) -> tuple[str, tuple[str, ...]]:
    """The wanted text, and the texts that are wanted less; the whole text and nothing where nothing is taken away.

    Blanks in a row become one where the text is split.

    >>> split_negation("a beach without people or dogs at sunset")
    ('a beach at sunset', ('people', 'dogs'))
    >>> split_negation("a dog without a leash without people")
    ('a dog without a leash without people', ())
    >>> split_negation("Siena no 1")
    ('Siena no 1', ())
    >>> split_negation("a no parking sign on a t-shirt, not only for dogs")
    ('a no parking sign on a t-shirt, not only for dogs', ())
    """
    flat = " ".join(text.split())
    words = [found.span() for found in _LETTERS.finditer(flat)]
    cues = [place for place, (start, _) in enumerate(words) if _CUE.match(flat, start)]
    if not cues:
        return text, ()
    tails = [found.start() for found in _TAIL.finditer(flat)]
    last_back = max((found.start() for found in _BACK.finditer(flat)), default=-1)
    last_cue = words[cues[-1]][0]
    for place in cues:
        start, end = words[place]
        before, after = words[place - 1][1] if place else 0, words[min(place + 1, len(words) - 1)][0]
        if place == len(words) - 1 or not _takes_away(flat, before, (start, end), after):
            continue
        # The first one that takes something away decides: where another stands beside it, neither is plain.
        kept = _before_joining_words(flat, start) if place else 0
        at = bisect_left(tails, end)
        ends = tails[at] if at < len(tails) and last_back < tails[at] else len(flat)
        less = tuple(one for one in (part.strip(" .,;!") for part in _ALTERNATIVES.split(flat[end:ends])) if one)
        if kept <= words[0][0] or not less or last_cue >= ends or any(map(_CUE.search, less)):
            return text, ()
        return f"{flat[:kept].strip()} {flat[ends:].strip()}".strip(), less
    return text, ()


def _takes_away(text: str, before: int, cue: tuple[int, int], after: int) -> bool:
    """Whether a cue in a text without repeated blanks takes something away.

    ``before`` is the end of the word before the cue, 0 where there is none, ``after`` the start of the word behind it.
    """
    word = text[slice(*cue)].lower()
    last = ["", *_WORD.findall(text[max(0, before - _LONGEST_WORD) : before].lower())][-1]
    (first, *_) = _WORD.findall(text[cue[1] : after + _LONGEST_WORD][-2 * _LONGEST_WORD :].lower())
    if word == "not":
        return first not in _NOT_NEGATED and last not in ("why", "or", "if")
    if first in _SIGNS or (word == "no" and first[0].isdigit()):  # a number, as in "Plate No 7"
        return False
    return word == "without" or last not in _SAYING


def _before_joining_words(text: str, end: int) -> int:
    """Where the text up to a place ends without "and", "that is", commas and the like at its end."""
    end -= text[end - 1] == " "
    while found := _JOINING.search(text, max(0, end - _LONGEST_JOINING), end):
        end = found.start()
    return end
