"""English words that take something away: "a beach without people", "a dog, not a cat", "a street with no cars".

A model of images and texts hardly reads such words: "a beach without people" is nearest to beaches with people. So
what they take away is cut out and subtracted. Where it is not plain what a "no" or "not" belongs to, the text stays
whole.
"""

from __future__ import annotations

import re

_CUE = re.compile(r"(?<![\w'’-])(without|not|no)(?![\w'’-])", re.IGNORECASE)
_NOT_NEGATED = frozenset(
    {
        *("only", "just", "even", "yet", "too", "so", "very", "quite", "far", "long", "because", "necessarily"),
        *("a.m.", "many", "much", "always", "sure"),
    }
)
"""After "not": the sentence goes on, and nothing is taken away."""
_SIGNS = frozenset(
    {
        *("parking", "smoking", "entry", "exit", "swimming", "trespassing", "fishing", "diving", "stopping"),
        *("running", "camping", "littering", "dumping", "loitering", "photography", "u-turn", "u-turns"),
        *("turn", "outlet", "access", "vacancy", "entrance", "admittance", "one", "man's", "way", "signal"),
        *("longer", "more", "doubt", "matter", "problem", "worries", "idea"),
    }
)
"""After "no" and "without": what a sign says, or a phrase of its own."""
_SAYING = frozenset(
    {
        *("says", "say", "saying", "reads", "read", "reading", "a", "an", "the", "this", "that", "word"),
        *("words", "sign", "signs", "vitamin", "dr", "casino", "or"),
    }
)
"""Before "no": it is quoted, or a name."""
_JOINING = re.compile(
    r"(?:\s*[,;]|\s+(?:but|and|with|has|have|having|there\s+(?:is|are)|(?:(?:that|which|who)\s+)?(?:is|are|was|were|does|do|has|have)))+\s*$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s+(?:at|on|in|during|near|by|under|beside|behind|inside|outside|over|above|below|along|against|beneath"
    r"|while|when|next\s+to|in\s+front\s+of)\s",
    re.IGNORECASE,
)
"""Where what is taken away ends and the scene goes on: "a man without a hat on a bench"."""
_BACK = re.compile(r"\b(?:it|its|them|their|his|her|hers|him|they|he|she|itself|themselves|top)\b", re.IGNORECASE)
"""Words of the tail that speak of what was taken away: "a dog without a ball in its mouth"."""
_ALTERNATIVES = re.compile(
    r"\s*,?\s+(?:or|nor)\s+|\s+and\s+(?:no|not|without)\s+|\s*[,;]\s*(?:(?:and|or|nor)\s+)?(?:(?:no|not|without)\s+)?",
    re.IGNORECASE,
)


def split_negation(text: str) -> tuple[str, tuple[str, ...]]:
    """What is wanted, and what is wanted less; the whole text and nothing where nothing is taken away.

    >>> split_negation("a beach without people or dogs at sunset")
    ('a beach at sunset', ('people', 'dogs'))
    >>> split_negation("a dog that is not black")
    ('a dog', ('black',))
    >>> split_negation("a no parking sign on a t-shirt, not only for dogs")
    ('a no parking sign on a t-shirt, not only for dogs', ())
    """
    for cue in _CUE.finditer(text):
        before, after = text[: cue.start()], text[cue.end() :]
        if not _takes_away(cue[1].lower(), before, after):
            continue
        kept = _JOINING.sub("", f"{before.rstrip()} ".rstrip()).strip()
        if not re.search(r"\w", kept):
            continue
        phrase, tail = after, ""
        if (place := _TAIL.search(after)) and not _BACK.search(after, place.start()):
            phrase, tail = after[: place.start()], after[place.start() :]
        less = tuple(one for one in (part.strip(" .,;!") for part in _ALTERNATIVES.split(phrase)) if one)
        if less and not _CUE.search(tail):
            return " ".join(f"{kept} {tail}".split()), less
    return text, ()


def _takes_away(cue: str, before: str, after: str) -> bool:
    words_before, words_after = _words(before), _words(after)
    if not words_before or not words_after:
        return False
    if cue == "not":
        return words_after[0] not in _NOT_NEGATED and words_before[-1] not in ("why", "or", "if")
    if words_after[0] in _SIGNS:
        return False
    return cue == "without" or words_before[-1] not in _SAYING


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'’.-]*\w", text.lower())
