"""The scene graph of a caption by a dependency parser of spaCy (Honnibal et al. 2020), with a model of the user's.

The rules read the labels of spaCy's English models (ClearNLP's): ``nsubj``, ``dobj``, ``prep``, ``amod``, ... They
give the same facts as :mod:`rungwise.language.scene_graphs.chunking`, so that the two can be compared.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from rungwise.core import UserError
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs._dependency_tree import EMPTY, Tree
from rungwise.language.scene_graphs._graph import Fact, Parser, SceneGraph, merged

_PARTICLES = frozenset((
    ("put", "on"), ("look", "on"), ("dress", "up"), ("hang", "on"), ("hold", "up"), ("pick", "up"), ("set", "up"),
    ("blow", "out"), ("take", "off"), ("line", "up"), ("give", "up"), ("show", "off"), ("try", "on"),
))  # fmt: skip
"""Verbs with a particle that changes their meaning."""
_WORDS_AT_ONCE = 150
"""Number of words of a long text that are read at a time, so that no tree is deep."""


def dependency_parser(model: str | Path) -> Parser:
    """A parser by a spaCy model.

    Args:
        model: The name of an installed package such as ``en_core_web_sm``, or a folder that spaCy wrote.

    Raises:
        UserError: If spaCy is not installed, or has no such model.
    """
    if importlib.util.find_spec("spacy") is None:
        raise UserError(f"{model}: needs spaCy; run: pip install spacy, and install a model of it")
    import spacy
    from spacy.util import compile_infix_regex

    try:
        network = spacy.load(model, exclude=["ner"])
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{model}: spaCy cannot load it ({reason}); give an installed model or its folder") from error
    # Words with a hyphen stay whole.
    kept = [pattern for pattern in network.Defaults.infixes or () if "-|–" not in pattern]
    network.tokenizer.infix_finditer = compile_infix_regex(kept).finditer

    def parse(caption: str) -> SceneGraph:
        words = caption.lower().rstrip(". \n").split()
        parts = [" ".join(words[at : at + _WORDS_AT_ONCE]) for at in range(0, len(words), _WORDS_AT_ONCE)]
        return merged(facts_of(network(f"{part}.")) for part in parts)

    return parse


def facts_of(document: Any) -> SceneGraph:
    """Facts of a document that spaCy has parsed: its tokens in order."""
    return _Reading(list(document)).facts()


class _Reading(Tree):
    """A tree, and the facts found in it."""

    def __init__(self, tokens: list[Any]) -> None:
        super().__init__(tokens)
        self.found: set[Fact] = set()

    def facts(self) -> SceneGraph:
        for token in self.tokens:
            if self.is_thing(token):
                things = self.things(token)
                for thing in things:
                    self._say_thing(thing)
                if things != [token]:  # a group of people on a bench
                    for child in token.children:
                        if child.dep_ == "prep":
                            self._say_prep(child, things)
            elif self.is_be(token):
                self._say_be(token)
            elif self.acts(token):
                self._say_verb(token)
        there = {fact[0] for fact in self.found if len(fact) == 1}
        return frozenset(
            fact
            for fact in self.found
            if fact[0] in there and (fact[1:2] == ("without",) or fact[-1] in there or len(fact) < 3)
        )

    def _say(self, subjects: list[Any], relation: str, objects: list[Any]) -> None:
        self.found |= {(self.name(one), relation, self.name(other)) for one in subjects for other in objects}

    def _say_thing(self, token: Any) -> None:
        above = self.first(token)
        if above.dep_ == "pobj" and above.head.lower_ == "without":
            return
        name = self.name(token)
        self.found.add((name,))
        if token.dep_ == "pobj" and token.head.lower_ == "of":
            sorted_by = token.head.head
            if sorted_by.lower_ in known.TWO:
                self.found.add((name, "2"))
            elif sorted_by.lower_ in known.KINDS:
                self.found |= {(name, said) for said in self.said_of(sorted_by)}
        self.found |= {(name, said) for said in self.said_of(token) if said not in name.split()}
        for child in token.children:
            if child.dep_ == "poss":
                self.found |= {(self.name(owner), "have", name) for owner in self.heads(child)}
            elif child.dep_ == "prep":
                self._say_prep(child, self.owners(child, token))
            elif child.dep_ == "advmod":
                self._say_below(child, [token])

    def _say_prep(self, prep: Any, of: list[Any]) -> None:
        if prep.lower_ == "of" and prep.head.lower_ in EMPTY:
            return
        names, inner = self.names(prep)
        for child in inner:
            if child.dep_ == "pobj":
                for name in names:
                    self._say(of, name, self.heads(child))
            elif child.dep_ == "prep":
                self._say_prep(child, of)
            elif child.dep_ == "conj" and child.pos_ == "ADP":
                self._say_prep(child, of)
                if not any(one.dep_ == "pobj" for one in inner):  # up and down a street
                    self._say(of, names[0], self.under(child, "pobj"))
            elif child.dep_ == "pcomp" and prep.lower_ in ("with", "without"):
                self._say(of, names[0], self.under(child, "nsubj"))

    def _say_verb(self, token: Any) -> None:
        particles = [child.lower_ for child in token.children if child.dep_ == "prt"]
        root = {"rid": "ride"}.get(token.lemma_.lower(), token.lemma_.lower())
        name = " ".join((root, *particles)) if (root, *particles) in _PARTICLES else root
        subjects = self.subjects(token)
        objects = self.under(token, "dobj")
        passive = token.tag_ == "VBN" or any(child.dep_ in ("nsubjpass", "auxpass") for child in token.children)
        by = [
            child
            for child in token.children
            if child.dep_ == "agent" or (child.dep_ == "prep" and child.lower_ == "by" and passive)
        ]
        agents = [one for child in by for one in self.under(child, "pobj")]
        goes_on = any(child.dep_ == "xcomp" for child in token.children)
        if agents:
            self._say(agents, name, subjects)
        elif objects:
            self._say(subjects, name, objects)
        elif not (root in known.LIGHT and goes_on) and not (passive and root in known.SHOWING):
            self.found |= {(self.name(one), name) for one in subjects}
        for child in token.children:
            if child.dep_ == "dative":
                self._say(subjects, "to", self.under(child, "pobj") if child.pos_ == "ADP" else self.heads(child))
            elif child.dep_ == "prep" and not (agents and child in by):
                moved = objects and root in known.MOVING and self.names(child)[0][0] in known.INTO
                self._say_prep(child, objects if moved or not subjects else subjects)
            elif child.dep_ in ("acomp", "oprd") and child.pos_ in ("ADJ", "VERB", "NOUN"):
                of = objects if child.dep_ == "oprd" and objects else subjects
                self.found |= {(self.name(one), said) for one in of for said in self.attributes(child)}
                self._say_below(child, of)
            elif child.dep_ in ("advmod", "prt"):
                self._say_below(child, subjects)

    def _say_be(self, token: Any) -> None:
        subjects = self.subjects(token)
        for child in token.children:
            if child.dep_ in ("acomp", "attr") and child.pos_ == "ADJ":
                self.found |= {(self.name(one), said) for one in subjects for said in self.attributes(child)}
                self._say_below(child, subjects)
            elif child.dep_ == "prep":
                self._say_prep(child, subjects or self.shown(token))
            elif child.dep_ == "advmod":
                self._say_below(child, subjects or self.shown(token))

    def _say_below(self, token: Any, of: list[Any]) -> None:
        """Phrases of place that hang on an adjective or adverb: outside on the grass, full of people."""
        for child in token.children:
            if child.dep_ == "prep":
                self._say_prep(child, of)
            elif child.dep_ == "pobj":
                self._say(of, str(token.lower_), self.heads(child))
            elif child.dep_ == "conj" and child.pos_ == "ADP":  # up and down a street
                for name in (token.lower_, child.lower_):
                    self._say(of, str(name), self.under(child, "pobj"))
