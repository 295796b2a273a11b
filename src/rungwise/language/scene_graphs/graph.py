"""The scene graph of a caption as a set of tuples (SPICE, Anderson et al. 2016, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Fact = tuple[str, ...]
"""One of (object,), (object, attribute) and (subject, relation, object), of lemmas in lower case."""

SceneGraph = frozenset[Fact]
"""The facts of a caption, each once."""

Parser = Callable[[str], SceneGraph]
"""A caption to its facts."""

_TURNED = {
    "right of": "left of",
    "below": "above",
    "beneath": "above",
    "under": "above",
    "underneath": "above",
    "behind": "in front of",
    "in back of": "in front of",
}
"""A relation and the one that says the same with subject and object exchanged."""

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
"""Relations that say nearly the same in a caption."""

_EITHER_WAY = frozenset(("next to", "between"))
"""Relations that hold the other way round as well."""


def canonical(fact: Fact) -> Fact:
    """A fact in the one way that all ways to say it are brought to.

    "A right of B" says what "B left of A" says, and "A near B" what "B next to A" says.

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
    """The facts of several captions of one picture, each once.

    >>> sorted(merged([frozenset({("dog",)}), frozenset({("dog",), ("dog", "red")})]))
    [('dog',), ('dog', 'red')]
    """
    return frozenset(fact for graph in graphs for fact in graph)


def spoken(fact: Fact) -> str:
    """A fact as people read it.

    >>> spoken(("dog",)), spoken(("dog", "red")), spoken(("dog", "on", "bed"))
    ('dog', 'dog: red', 'dog - on - bed')
    """
    if len(fact) == 2:
        return f"{fact[0]}: {fact[1]}"
    return " - ".join(fact)
