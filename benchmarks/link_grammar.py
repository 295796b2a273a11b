"""Scene graphs by the Link Grammar Parser (Sleator and Temperley 1993), to compare the parsers of rungwise with.

Its Python module is Debian's package ``python3-link-grammar``. The labels of links are explained at
https://www.abisource.com/projects/link-grammar/dict/. Lemmas are those of ``rungwise.language.scene_graphs._lexicon``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

from rungwise.language.scene_graphs import Fact, Parser, SceneGraph, kinds_of
from rungwise.language.scene_graphs import words as known

DEBIAN = "/usr/lib/python3/dist-packages"
_EMPTY = known.PARTITIVES | known.FRAMES
_NO_THINGS = known.DETERMINERS | known.PRONOUNS | known.WHO | known.AND | known.BE | known.PREPOSITIONS


def link_grammar_parser() -> Parser | None:
    """A parser by link grammar; None where it is not installed.

    A caption without a full parse is tried after "there is", and then read with words left out.
    """
    if importlib.util.find_spec("linkgrammar") is None:
        sys.path.append(DEBIAN)
        if importlib.util.find_spec("linkgrammar") is None:
            return None
    from linkgrammar import Dictionary, ParseOptions, Sentence

    english = Dictionary("en")
    whole = ParseOptions(verbosity=0, linkage_limit=50, max_parse_time=2, max_null_count=0)
    gaps = ParseOptions(verbosity=0, linkage_limit=50, max_parse_time=2, min_null_count=1, max_null_count=40)

    def parse(caption: str) -> SceneGraph:
        text = caption.lower().strip().rstrip(".") + "."
        for sentence, options in ((text, whole), (f"there is {text}", whole), (text, gaps)):
            for linkage in Sentence(sentence, english, options).parse():
                return _Reading(linkage).facts()
        return frozenset()

    return parse


class _Reading:
    """A linkage that is read: words by position, links as (left, right, label)."""

    def __init__(self, linkage: Any) -> None:
        from linkgrammar import clinkgrammar as library

        raw = linkage._obj
        self.marks = [word.lower() for word in linkage.words()]
        self.texts = [word.split(".")[0].split("[")[0] if len(word) > 1 else word for word in self.marks]
        self.links = [
            (
                library.linkage_get_link_lword(raw, one),
                library.linkage_get_link_rword(raw, one),
                library.linkage_get_link_label(raw, one),
            )
            for one in range(library.linkage_get_num_links(raw))
        ]
        self.found: set[Fact] = set()
        self.passive: set[tuple[int, int]] = set()

    def right(self, place: int, *labels: str) -> Iterator[int]:
        """Words to which a link goes from here to the right."""
        return (to for at, to, label in self.links if at == place and label.lstrip("h").startswith(labels))

    def left(self, place: int, *labels: str) -> Iterator[int]:
        """Words from which a link comes here."""
        return (at for at, to, label in self.links if to == place and label.lstrip("h").startswith(labels))

    def is_thing(self, place: int) -> bool:
        text = self.texts[place]
        if text in _NO_THINGS or not text[:1].isalpha() or ".g" in self.marks[place]:
            return False
        if any(".g" not in self.marks[to] for to in self.right(place, "AN")):
            return False
        named = any(kind in self.marks[place] for kind in (".n", ".p", ".s")) or any(
            True for _ in self.left(place, "J", "O")
        )
        return named and not any(True for _ in self.right(place, "A", "_I"))

    def name(self, place: int) -> str:
        text = self.texts[place]
        return "person" if text in known.PERSONS else kinds_of(text).get("noun", text)

    def root(self, place: int) -> str:
        return kinds_of(self.texts[place]).get("verb", self.texts[place])

    def heads(self, place: int) -> list[int]:
        """A noun, or those that this "and" joins; of a group of people the people."""
        joined = [*self.left(place, "SJl"), *self.right(place, "SJr")]
        if joined:
            return [one for other in joined for one in self.heads(other)]
        if self.texts[place] in _EMPTY:
            inner = [to for of in self.right(place, "M") if self.texts[of] == "of" for to in self.right(of, "J")]
            if inner:
                return [one for other in inner for one in self.heads(other)]
        return [place] if self.is_thing(place) else []

    def subjects(self, verb: int, depth: int = 0) -> list[int]:
        """Whose a verb is."""
        if depth > 6:
            return []
        for noun in self.left(verb, "S", "B", "Mv", "Mg", "Mj"):
            if self.texts[noun] == "there":
                return self.objects(verb)
            found = self.heads(noun)
            above = self.above(noun) if self.texts[verb].endswith("ing") and self.name(noun) not in known.LIVING else []
            if found:
                return above if any(self.name(one) in known.LIVING for one in above) else found
        for noun in (*self.left(verb, "A", "AN"), *self.right(verb, "A")):  # a zebra grazing, read as a kind of grazing
            if ".g" in self.marks[verb] and self.is_thing(noun):
                return [noun]
        for above in (*self.left(verb, "P", "VJ", "I", "TO", "MV", "Mg", "QI"), *self.right(verb, "VJ")):
            found = self.subjects(above, depth + 1)
            if found:
                return found
        return []

    def objects(self, verb: int) -> list[int]:
        return [one for to in self.right(verb, "O") for one in self.heads(to)]

    def say(self, subjects: list[int], relation: str, objects: list[int]) -> None:
        self.found |= {
            (self.name(one), relation, self.name(other))
            for one in subjects
            for other in objects
            if relation != "by" or (one, other) not in self.passive
        }

    def facts(self) -> SceneGraph:
        for place, mark in enumerate(self.marks):
            if self.is_thing(place) and self.heads(place) == [place]:
                self.say_thing(place)
            elif (".v" in mark or ".g" in mark) and self.texts[place] not in known.BE | known.MODALS - {"has", "have"}:
                self.say_verb(place)
            things = [one for to in self.right(place, "J") for one in self.heads(to)]
            if things:
                self.say_place(place, things)
            if ".a" in mark:
                of = [one for at in self.left(place, "Pa") for one in self.subjects(at)]
                of += [one for at in self.left(place, "Ma") for one in self.heads(at)]
                self.found |= {(self.name(one), self.texts[place]) for one in of}
        return frozenset(self.found)

    def say_thing(self, place: int) -> None:
        if any(self.texts[one] == "without" for one in self.left(place, "J")):
            return
        name = self.name(place)
        self.found.add((name,))
        before = [self.texts[one] for one in self.left(place, "A", "AN", "D")]
        said = [known.NUMBERS.get(one, one) for one in before if one not in _NO_THINGS | _EMPTY and one[:1].isalnum()]
        self.found |= {(name, one) for one in said}
        for sign in self.left(place, "D"):
            self.say([one for at in self.left(sign, "YS", "YP") for one in self.heads(at)], "have", [place])

    def say_verb(self, place: int) -> None:
        subjects, objects = self.subjects(place), self.objects(place)
        by = [
            one
            for at in self.right(place, "MV")
            if self.texts[at] == "by"
            for to in self.right(at, "J")
            for one in self.heads(to)
        ]
        if by and any(True for _ in self.left(place, "Pv", "Mv")):
            self.say(by, self.root(place), subjects)
            self.passive |= {(one, other) for one in subjects for other in by}
        elif objects:
            self.say(subjects, self.root(place), objects)
        else:
            self.found |= {(self.name(one), self.root(place)) for one in subjects}

    def say_place(self, place: int, things: list[int]) -> None:
        words = [place]
        while any(True for _ in self.left(words[0], "_I")):
            words.insert(0, next(self.left(words[0], "_I")))
        relation = " ".join(self.texts[one] for one in words)
        relation = known.PHRASES.get(tuple(relation.split()), (relation,))[0]
        for one in words:
            of = [thing for at in self.left(one, "M") if at not in words for thing in self.holder(at, relation)]
            of += [thing for at in self.left(one, "P") for thing in self.subjects(at)]
            empty = relation == "of" and any(self.texts[at] in _EMPTY for at in self.left(one, "M"))
            if not empty:
                self.say(of, relation, things)

    def holder(self, place: int, relation: str) -> list[int]:
        """Whose a relation is: the noun's, or that of the subject, whose place it says."""
        things = self.heads(place)
        if things and relation not in ("of", "with", "from", "without"):
            above = self.above(place)
            return above or things
        return things or self.subjects(place)

    def above(self, noun: int) -> list[int]:
        """The subject of the verb or phrase that a noun stands in."""
        for verb in self.left(noun, "O"):
            return [] if self.texts[verb] in known.BE else self.subjects(verb)
        for prep in self.left(noun, "J"):
            for at in self.left(prep, "M"):
                return self.above(at) or self.heads(at) or self.subjects(at)
        return []
