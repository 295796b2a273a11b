"""Tests rungwise.language.scene_graphs._dependencies by trees of en_core_web_sm 3.8 that were written down.

Also tests rungwise.language.scene_graphs._dependency_tree.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.language.scene_graphs import dependency_parser
from rungwise.language.scene_graphs._dependencies import facts_of
from rungwise.language.scene_graphs._dependency_tree import Tree


@dataclass(eq=False)
class Token:
    """What is read of a token of spaCy's."""

    i: int
    text: str
    lemma_: str
    pos_: str
    tag_: str
    dep_: str
    above: int
    document: list[Token] = field(repr=False)

    @property
    def lower_(self) -> str:
        return self.text.lower()

    @property
    def head(self) -> Token:
        return self.document[self.above]

    @property
    def children(self) -> Iterator[Token]:
        return (one for one in self.document if one.above == self.i != one.i)

    @property
    def subtree(self) -> Iterator[Token]:
        yield self
        for child in self.children:
            yield from child.subtree


def document(tree: str) -> list[Token]:
    """A document, of word/lemma/kind/tag/label/head for each token."""
    found: list[Token] = []
    for place, cell in enumerate(tree.split()):
        *words, head = cell.split("/")
        found.append(Token(place, *words, int(head), found))
    return found


TREES = {
    "two men and a dog are sitting on a red bench": (
        "two/two/NUM/CD/nummod/1 men/man/NOUN/NNS/nsubj/6 and/and/CCONJ/CC/cc/1 a/a/DET/DT/det/4 dog/dog/NOUN/NN/conj/1"
        " are/be/AUX/VBP/aux/6"
        " sitting/sit/VERB/VBG/ROOT/6 on/on/ADP/IN/prep/6 a/a/DET/DT/det/10 red/red/ADJ/JJ/amod/10 "
        "bench/bench/NOUN/NN/pobj/7",
        {("man",), ("man", "2"), ("dog",), ("bench",), ("bench", "red"), ("man", "sit"), ("dog", "sit"),
         ("man", "on", "bench"), ("dog", "on", "bench")},
    ),
    "a ball is thrown by a man in front of a house": (
        "a/a/DET/DT/det/1 ball/ball/NOUN/NN/nsubjpass/3 is/be/AUX/VBZ/auxpass/3 thrown/throw/VERB/VBN/ROOT/3 "
        "by/by/ADP/IN/agent/3 a/a/DET/DT/det/6 man/man/NOUN/NN/pobj/4 in/in/ADP/IN/prep/6 front/front/NOUN/NN/pobj/7 "
        "of/of/ADP/IN/prep/8 a/a/DET/DT/det/11 house/house/NOUN/NN/pobj/9",
        {("ball",), ("man",), ("house",), ("man", "throw", "ball"), ("man", "in front of", "house")},
    ),
    "a group of people without helmets": (
        "a/a/DET/DT/det/1 group/group/NOUN/NN/ROOT/1 of/of/ADP/IN/prep/1 people/people/NOUN/NNS/pobj/2 "
        "without/without/ADP/IN/prep/1 helmets/helmet/NOUN/NNS/pobj/4",
        {("person",), ("person", "without", "helmet")},
    ),
    "a woman gives a man a cake": (
        "a/a/DET/DT/det/1 woman/woman/NOUN/NN/nsubj/2 gives/give/VERB/VBZ/ROOT/2 a/a/DET/DT/det/4 "
        "man/man/NOUN/NN/dative/2 a/a/DET/DT/det/6 cake/cake/NOUN/NN/dobj/2",
        {("woman",), ("man",), ("cake",), ("woman", "give", "cake"), ("woman", "to", "man")},
    ),
    "there are no people in the picture": (
        "there/there/PRON/EX/expl/1 are/be/VERB/VBP/ROOT/1 no/no/DET/DT/det/3 people/people/NOUN/NNS/attr/1 "
        "in/in/ADP/IN/prep/3 the/the/DET/DT/det/6 picture/picture/NOUN/NN/pobj/4",
        set(),
    ),
    "a row of planes waiting on a snow covered runway": (
        "a/a/DET/DT/det/1 row/row/NOUN/NN/ROOT/1 of/of/ADP/IN/prep/1 planes/plane/NOUN/NNS/pobj/2 "
        "waiting/wait/VERB/VBG/acl/3 on/on/ADP/IN/prep/4 a/a/DET/DT/det/9 snow/snow/NOUN/NN/npadvmod/8 "
        "covered/cover/VERB/VBN/amod/9 runway/runway/NOUN/NN/pobj/5",
        {("row",), ("plane",), ("runway",), ("runway", "snow"), ("runway", "covered"), ("row", "of", "plane"),
         ("row", "wait"), ("row", "on", "runway")},
    ),
    "a woman who is holding a tomato above a tray": (
        "a/a/DET/DT/det/1 woman/woman/NOUN/NN/ROOT/1 who/who/PRON/WP/nsubj/4 is/be/AUX/VBZ/aux/4 "
        "holding/hold/VERB/VBG/relcl/1 a/a/DET/DT/det/6 tomato/tomato/NOUN/NN/dobj/4 above/above/ADP/IN/prep/4 "
        "a/a/DET/DT/det/9 tray/tray/NOUN/NN/pobj/7",
        {("woman",), ("tomato",), ("tray",), ("woman", "hold", "tomato"), ("tomato", "above", "tray")},
    ),
    "a man's hat is green and old": (
        "a/a/DET/DT/det/1 man/man/NOUN/NN/poss/3 's/'s/PART/POS/case/1 hat/hat/NOUN/NN/nsubj/4 is/be/AUX/VBZ/ROOT/4 "
        "green/green/ADJ/JJ/acomp/4 and/and/CCONJ/CC/cc/5 old/old/ADJ/JJ/conj/5",
        {("man",), ("hat",), ("man", "have", "hat"), ("hat", "green"), ("hat", "old")},
    ),
    "a couple of dogs are trying to catch a ball": (
        "a/a/DET/DT/det/1 couple/couple/NOUN/NN/nsubj/5 of/of/ADP/IN/prep/1 dogs/dog/NOUN/NNS/pobj/2"
        " are/be/AUX/VBP/aux/5 trying/try/VERB/VBG/ROOT/5"
        " to/to/PART/TO/aux/7 catch/catch/VERB/VB/xcomp/5 a/a/DET/DT/det/9"
        " ball/ball/NOUN/NN/dobj/7",
        {("dog",), ("dog", "2"), ("ball",), ("dog", "try"), ("dog", "catch", "ball")},
    ),
    "": ("", set()),
    "😀 -": ("😀/😀/NOUN/NN/ROOT/0 -/-/PUNCT/:/punct/0", set()),
}  # fmt: skip


@pytest.mark.parametrize("caption", TREES)
def test_what_trees_state(caption):
    tree, facts = TREES[caption]
    assert facts_of(document(tree)) == facts


@pytest.mark.parametrize("caption", TREES)
def test_each_word_that_names_a_thing_is_a_noun_outside_of_relations_of_several_words(caption):
    tree = Tree(document(TREES[caption][0]))
    named = [token.text for token in tree.tokens if tree.is_thing(token)]
    assert all(token.pos_ == "NOUN" for token in tree.tokens if token.text in named)
    assert not {"front", "no", "snow", "picture"} & set(named)


def test_without_spacy_one_line_says_what_to_install(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "spacy" else find(name))
    with pytest.raises(UserError, match=r"^a_model: needs spaCy; run: pip install spacy, and install a model of it$"):
        dependency_parser("a_model")


@pytest.fixture
def spacy(monkeypatch) -> SimpleNamespace:
    """A library in spaCy's place, whose one model knows one caption."""
    said = SimpleNamespace(error=None, asked=[])

    class Network:
        Defaults = SimpleNamespace(infixes=[r"(?<=[a-z])(?:-|–|—)(?=[a-z])", r"\."])
        tokenizer = SimpleNamespace(infix_finditer=None)

        def __call__(self, text: str) -> list[Token]:
            said.asked.append(text)
            return document("a/a/DET/DT/det/1 dog/dog/NOUN/NN/ROOT/1")

    def load(model: str, exclude: list[str]) -> Network:
        if said.error:
            raise said.error
        return Network()

    def compile_infix_regex(patterns: list[str]) -> Any:
        assert patterns == [r"\."]  # words with a hyphen stay whole
        return SimpleNamespace(finditer=None)

    module, util = ModuleType("spacy"), ModuleType("spacy.util")
    vars(module).update(load=load, util=util, __spec__=importlib.util.spec_from_loader("spacy", None))
    vars(util).update(compile_infix_regex=compile_infix_regex)
    monkeypatch.setitem(sys.modules, "spacy", module)
    monkeypatch.setitem(sys.modules, "spacy.util", util)
    return said


def test_captions_are_given_to_the_model_in_one_way(spacy):
    parse = dependency_parser("a_model")
    assert parse(" A  Dog.\n") == parse("a dog") == {("dog",)}
    assert set(spacy.asked) == {"a dog."}
    assert parse("") == frozenset()


def test_long_texts_are_given_to_the_model_in_parts(spacy):
    dependency_parser("a_model")("dog " * 400)
    assert [len(text.split()) for text in spacy.asked] == [150, 150, 100]


@pytest.mark.parametrize("error", [OSError("no\nsuch model"), ValueError("[E053] old"), ImportError("no module")])
def test_a_model_that_cannot_be_loaded_gets_one_line(error, spacy):
    spacy.error = error
    with pytest.raises(UserError, match=r"^a_model: spaCy cannot load it \(.+\); give an installed model") as caught:
        dependency_parser("a_model")
    assert "\n" not in str(caught.value)
