"""The scene graph of a caption by a small grammar of phrases: no model, no download.

Phrases are read from left to right. The place of a verb or relation decides whose it is:

* "of" belongs to the noun before it, "with" to what is held or worn; other relations to the subject;
* a participle right after the object of a verb is the object's, elsewhere the subject's;
* what "and" joins shares verbs and relations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from rungwise.core import digest_of_parts
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._graph import Fact, SceneGraph, merged
from rungwise.language.scene_graphs._phrases import Phrase, Thing, phrases
from rungwise.language.scene_graphs._tagging import tagged, tokens

__all__ = ["fingerprint", "parse"]

_NEAR = frozenset((first, second) for first in ("to", "from", "at") for second in ("in", "at", "with"))
"""A relation and another one after it that mostly concerns the noun between them: food from a woman in a truck."""
_WORDS_AT_ONCE = 200
"""Number of words of a long text that are read at a time, so that a long list does not give a million facts."""


def parse(caption: str) -> SceneGraph:
    """The facts that a caption states.

    >>> for fact in sorted(parse("Two young men in red shirts are riding a horse.")):
    ...     print(*fact)
    horse
    man
    man 2
    man in shirt
    man ride horse
    man young
    shirt
    shirt red
    """
    texts = tokens(caption)
    if len(texts) <= _WORDS_AT_ONCE:
        return _facts(texts)
    return merged(_facts(texts[at : at + _WORDS_AT_ONCE]) for at in range(0, len(texts), _WORDS_AT_ONCE))


@cache
def fingerprint() -> str:
    """Hash of the rules and of the versions of the word lists: two grammars with the same hash read captions alike."""
    rules = sorted((one.name, one.read_bytes()) for one in files(__package__).iterdir() if one.name.endswith(".py"))
    packages = " ".join(f"{name} {version(name)}" for name in ("lemminflect", "textblob"))
    return digest_of_parts([packages, *(part for name, text in rules for part in (f"{name} {len(text)}\n", text))])


def _facts(texts: list[str]) -> SceneGraph:
    reading = _Reading()
    found = phrases(tagged(texts))
    for place, phrase in enumerate(found):
        reading.read(phrase, found[place - 1] if place else None, found[place + 1 : place + 3])
    reading.end_verb()
    return frozenset(reading.facts)


class _Reading:
    """State of reading: the facts so far, and what waits for its other end.

    Attributes:
        facts: Facts found so far.
        main: Subject of the clause.
        actor: Subject of the latest verb.
        latest: Things of the noun phrase before.
        given: Object of the latest verb, as long as nothing came after it.
        verb: Verb that waits for an object.
        denied: The waiting verb is negated: "isn't riding".
        done: Latest verb that waits no more.
        passive: The verb is done to its actor.
        relation: Names of the relation that waits for a noun phrase.
        apart: The waiting relation is negated.
        through: Relation that leads to the latest noun phrase.
        of: Things that the relation starts from.
        was: After "is": what comes is an attribute of the subject.
        ahead: Relations that came before their subject: on a table there is a cake.
    """

    def __init__(self) -> None:
        self.facts: set[Fact] = set()
        self.main: tuple[Thing, ...] = ()
        self.actor: tuple[Thing, ...] = ()
        self.latest: tuple[Thing, ...] = ()
        self.given: tuple[Thing, ...] = ()
        self.verb = ""
        self.denied = False
        self.done = ""
        self.passive = False
        self.relation: tuple[str, ...] = ()
        self.apart = False
        self.through = ""
        self.of: tuple[Thing, ...] = ()
        self.was = False
        self.ahead: list[tuple[tuple[str, ...], tuple[Thing, ...]]] = []

    def read(self, phrase: Phrase, before: Phrase | None, following: list[Phrase]) -> None:
        """Take the next phrase."""
        match phrase.kind:
            case "things" if phrase.denied and self.main and before is not None and before.kind == "comma":
                pass  # a dog, not a cat, sits
            case "things" if phrase.text in known.FRAMES and following and following[0].names[:1] == ("show",):
                self.actor = ()
            case "things" if phrase.text in known.FRAMES and self.relation in (("in",), ("on",)):
                self.relation = ()
            case "said" if self.relation or self.verb == "wear":  # a man in black
                self._things(replace(phrase, things=tuple(Thing(name) for name in phrase.names)), before)
            case "things":
                self._things(phrase, before)
            case "verb":
                self._act(phrase, before, following)
            case "relation":
                self._relate(phrase, before)
            case "to" if following and following[0].kind == "things":
                self._relate(Phrase("relation", "to", names=("to",)), before)
            case "said":
                self._said(phrase, before)
            case "be":
                self.end_verb()
                if before is None or before.kind != "who":
                    self.actor = self.main
                self.was = True
            case "who":
                self.end_verb()
                living = self.latest and self.latest[-1].name in known.LIVING
                self.actor = self.latest if living or phrase.text != "who" else self.main
            case "while":
                self.end_verb()
                self.actor, self.given, self.was = self.main, (), False
            case "pronoun":
                self.end_verb()
                self.relation = ()
                self.actor = self.main
            case _:
                pass

    def end_verb(self) -> None:
        """Turn a verb without an object into an attribute of its actor."""
        if self.verb:
            if not self.denied:
                self._attribute(self.actor, (self.verb,))
            self.done, self.verb, self.denied = self.verb, "", False

    def _things(self, phrase: Phrase, before: Phrase | None) -> None:
        acted_on = bool(self.verb) and not self.relation and not (before is not None and before.kind == "comma")
        if acted_on and self.denied:
            phrase = phrase.absent()
        for thing in phrase.things:
            self._name(thing)
        through = ""
        if self.relation:
            through, absent = self.relation[0], set(self.relation) == {"without"}
            self._complete_relation(phrase.things)
            self.given = ()
            if absent:  # nothing is said of what is not there
                phrase = phrase.absent()
        elif self.given and before is not None and before.kind == "things":  # brings a man a cake
            for one in self.actor:
                self.facts -= {(one.name, self.done, other.name) for other in self.given}
            self._facts(self.actor, self.done, phrase.things)
            self._facts(self.actor, "to", self.given)
        elif acted_on:
            self._facts(self.actor, self.verb, phrase.things)
            self.done, self.verb, self.denied = self.verb, "", False
            self.given = phrase.things
            self.main = self.main or phrase.things
        elif not (self.was and self.actor):
            self.end_verb()
            self.main = self.actor = phrase.things
            self.given = ()
            for relations, others in self.ahead:
                self._relations(phrase.things, relations, others)
            self.ahead = []
        self.was = False
        self.through = through
        self.latest = phrase.things

    def _name(self, thing: Thing) -> None:
        if thing.nothing or set(self.relation) == {"without"}:
            return
        self.facts.add((thing.name,))
        self._attribute((thing,), thing.attributes)
        if thing.owner is not None:
            self._name(thing.owner)
            self._facts((thing.owner,), "have", (thing,))

    def _act(self, phrase: Phrase, before: Phrase | None, following: list[Phrase]) -> None:
        name = phrase.names[0]
        after = following[0].kind if following else ""
        shown = name in known.SHOWING and phrase.form == "ed" and self.was
        goes_on = after == "verb" or (after == "to" and len(following) > 1 and following[1].kind in ("verb", "be"))
        denied = phrase.denied or self.relation == ("without",) or (self.denied and not self.verb)
        if shown or (name in known.LIGHT and goes_on):
            if denied:
                self.end_verb()
                self.denied = True
            return
        joined = before is not None and before.kind in ("and", "comma", "to", "relation", "verb")
        self.end_verb()
        if before is not None and before.kind == "things":
            self.actor = self._actor_after(phrase)
        elif (before is not None and before.kind == "comma" and phrase.form != "") or (not joined and not self.actor):
            self.actor = self.main
        self.denied = denied
        self.passive = phrase.form == "ed" and (self.was or after in ("relation", "", "to", "comma", "and"))
        self.relation = ()
        self.verb, self.was = name, False

    def _actor_after(self, phrase: Phrase) -> tuple[Thing, ...]:
        """The actor of a verb that stands right after a noun phrase."""
        if phrase.form in ("ing", "ed") and self.latest is not self.main:
            if self.given:
                return self.given
            if self.through != "of" and not (self.main and self.main[0].name in known.LIVING):
                return self.latest
            if self.through in known.BESIDE and self.latest and self.latest[-1].name in known.LIVING:
                return self.latest
        return self.main

    def _relate(self, phrase: Phrase, before: Phrase | None) -> None:
        if self.relation and before is not None and before.kind in ("and", "relation"):
            self.relation = (*self.relation, *phrase.names) if before.kind == "and" else phrase.names
            return
        together = before is not None and before.kind == "and" and self.of
        self.apart = phrase.denied or (bool(self.verb) and self.denied)
        if self.verb:
            self.of = self.actor
            self.end_verb()
        elif phrase.text == "of":
            self.of = self.latest
        elif together:
            pass
        elif self.given:
            described = phrase.text == "with" and self.done in known.HOLDING
            moved = phrase.text in known.INTO and self.done in known.MOVING
            self.of = self.given if described or moved else self.actor
        elif self.through and self._near(phrase.text):
            self.of = self.latest
        else:
            self.of = self.actor or self.main
        if not self.passive or phrase.text != "by":
            self.passive = False
        self.relation, self.was = phrase.names, False

    def _near(self, relation: str) -> bool:
        """Whether a relation is that of the noun phrase before, which stands in a relation itself."""
        return (self.through, relation) in _NEAR

    def _complete_relation(self, things: tuple[Thing, ...]) -> None:
        if self.through == "with" and all(thing.name in known.DEPTHS for thing in things):
            self.of = self.latest
        if self.apart:
            pass
        elif self.passive and self.relation == ("by",):
            for one in self.of:
                self.facts.discard((one.name, self.done))
            self._facts(things, self.done, self.of)
        elif self.of:
            self._relations(self.of, self.relation, things)
        else:
            self.ahead.append((self.relation, things))
        self.relation, self.passive, self.apart = (), False, False

    def _relations(self, of: tuple[Thing, ...], relations: tuple[str, ...], things: tuple[Thing, ...]) -> None:
        for relation in relations:
            self._facts(of, relation, things)

    def _said(self, phrase: Phrase, before: Phrase | None) -> None:
        """Adjectives without a noun describe the subject after "is" or a verb, else what stands before them."""
        direct = before is not None and before.kind == "things"
        of = self.latest if direct and not self.was else self.actor or self.main
        self.end_verb()
        if not phrase.denied:
            self._attribute(of, phrase.names)
        self.was = False

    def _attribute(self, of: tuple[Thing, ...], attributes: tuple[str, ...]) -> None:
        self.facts |= {(one.name, attribute) for one in of if not one.nothing for attribute in attributes}

    def _facts(self, subjects: tuple[Thing, ...], relation: str, objects: tuple[Thing, ...]) -> None:
        self.facts |= {
            (one.name, relation, other.name)
            for one in subjects
            for other in objects
            if not (one.nothing or other.nothing)
        }
