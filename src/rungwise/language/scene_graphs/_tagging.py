"""Words of a caption with their kind and their root.

Word lists hold the possible kinds of a word (:mod:`rungwise.language.scene_graphs._lexicon`). Where several kinds
remain, the words beside it decide: a caption is a plain phrase, so that a few rules do.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from rungwise.core.text import unescaped
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._families import COLOURS
from rungwise.language.scene_graphs._lexicon import ENDS, LISTED, Word, form_of, guessed_kinds, kinds_of, usually
from rungwise.language.scene_graphs._verbs import Place, goes_on, is_verb

_TOKEN = re.compile(r"\d+|n't\b|[^\W\d_]+(?:-[^\W\d_]+)*|'s\b|[,.;:()]|&")
_WHOLE = frozenset(known.WHOLE.values())


def tokens(caption: str) -> list[str]:
    """Words, numbers and signs in lower case; short forms are taken apart.

    >>> tokens("A man's T-shirt, isn't it?")
    ['a', 'man', "'s", 't-shirt', ',', 'is', "n't", 'it']
    """
    text = unescaped(caption).lower().replace("’", "'")
    for short, parts in known.SHORT.items():
        text = text.replace(short, parts)
    joined: list[str] = []
    for token in _TOKEN.findall(text):
        whole = known.WHOLE.get((joined[-1], token)) if joined else None
        if whole:
            joined[-1] = whole
        elif token == "as" and joined[-2:] == ["as", "well"]:
            joined[-2:] = ["and"]
        elif token == "longer" and joined[-1:] == ["no"]:
            joined[-1] = "not"
        else:
            joined.append(token)
    while joined and joined[-1] == ".":
        joined.pop()
    return joined


def tagged(texts: list[str]) -> list[Word]:
    """The words of a caption, as :func:`tokens` gives them, each with its kind.

    >>> [(word.root, word.kind) for word in tagged(tokens("A man rides two brown horses"))]
    [('a', 'determiner'), ('man', 'noun'), ('ride', 'verb'), ('2', 'number'), ('brown', 'adjective'), ('horse', 'noun')]
    """
    found: list[Word] = []
    for text, following in pairwise((*texts, "")):
        if text in ENDS:
            found.append(Word(text, "comma", text))
        else:
            found.append(_word(text, following, found))
    return found


def _word(text: str, following: str, before: list[Word]) -> Word:
    if text in _WHOLE:
        root = known.WHOLE_ROOTS.get(text, text)
        return Word(text, "noun", root, "" if root == text else "s")
    if text.isdigit():
        return Word(text, "number", text)
    if text in known.PERSONS:
        return Word(text, "noun", "person")
    listed = LISTED.get(text)
    if listed == "number":
        return Word(text, "number", known.NUMBERS[text])
    if text == "'s" and before and before[-1].kind in ("pronoun", "who"):
        return Word(text, "be", text)
    if text == "that" and following and not kinds_of(following).get("verb"):
        return Word(text, "determiner", text)
    if text == "like" and before and before[-1].kind in ("pronoun", "noun") and before[-1].form == "s":
        listed = "preposition"
    if listed is not None:
        return Word(text, listed, text)
    return _open_word(text, following, before)


def _open_word(text: str, following: str, before: list[Word]) -> Word:
    kinds = kinds_of(text) or guessed_kinds(text)
    form = form_of(text, kinds)
    last = before[-1] if before else Word("", "comma", "")
    inside = last.kind in ("determiner", "number", "adjective", "owner")
    more = goes_on(following)
    if text in known.MADE_OF and last.kind == "noun" and more:
        before[-1] = replace(last, kind="adjective", root=last.text)
        return Word(text, "adjective", text)
    if "verb" in kinds and is_verb(form, Place(text, kinds, last, following, before)):
        return Word(text, "verb", kinds["verb"], form)
    if text in COLOURS and following in ("and", ",", "&", "or"):
        return Word(text, "adjective", text)
    if form in ("ing", "ed") and "verb" in kinds and more and (inside or last.kind in ("preposition", "and", "comma")):
        return Word(text, "noun" if "noun" in kinds and form == "ing" else "adjective", text, form)
    if "adjective" in kinds and (
        "noun" not in kinds or (more and text in COLOURS) or (usually(text, "JJ") and (more or not inside))
    ):
        return Word(text, "adjective", text)
    if "adverb" in kinds and "noun" not in kinds:
        return Word(text, "adverb", text)
    if "noun" in kinds:
        several = kinds["noun"] != text or text in known.PLURAL_ONLY
        return Word(text, "noun", kinds["noun"], "s" if several else "")
    if "adjective" in kinds or (inside and "verb" in kinds):
        return Word(text, "adjective", text)
    if "verb" in kinds:
        return Word(text, "verb", kinds["verb"], form)
    return Word(text, "noun", text)
