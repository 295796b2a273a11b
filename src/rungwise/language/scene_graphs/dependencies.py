"""The scene graph of a caption by a dependency parser of spaCy (Honnibal et al. 2020), with a model of the user's.

The rules read the labels of spaCy's English models (ClearNLP's): ``nsubj``, ``dobj``, ``prep``, ``amod``, ... They state
the same facts as :mod:`rungwise.language.scene_graphs.chunking`, so that the two can be compared.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from rungwise.core.errors import UserError
from rungwise.language.scene_graphs import words as known
from rungwise.language.scene_graphs.graph import Fact, Parser, SceneGraph

_MODIFIERS = frozenset(("amod", "compound", "nummod", "nmod"))
_SKIPPED = known.DETERMINERS | known.PRONOUNS


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

    try:
        network = spacy.load(model, exclude=["ner"])
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{model}: spaCy cannot load it ({reason}); give an installed model or its folder") from error

    def parse(caption: str) -> SceneGraph:
        return facts_of(network(caption.strip().rstrip(".") + " ."))

    return parse


def facts_of(document: Any) -> SceneGraph:
    """Facts of a document that spaCy has parsed."""
    facts: set[Fact] = set()
    for token in document:
        if token.pos_ in ("NOUN", "PROPN") and token.dep_ not in ("compound", "nmod"):
            for thing in _things(token):
                _say_thing(thing, facts)
        elif token.pos_ == "VERB" and token.dep_ not in ("amod", "aux"):
            _say_verb(token, facts)
        elif token.pos_ == "AUX" and token.dep_ != "aux" and token.dep_ != "auxpass":
            _say_be(token, facts)
    return frozenset(facts)


def _name(token: Any) -> str:
    text, before = token.lower_, token.nbor(-1).lower_ if token.i else ""
    whole = known.WHOLE.get((before, text))
    if whole:
        return known.WHOLE_ROOTS.get(whole, whole)
    if text in known.PERSONS:
        return "person"
    if text in known.PLURAL_ONLY:
        return str(text)
    return {"people": "person"}.get(text, str(token.lemma_.lower()))


def _things(token: Any) -> list[Any]:
    """The thing that a noun stands for: of "group of people" the people."""
    if token.lower_ in known.PARTITIVES | known.FRAMES:
        inner = [one for of in token.children if of.dep_ == "prep" and of.lower_ == "of" for one in of.children]
        if inner:
            return [thing for one in inner if one.dep_ == "pobj" for thing in _things(one)]
    return [token]


def _heads(token: Any) -> list[Any]:
    """A noun and those that "and" joins to it, each as the thing that it stands for."""
    found = [thing for thing in _things(token) if thing.lower_ not in _SKIPPED and thing.pos_ in ("NOUN", "PROPN")]
    for child in token.children:
        if child.dep_ == "conj" and child.pos_ in ("NOUN", "PROPN"):
            found += _heads(child)
    return found


def _say_thing(token: Any, facts: set[Fact]) -> None:
    name = _name(token)
    if token.lower_ in _SKIPPED or (token.dep_ == "pobj" and token.head.lower_ == "without"):
        return
    if token.lower_ in known.FRAMES and token.dep_ in ("ROOT", "attr"):
        return
    facts.add((name,))
    around = list(token.children)
    if token.dep_ == "pobj" and token.head.head.lower_ in known.TWO:
        facts.add((name, "2"))
    for child in around:
        if child.dep_ in _MODIFIERS and not (child.lower_ in _SKIPPED or f"{child.lower_} {name}" == name):
            for one in (child, *(deep for deep in child.children if deep.dep_ in ("conj", "compound"))):
                if one.pos_ not in ("ADV", "DET") and one.lower_ not in name.split():
                    facts.add((name, known.NUMBERS.get(one.lower_, one.lower_)))
        elif child.dep_ == "poss":
            facts.update((_name(owner), "have", name) for owner in _heads(child))
        elif child.dep_ == "prep":
            _say_prep(child, [token], facts)


def _say_prep(token: Any, of: list[Any], facts: set[Fact]) -> None:
    if token.lower_ == "of" and of and of[0].lower_ in known.PARTITIVES | known.FRAMES:
        return
    relation, inner = _relation(token)
    for child in inner:
        if child.dep_ == "pobj":
            for one in _heads(child):
                facts.update((_name(subject), relation, _name(one)) for subject in of)
        elif child.dep_ == "prep" or (child.dep_ == "conj" and child.pos_ == "ADP"):
            _say_prep(child, of, facts)


def _relation(token: Any) -> tuple[str, list[Any]]:
    """A relation of one word or several, and what depends on its last word."""
    words = [one.lower_ for one in token.doc[token.i : token.i + 5]]
    for length in (5, 4, 3, 2):
        found = known.PHRASES.get(tuple(words[:length]))
        if found:
            last = token.doc[token.i + length - 1]
            inner = list(last.children) or [one for one in token.subtree if one.dep_ == "pobj" and one.i > last.i]
            return found[0], inner
    return str(token.lower_), list(token.children)


def _subjects(verb: Any) -> list[Any]:
    found = [one for child in verb.children if child.dep_ in ("nsubj", "nsubjpass") for one in _heads(child)]
    if found:
        return found
    head = verb.head
    if verb.dep_ in ("acl", "relcl"):
        return _heads(head) if verb.dep_ == "acl" else _things(head)
    if verb.dep_ in ("conj", "advcl", "xcomp", "ccomp", "pcomp") and head.pos_ in ("VERB", "AUX") and head is not verb:
        return _subjects(head)
    if verb.dep_ == "conj" and head.pos_ in ("NOUN", "PROPN"):
        return _heads(head)
    return []


def _say_verb(token: Any, facts: set[Fact]) -> None:
    name = token.lemma_.lower()
    subjects = _subjects(token)
    passive = any(child.dep_ in ("nsubjpass", "auxpass") for child in token.children) or token.tag_ == "VBN"
    objects = [one for child in token.children if child.dep_ in ("dobj", "dative") for one in _heads(child)]
    agents = [
        one
        for child in token.children
        if child.dep_ == "agent"
        for deep in child.children
        if deep.dep_ == "pobj"
        for one in _heads(deep)
    ]
    goes_on = any(child.dep_ == "xcomp" for child in token.children)
    if agents:
        facts.update((_name(agent), name, _name(one)) for agent in agents for one in subjects)
    elif objects:
        facts.update((_name(one), name, _name(other)) for one in subjects for other in objects)
    elif not (name in known.LIGHT and goes_on) and not (passive and name in ("see", "show", "picture")):
        facts.update((_name(one), name) for one in subjects)
    for child in token.children:
        if child.dep_ == "prep":
            _say_prep(child, subjects, facts)
        elif child.dep_ in ("acomp", "oprd") and child.pos_ == "ADJ":
            facts.update((_name(one), child.lower_) for one in subjects)


def _say_be(token: Any, facts: set[Fact]) -> None:
    subjects = _subjects(token)
    if token.lemma_.lower() == "have":
        _say_verb(token, facts)
        return
    for child in token.children:
        if child.dep_ in ("acomp", "attr") and child.pos_ == "ADJ":
            said = (child, *(one for one in child.children if one.dep_ == "conj"))
            facts.update((_name(one), adjective.lower_) for one in subjects for adjective in said)
        elif child.dep_ == "prep":
            _say_prep(child, subjects, facts)
