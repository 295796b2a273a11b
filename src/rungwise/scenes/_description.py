"""Contents of a generated scene and statements of its captions, as facts rather than words.

A picture holds 1 to 3 objects, each with a shape, a colour, a size, a texture and a place. A caption states some of
that: objects it mentions, each with the attributes it names; relations between the objects it mentions; sometimes
the number of objects. Both are made before the picture is drawn and the words are chosen, so nothing is ever parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from rungwise.core.output import short_repr

SHAPES = ("circle", "square", "triangle", "star", "cross", "heart")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black")
SIZES = ("small", "large")
TEXTURES = ("plain", "striped", "dotted", "hollow")
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "shape": SHAPES,
    "colour": COLOURS,
    "size": SIZES,
    "texture": TEXTURES,
}
"""The attributes of an object and the values of each."""

RELATIONS = ("left of", "right of", "above", "below")
MAX_OBJECTS = 3
RADIUS: Mapping[str, float] = {"small": 0.1, "large": 0.2}
"""Half the extent of an object, as a share of the picture's side."""

CLEAR_GAP = 0.05
"""Smallest gap between two objects along an axis, as a share of the side, where one is left of (above) the other."""

Kind = tuple[str, str]
"""Colour and shape, such as ``("red", "circle")``: what is held out in pairs."""


@dataclass(frozen=True, slots=True)
class SceneObject:
    """One object of a picture; the centre ``x`` (from the left) and ``y`` (from the top) are shares of the side."""

    shape: str
    colour: str
    size: str
    texture: str
    x: float
    y: float

    @property
    def kind(self) -> Kind:
        """Colour and shape."""
        return self.colour, self.shape


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of one picture.

    Attributes:
        objects: 1 to 3 objects, apart from each other along at least one axis.
        background: Number of one of the calm backgrounds, counted from 0.

    >>> left, right = (SceneObject("star", "red", "small", "plain", x, 0.5) for x in (0.2, 0.8))
    >>> Scene((left, right)).relations(0, 1)
    ('left of',)
    """

    objects: tuple[SceneObject, ...]
    background: int = 0

    __repr__ = short_repr

    def relations(self, subject: int, other: int) -> tuple[str, ...]:
        """The relations in which object ``subject`` stands to object ``other``: one, or two on a diagonal.

        A relation holds where the extents are apart by :data:`CLEAR_GAP` along its axis. Generated scenes have no
        doubtful cases: along every axis a pair is that far apart, or shares at least half the extent of the smaller.
        """
        a, b = self.objects[subject], self.objects[other]
        apart = RADIUS[a.size] + RADIUS[b.size] + CLEAR_GAP - 1e-9
        found = []
        if abs(b.x - a.x) >= apart:
            found.append("left of" if a.x < b.x else "right of")
        if abs(b.y - a.y) >= apart:
            found.append("above" if a.y < b.y else "below")
        return tuple(found)

    def to_plain(self) -> dict[str, Any]:
        """Values that JSON can hold; :meth:`from_plain` reads them back."""
        rows = [[o.shape, o.colour, o.size, o.texture, o.x, o.y] for o in self.objects]
        return {"objects": rows, "background": self.background}

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Scene:
        """Read the values of :meth:`to_plain`.

        Raises:
            ValueError, KeyError, TypeError: If they describe no scene that can be drawn.
        """
        objects = tuple(SceneObject(*row) for row in values["objects"])
        for one in objects:
            _check_attributes({name: getattr(one, name) for name in ATTRIBUTES})
            if not all(isinstance(at, int | float) and 0 <= at <= 1 for at in (one.x, one.y)):
                raise ValueError(f"an object at {one.x!r}, {one.y!r}")
        if not (1 <= len(objects) <= MAX_OBJECTS and isinstance(values["background"], int)):
            raise ValueError(f"{len(objects)} objects on background {values['background']!r}")
        return cls(objects, values["background"])


@dataclass(frozen=True, slots=True)
class Mention:
    """One object as a caption names it; ``None`` for attributes that it leaves open.

    >>> Mention(shape="star", size="small").stated
    {'shape': 'star', 'size': 'small'}
    """

    shape: str | None = None
    colour: str | None = None
    size: str | None = None
    texture: str | None = None

    @property
    def stated(self) -> dict[str, str]:
        """The attributes that are stated, by name."""
        return {name: value for name in ATTRIBUTES if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True)
class Statement:
    """All that one caption states.

    Attributes:
        mentions: The objects it names, each a different one: "two stars" mentions a star and another star.
        relations: (relation, position of the subject among the mentions, position of the other).
        count: The number of objects in the whole picture, where the caption gives it.
    """

    mentions: tuple[Mention, ...]
    relations: tuple[tuple[str, int, int], ...] = ()
    count: int | None = None

    __repr__ = short_repr

    @property
    def facts(self) -> int:
        """Number of stated facts: attributes, relations, and the count."""
        attributes = sum(len(mention.stated) for mention in self.mentions)
        return attributes + len(self.relations) + (self.count is not None)

    def is_true_of(self, scene: Scene) -> bool:
        """Whether every fact holds in the picture, each mention being a different object of it.

        >>> star = SceneObject("star", "red", "small", "plain", 0.2, 0.5)
        >>> [Statement((Mention("star"),), count=n).is_true_of(Scene((star,))) for n in (1, 2)]
        [True, False]
        """
        if self.count not in (None, len(scene.objects)):
            return False
        return any(
            all(
                getattr(scene.objects[which], name) == value
                for which, mention in zip(chosen, self.mentions, strict=True)
                for name, value in mention.stated.items()
            )
            and all(name in scene.relations(chosen[a], chosen[b]) for name, a, b in self.relations)
            for chosen in permutations(range(len(scene.objects)), len(self.mentions))
        )

    def to_plain(self) -> dict[str, Any]:
        """Values that JSON can hold, with only what is stated; :meth:`from_plain` reads them back."""
        plain: dict[str, Any] = {"mentions": [mention.stated for mention in self.mentions]}
        if self.relations:
            plain["relations"] = [list(relation) for relation in self.relations]
        if self.count is not None:
            plain["count"] = self.count
        return plain

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Statement:
        """Read the values of :meth:`to_plain`.

        Raises:
            ValueError, KeyError, TypeError: If no caption can state them.
        """
        for stated in values["mentions"]:
            _check_attributes(stated)
        found = cls(
            tuple(Mention(**stated) for stated in values["mentions"]),
            tuple((name, a, b) for name, a, b in values.get("relations", ())),
            values.get("count"),
        )
        slots = range(len(found.mentions))
        for name, a, b in found.relations:
            if name not in RELATIONS or a == b or a not in slots or b not in slots:
                raise ValueError(f"a relation {name!r} of {a!r} to {b!r}")
        if len(slots) > MAX_OBJECTS or found.count not in (None, *range(1, MAX_OBJECTS + 1)):
            raise ValueError(f"{len(slots)} mentions of {found.count!r} objects")
        return found


def _check_attributes(stated: Mapping[str, Any]) -> None:
    for name, value in stated.items():
        if value not in ATTRIBUTES[name]:
            raise ValueError(f"{name} {value!r}")
