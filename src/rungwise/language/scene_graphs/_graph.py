"""The scene graph of a caption as a set of tuples (SPICE, Anderson et al. 2016, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Fact = tuple[str, ...]
"""One of (object,), (object, attribute) and (subject, relation, object), of lemmas in lower case."""

SceneGraph = frozenset[Fact]
"""The facts of a caption, each once."""

Parser = Callable[[str], SceneGraph]
"""Function from a caption to its facts."""

_TURNED = {
    "right of": "left of",
    "below": "above",
    "beneath": "above",
    "under": "above",
    "underneath": "above",
    "behind": "in front of",
    "in back of": "in front of",
}
"""Relations, with those that mean the same with subject and object exchanged."""

_SAME = {
    "to the left of": "left of",
    "to the right of": "right of",
    "over": "above",
    "beside": "next to",
    "near": "next to",
    "by": "next to",
    "close to": "next to",
    "alongside": "next to",
    "inside": "in",
    "inside of": "in",
    "within": "in",
    "into": "in",
    "upon": "on",
    "on top of": "on",
    "atop": "on",
    "onto": "on",
}
"""Relations, with those that mean nearly the same in a caption."""

_EITHER_WAY = frozenset(("next to", "between"))
"""Relations that hold in both directions."""


def canonical(fact: Fact) -> Fact:
    """The canonical form of a fact, shared by all facts that mean the same.

    "A right of B" means "B left of A", and "A near B" means "B next to A".

    >>> canonical(("square", "right of", "circle")), canonical(("dog", "near", "cat"))
    (('circle', 'left of', 'square'), ('cat', 'next to', 'dog'))
    """
    if len(fact) != 3:
        return fact
    first, relation, second = fact
    relation = _SAME.get(relation, relation)
    if relation in _TURNED:
        return second, _TURNED[relation], first
    if relation in _EITHER_WAY and second < first:
        return second, relation, first
    return first, relation, second


def merged(graphs: Iterable[SceneGraph]) -> SceneGraph:
    """The facts of several captions of one picture, each once."""
    return frozenset(fact for graph in graphs for fact in graph)


def spoken(fact: Fact) -> str:
    """A fact in readable form.

    >>> spoken(("dog",)), spoken(("dog", "red")), spoken(("dog", "on", "bed"))
    ('dog', 'dog: red', 'dog - on - bed')
    """
    if len(fact) == 2:
        return f"{fact[0]}: {fact[1]}"
    return " - ".join(fact)
