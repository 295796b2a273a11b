"""Comparison of a statement with a picture: the facts that hold, and what the picture shows in place of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from rungwise.scenes._description import MAX_OBJECTS, RELATIONS, Mention, Scene, Statement


@dataclass(frozen=True)
class Facts:
    """The facts of a statement, compared with one picture.

    Attributes:
        true: Number of facts that hold.
        stated: Number of stated facts.
        wrong: Errors of the statement, in a few words each, such as ``"green, not blue"``.
    """

    true: int
    stated: int
    wrong: tuple[str, ...]


def facts_in(statement: Statement, scene: Scene) -> Facts:
    """Compare every fact of a statement with a picture, as :mod:`rungwise.scenes._relevance` does.

    The mentioned objects are matched with those of the picture that make the most facts true.

    >>> from rungwise.scenes._description import SceneObject
    >>> star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
    >>> heart = SceneObject("heart", "blue", "large", "plain", 0.7, 0.5)
    >>> said = Statement((Mention("heart", "red"), Mention("star")), (("right of", 0, 1),))
    >>> facts_in(said, Scene((star, heart)))
    Facts(true=3, stated=4, wrong=('heart is blue, not red',))
    """
    most = max(
        (_held(statement, scene, chosen) for chosen in permutations(range(MAX_OBJECTS), len(statement.mentions))),
        key=lambda held: held[0],
    )
    return Facts(most[0], statement.facts, tuple(most[1]))


def _held(statement: Statement, scene: Scene, chosen: tuple[int, ...]) -> tuple[int, list[str]]:
    """Number of facts that hold, and the errors, if mention n means object ``chosen[n]``; beyond the last is none."""
    true, wrong = 0, []
    for mention, which in zip(statement.mentions, chosen, strict=True):
        if which >= len(scene.objects):
            wrong.append(f"no {_named(mention)}")
            continue
        shown = scene.objects[which]
        for name, value in mention.stated.items():
            true += getattr(shown, name) == value
        wrong += _differences(mention, {name: getattr(shown, name) for name in mention.stated})
    for relation, a, b in statement.relations:
        if max(chosen[a], chosen[b]) >= len(scene.objects):
            continue  # that an object is missing has been said
        holds = relation in (found := scene.relations(chosen[a], chosen[b]))
        true += holds
        if not holds:
            opposed = [name for name in found if _AXIS[name] == _AXIS[relation]]
            wrong.append(f"{' and '.join(opposed or found)}, not {relation}")
    if statement.count is not None:
        true += statement.count == len(scene.objects)
        if statement.count != len(scene.objects):
            wrong.append(f"{len(scene.objects)} in all, not {statement.count}")
    return true, wrong


_AXIS = {relation: place // 2 for place, relation in enumerate(RELATIONS)}


def _differences(mention: Mention, shown: dict[str, str]) -> Iterator[str]:
    for name, value in mention.stated.items():
        if shown[name] == value:
            continue
        if name == "shape":
            yield f"{shown[name]}, not {value}"
        else:
            noun = shown.get("shape")
            yield f"{noun} is {shown[name]}, not {value}" if noun else f"{shown[name]}, not {value}"


def _named(mention: Mention) -> str:
    stated = mention.stated
    words = [stated[name] for name in ("size", "texture", "colour") if name in stated]
    return " ".join([*words, stated.get("shape", "object")])
