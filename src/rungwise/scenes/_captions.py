"""English captions of scenes from a small grammar, each made together with its statement.

A caption names one to three objects of a scene with some of their attributes. Everything it states is true of the
scene; it may be true, or partly true, of other scenes too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rungwise.scenes._description import Mention, Scene, SceneObject, Statement

T = TypeVar("T")
Caption = tuple[str, Statement]

NUMBERS = {1: "one", 2: "two", 3: "three"}
"""Words for the number of objects."""

WORDS = {
    "circle": ("circle", "circle", "disc"),
    "cross": ("cross", "cross", "plus sign"),
    "small": ("small", "small", "little"),
    "large": ("large", "large", "big"),
    "plain": ("plain", "solid"),
    "dotted": ("dotted", "dotted", "spotted"),
    "hollow": ("hollow", "hollow", "outlined"),
    "purple": ("purple", "purple", "violet"),
}
"""Words for each value, the usual one more often; other values are their own word."""

NO_SHAPE = ("shape", "object", "figure")
"""Nouns that leave the shape open."""

_PLURALS = {"cross": "crosses"}
_STATED = {"shape": 0.93, "colour": 0.85, "size": 0.45, "texture": 0.4}

_ONE = (
    "{a}",
    "{a}",
    "there is {a}",
    "a picture of {a}",
    "a drawing of {a}",
    "we can see {a}",
    "{a} on a pale background",
    "here is {a}",
)
_ALONE = ("{a} and nothing else", "just one object, {a}", "{a} all alone", "only {a}")
_ONE_OF = (
    "{n} objects, one of them {a}",
    "{n} shapes, one of which is {a}",
    "one of the {n} objects is {a}",
    "among {n} shapes there is {a}",
)
_TWO = (
    "{a} and {b}",
    "there is {a} and {b}",
    "a picture of {a} and {b}",
    "{a} together with {b}",
    "{a} as well as {b}",
    "we can see {a} and {b}",
)
_EXACTLY_TWO = ("two shapes: {a} and {b}", "two objects, {a} and {b}", "only two shapes, {a} and {b}")
_EXACTLY_TWO_RELATED = ("two shapes, {a} {r} {b}", "two objects: {a} {r} {b}")
_THREE = (
    "{a}, {b} and {c}",
    "there are three shapes: {a}, {b} and {c}",
    "three objects: {a}, {b} and {c}",
    "a picture with {a}, {b} and {c}",
)
_RELATED = (
    "{a} {r} {b}",
    "{a} {r} {b}",
    "{a} {r} {b}",
    "there is {a} {r} {b}",
    "{a} is {r} {b}",
    "{a} can be seen {r} {b}",
    "a drawing of {a} {r} {b}",
    "{r} {b} there is {a}",
)
_GROUP = ("{g}", "there are {g}", "a picture with {g}", "we can see {g}")
RELATION_WORDS = {
    ("left of",): ("left of", "to the left of", "on the left of"),
    ("right of",): ("right of", "to the right of", "on the right of"),
    ("above",): ("above", "above", "over"),
    ("below",): ("below", "below", "under", "beneath"),
    ("left of", "above"): ("above and to the left of", "to the upper left of"),
    ("right of", "above"): ("above and to the right of", "to the upper right of"),
    ("left of", "below"): ("below and to the left of", "to the lower left of"),
    ("right of", "below"): ("below and to the right of", "to the lower right of"),
}
"""Phrases for each combination of relations."""


def write_caption(scene: Scene, rng: np.random.Generator) -> Caption:
    """One caption of a scene and its statement.

    >>> star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
    >>> text, statement = write_caption(Scene((star,)), np.random.default_rng(3))
    >>> text
    'just one object, a small red star'
    >>> statement
    Statement(mentions=(Mention(shape='star', colour='red', size='small', texture=None),), relations=(), count=1)
    """
    chance = rng.random()
    if len(scene.objects) == 1:
        return _about_one(scene, rng, counted=chance < 0.25)
    if chance < 0.2:
        return _about_one(scene, rng, counted=chance < 0.08)
    if chance < 0.28:
        return _about_group(scene, rng) or _about_two(scene, rng, related=True)
    if chance < 0.38 and len(scene.objects) == 3:
        return _about_three(scene, rng)
    return _about_two(scene, rng, related=chance < 0.85)


def write_captions(scene: Scene, count: int, rng: np.random.Generator) -> list[Caption]:
    """Several captions. A caption with the same words as one before it is drawn again, up to 8 times.

    The first captions are the same whatever the count.
    """
    captions: list[Caption] = []
    seen: set[str] = set()
    for _ in range(count):
        for _ in range(8):
            caption = write_caption(scene, rng)
            if caption[0] not in seen:
                break
        seen.add(caption[0])
        captions.append(caption)
    return captions


def write_query(scene: Scene, subject: int, other: int, rng: np.random.Generator) -> Caption:
    """A search in plain words for two objects with colour and shape, their relation, and sometimes one size.

    >>> star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
    >>> heart = SceneObject("heart", "orange", "large", "plain", 0.7, 0.5)
    >>> write_query(Scene((star, heart)), 1, 0, np.random.default_rng(0))[0]
    'an orange heart right of a red star'
    """
    a, b = scene.objects[subject], scene.objects[other]
    size = a.size if rng.random() < 0.5 else None
    relation = _pick(scene.relations(subject, other), rng)
    mentions = Mention(a.shape, a.colour, size), Mention(b.shape, b.colour)
    text = " ".join((_plainly(mentions[0]), relation, _plainly(mentions[1])))
    return text, Statement(mentions, ((relation, 0, 1),))


def _about_one(scene: Scene, rng: np.random.Generator, counted: bool) -> Caption:
    mention = _mention(_pick(scene.objects, rng), rng)
    n = len(scene.objects)
    templates = _ONE if not counted else _ALONE if n == 1 else _ONE_OF
    text = _pick(templates, rng).format(a=_phrase(mention, rng, may_trail=not counted), n=NUMBERS[n])
    return text, Statement((mention,), count=n if counted else None)


def _about_two(scene: Scene, rng: np.random.Generator, related: bool) -> Caption:
    first, second = (int(position) for position in rng.permutation(len(scene.objects))[:2])
    mentions = tuple(_mention(scene.objects[position], rng) for position in (first, second))
    if mentions[0] == mentions[1]:
        colour, shape = scene.objects[first].kind
        mentions = replace(mentions[0], colour=colour, shape=shape), mentions[1]
    count = 2 if len(scene.objects) == 2 and rng.random() < 0.15 else None
    a, b = (_phrase(mention, rng) for mention in mentions)
    if not related:
        return _pick(_TWO if count is None else _EXACTLY_TWO, rng).format(a=a, b=b), Statement(mentions, count=count)
    names = scene.relations(first, second)
    if len(names) == 2 and rng.random() < 0.4:
        names = (_pick(names, rng),)
    template = _pick(_RELATED if count is None else _EXACTLY_TWO_RELATED, rng)
    text = template.format(a=a, b=b, r=_pick(RELATION_WORDS[names], rng))
    return text, Statement(mentions, tuple((name, 0, 1) for name in names), count)


def _about_three(scene: Scene, rng: np.random.Generator) -> Caption:
    mentions = tuple(_mention(scene.objects[int(p)], rng, brief=True) for p in rng.permutation(3))
    a, b, c = (_phrase(mention, rng) for mention in mentions)
    template = _pick(_THREE, rng)
    return template.format(a=a, b=b, c=c), Statement(mentions, count=3 if "three" in template else None)


def _about_group(scene: Scene, rng: np.random.Generator) -> Caption | None:
    """Two objects that share a shape, a colour or a size, such as "two stars, one red and one blue"."""
    shared: list[Callable[[SceneObject], Mention]] = [
        lambda o: Mention(shape=o.shape),
        lambda o: Mention(colour=o.colour),
        lambda o: Mention(size=o.size, texture=o.texture),
    ]
    groups = [
        (common, members)
        for common in shared
        for key in dict.fromkeys(common(o) for o in scene.objects)
        if len(members := [o for o in scene.objects if common(o) == key]) == 2
    ]
    if not groups:
        return None
    common, members = _pick(groups, rng)
    mentions = tuple(common(o) for o in members)
    words = _plural(mentions[0], rng)
    if mentions[0].colour is None and rng.random() < 0.6:
        a, b = members if rng.random() < 0.5 else members[::-1]
        if a.colour != b.colour:
            words += f", one {_word(a.colour, rng)} and one {_word(b.colour, rng)}"
            mentions = tuple(replace(common(o), colour=o.colour) for o in (a, b))
    return _pick(_GROUP, rng).format(g=words), Statement(mentions)


def _mention(thing: SceneObject, rng: np.random.Generator, brief: bool = False) -> Mention:
    """Some of an object's attributes, colour or shape always among them; ``brief`` halves the chances of the others."""
    chances = rng.random(4) * (1.0, 1.0, 2.0 if brief else 1.0, 2.0 if brief else 1.0)
    stated = {
        name: getattr(thing, name)
        for (name, share), chance in zip(_STATED.items(), chances.tolist(), strict=True)
        if chance < share
    }
    if "shape" not in stated:
        stated["colour"] = thing.colour
    return Mention(**stated)


def _phrase(mention: Mention, rng: np.random.Generator, may_trail: bool = False) -> str:
    """A phrase such as "a small striped red circle"; ``may_trail`` allows "a small red circle with stripes"."""
    texture = mention.texture
    trail = ""
    if may_trail and texture in ("striped", "dotted") and rng.random() < 0.4:
        trail = " with stripes" if texture == "striped" else " with dots"
        texture = None
    adjectives = [_word(value, rng) for value in (mention.size, texture, mention.colour) if value]
    noun = _word(mention.shape, rng) if mention.shape else _pick(NO_SHAPE, rng)
    return _with_article(" ".join([*adjectives, noun])) + trail


def _plainly(mention: Mention) -> str:
    """The phrase without synonyms."""
    return _with_article(" ".join(mention.stated[n] for n in ("size", "colour", "shape") if n in mention.stated))


def _plural(mention: Mention, rng: np.random.Generator) -> str:
    adjectives = [_word(v, rng) for v in (mention.size, mention.texture, mention.colour) if v]
    noun = _word(mention.shape, rng) if mention.shape else _pick(NO_SHAPE, rng)
    return " ".join(["two", *adjectives, plural_of(noun)])


def plural_of(noun: str) -> str:
    """The plural of a noun."""
    return _PLURALS.get(noun, noun + "s")


def frame_words() -> frozenset[str]:
    """Words of sentences around the objects, which state nothing by themselves."""
    templates = (*_ONE, *_ALONE, *_ONE_OF, *_TWO, *_EXACTLY_TWO, *_EXACTLY_TWO_RELATED, *_THREE, *_RELATED, *_GROUP)
    return frozenset(re.findall(r"[a-z]+", re.sub(r"\{.\}", "", " ".join(templates))))


def _with_article(words: str) -> str:
    return ("an " if words[0] in "aeiou" else "a ") + words


def _word(value: str, rng: np.random.Generator) -> str:
    words = WORDS.get(value)
    return _pick(words, rng) if words else value


def _pick(options: Sequence[T], rng: np.random.Generator) -> T:
    return options[int(rng.random() * len(options))]
