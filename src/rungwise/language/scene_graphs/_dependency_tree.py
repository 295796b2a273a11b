"""Questions to a spaCy tree: which words name things, whose a verb is, what stands in which relation."""

from __future__ import annotations

from typing import Any

from rungwise.language.scene_graphs import words as known

_MODIFIERS = frozenset(("amod", "compound", "nummod", "nmod"))
"""Labels of words before a noun that describe it."""
_WITHIN = _MODIFIERS | {"conj", "npadvmod", "advmod", "dep", "quantmod"}
"""Labels of words below such a word that describe the noun as well: a snow covered mountain."""
_ARGUMENTS = frozenset(("nsubj", "nsubjpass", "dobj", "pobj", "dative"))
_NO_THINGS = known.DETERMINERS | known.PRONOUNS | known.WHO
_NO_ATTRIBUTES = _NO_THINGS | known.ADVERBS | known.PREPOSITIONS
EMPTY = known.PARTITIVES | known.FRAMES
"""Words that stand for the things that "of" joins to them."""
_LONGEST_PHRASE = max(map(len, known.PHRASES))


class Tree:
    """A document of spaCy's, by its ``tokens``.

    Attributes:
        relations: Relations of several words, by the place of each word: names, and the place of the last word.
    """

    def __init__(self, tokens: list[Any]) -> None:
        self.tokens = tokens
        self.relations: dict[int, tuple[tuple[str, ...], int]] = {}
        texts = [token.lower_ for token in tokens]
        for place in range(len(tokens)):
            for length in range(_LONGEST_PHRASE, 1, -1):
                names = known.PHRASES.get(tuple(texts[place : place + length]))
                if names and place not in self.relations:
                    whole = range(place, place + length)
                    self.relations |= dict.fromkeys(whole, (names, whole[-1]))

    def is_thing(self, token: Any) -> bool:
        """Whether a word names something that is in the picture."""
        if token.i in self.relations or token.lower_ in _NO_THINGS or not token.lower_[:1].isalpha():
            return False
        if token.lower_ in known.PERSONS:
            return True
        if any(child.dep_ == "det" and child.lower_ == "no" for child in token.children):
            return False
        if token.lower_ in known.FRAMES and self._is_frame(token):
            return False
        if token.pos_ in ("NOUN", "PROPN"):
            if token.dep_ in _MODIFIERS and token.head.i > token.i:
                return bool(token.dep_ == "compound" and self._is_of_participle(token))
            return bool(token.dep_ != "npadvmod" or token.head.dep_ != "amod")
        if token.dep_ == "conj" and token.pos_ == "ADJ":
            return token.head.pos_ == "ADJ" and self.is_thing(token.head)
        return bool(token.pos_ in ("ADJ", "VERB") and token.tag_ != "VBG" and token.dep_ in _ARGUMENTS)

    def _is_frame(self, token: Any) -> bool:
        """Whether "picture" means the picture itself: a picture shows, in the picture."""
        if token.dep_ == "nsubj":
            return token.head.lemma_ in known.SHOWING
        return token.dep_ in ("ROOT", "attr", "pobj") and self.things(token) == [token]

    @staticmethod
    def _is_of_participle(token: Any) -> bool:
        """Whether a noun below a participle with an object is its subject: a train crossing a bridge."""
        return token.head.tag_ == "VBG" and any(child.dep_ in ("dobj", "prep") for child in token.head.children)

    @staticmethod
    def is_be(token: Any) -> bool:
        """Whether a word is a form of be that is no auxiliary."""
        return token.lemma_.lower() in ("be", "'s") and token.dep_ not in ("aux", "auxpass")

    @staticmethod
    def acts(token: Any) -> bool:
        """Whether a word is a verb of an action, or a main "have"."""
        if token.pos_ == "AUX":
            return token.lemma_.lower() == "have" and token.dep_ not in ("aux", "auxpass")
        return token.pos_ == "VERB" and token.lower_[:1].isalpha() and token.dep_ not in (*_MODIFIERS, "aux")

    def name(self, token: Any) -> str:
        """The name of a thing: its lemma in lower case."""
        text = token.lower_
        before = self.tokens[token.i - 1].lower_ if token.i else ""
        whole = known.WHOLE.get((before, text))
        if whole:
            return known.WHOLE_ROOTS.get(whole, whole)
        if text in known.PERSONS or text == "people":
            return "person"
        root = str(text if text in known.PLURAL_ONLY else token.lemma_.lower())
        unknown = token.tag_ in ("NNS", "NNPS") and root == text and root not in known.PLURAL_ONLY
        return root[:-1] if unknown and root.endswith("s") and not root.endswith("ss") else root

    def things(self, token: Any) -> list[Any]:
        """The things that a noun stands for: of "group of people" the people."""
        if token.lower_ in EMPTY:
            below = [child for child in token.children if child.dep_ == "prep"]
            below += [deep for child in below if child.lower_ == "up" for deep in child.children]  # a close up of
            inner = [one for of in below if of.lower_ == "of" for one in of.children if one.dep_ in ("pobj", "pcomp")]
            found = [thing for one in inner for thing in (self.heads(one) or self._named(one))]
            if found:
                return found
        return [token]

    def heads(self, token: Any) -> list[Any]:
        """A noun and those that "and" joins to it, each as the thing that it stands for."""
        found = self.things(token) if self.is_thing(token) else []
        joined = [child for child in token.children if child.dep_ == "conj" and not self.acts(child)]
        return [*found, *(thing for child in joined for thing in self.heads(child))]

    def under(self, token: Any, *labels: str) -> list[Any]:
        """Things below a word with one of these labels."""
        return [thing for child in token.children if child.dep_ in labels for thing in self.heads(child)]

    def first(self, token: Any) -> Any:
        """The noun that others are joined to."""
        while token.dep_ == "conj" and self.is_thing(token.head) and token.head.i != token.i:
            token = token.head
        return token

    def said_of(self, noun: Any) -> list[str]:
        """Attributes of a noun from the words before it."""
        return [one for child in noun.children if child.dep_ in _MODIFIERS for one in self.attributes(child)]

    def attributes(self, token: Any) -> list[str]:
        """An attribute and those that belong to it."""
        found = []
        plain = (
            token.i not in self.relations
            and token.lower_[:1].isalnum()
            and token.pos_ not in ("DET", "PUNCT", "CCONJ", "PRON", "ADP", "PART")
            and token.lower_ not in _NO_ATTRIBUTES
        )
        if plain and not (token.pos_ == "ADV" and token.lower_.endswith("ly")):
            found = [known.NUMBERS.get(token.lower_, str(token.lower_))]
        for child in token.children:
            if child.dep_ in _WITHIN:
                found += self.attributes(child)
        return found

    def owners(self, prep: Any, token: Any) -> list[Any]:
        """Subjects of a relation that hangs on a noun: the noun, or the subject whose place it gives."""
        relation = self.names(prep)[0][0]
        if relation == "of":
            return [] if token.lower_ in EMPTY else [token]
        top = self.first(token)
        here = self.heads(top) if top.i != token.i else self.things(token)
        if relation in ("with", "without", "from"):
            return here
        if top.dep_ == "pobj" and top.head.dep_ == "prep":
            through = self.names(top.head)[0][0]
            near = through in ("to", "from", "at", "of") and relation in ("in", "at")
            return here if near else self._subjects_of(top.head) or here
        if top.dep_ == "dobj":
            moved = relation in known.INTO and top.head.lemma_ in known.MOVING
            return here if moved else self.subjects(top.head) or here
        return here

    def _subjects_of(self, prep: Any) -> list[Any]:
        """The things that a phrase of place describes."""
        head = prep.head
        while head.dep_ in ("prep", "advmod") and head.head.i != head.i:
            head = head.head
        if self.acts(head) or head.pos_ == "AUX":
            return self.subjects(head)
        return self.owners(prep, head) if self.is_thing(head) else []

    def names(self, prep: Any) -> tuple[tuple[str, ...], list[Any]]:
        """The relation that a preposition begins, and what depends on its last word."""
        names, last = self.relations.get(prep.i, ((), 0))
        if names:
            inner = [one for one in self.tokens if one.head.i == last and one.dep_ == "pobj"]
            return names, inner or [one for one in prep.subtree if one.dep_ == "pobj" and one.i > last][:1]
        return (str(prep.lower_),), list(prep.children)

    def _named(self, verb: Any) -> list[Any]:
        """Subjects that hang on the verb itself."""
        found = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
        found += [child for child in verb.children if child.dep_ == "compound" and self._is_of_participle(child)]
        return [one for child in found for one in self.heads(child)]

    def subjects(self, verb: Any) -> list[Any]:
        """Subjects of a verb: its own, those of the verb before, or the noun that it describes."""
        named = self._named(verb)
        if named:
            return named
        head = verb.head
        if head.i == verb.i:
            return self.shown(verb)
        if verb.dep_ in ("acl", "relcl"):
            if self.is_thing(head):
                return self._described(verb, head)
            return self.subjects(head) if self.acts(head) or head.pos_ == "AUX" else []
        if head.pos_ in ("VERB", "AUX"):
            seen = self.under(head, "dobj") if verb.dep_ == "ccomp" else []
            return seen or self.subjects(head)
        if self.is_thing(head):
            return self.heads(self.first(head))
        if head.dep_ in ("prep", "acomp", "advmod") and head.head.i != head.i:
            above = head.head
            return self.subjects(above) if self.acts(above) or above.pos_ == "AUX" else self.heads(above)
        return self.shown(verb)

    def shown(self, verb: Any) -> list[Any]:
        """The things that "there is" introduces."""
        return self.under(verb, "attr")

    def _described(self, verb: Any, noun: Any) -> list[Any]:
        """Subjects of a participle that hangs on a noun: a living subject rather than its bench."""
        top = self.first(noun)
        while verb.dep_ == "acl" and top.dep_ == "pobj" and top.head.lower_ == "of" and self.is_thing(top.head.head):
            if top.head.head.lower_ in EMPTY:
                break
            top = noun = top.head.head  # a row of planes waiting
        if verb.dep_ == "acl" and verb.tag_ == "VBG" and top.dep_ in ("pobj", "dobj"):
            above = self._subjects_of(top.head) if top.dep_ == "pobj" else self.subjects(top.head)
            living = [one for one in above if self.name(one) in known.LIVING]
            if living and self.name(noun) not in known.LIVING:
                return living
        return self.heads(top) if verb.dep_ == "acl" else self.things(noun)
