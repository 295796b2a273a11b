"""Scenes as pictures: flat, antialiased objects on a calm pale background."""

from __future__ import annotations

import math
from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw

from rungwise.scenes._description import RADIUS, Scene

Colour = tuple[int, int, int]
Point = tuple[float, float]

INK: dict[str, Colour] = {
    "red": (218, 32, 36),
    "orange": (255, 138, 0),
    "yellow": (255, 221, 20),
    "green": (24, 150, 62),
    "blue": (28, 98, 222),
    "purple": (122, 40, 168),
    "pink": (255, 132, 192),
    "black": (34, 34, 40),
}
BACKGROUNDS: tuple[tuple[Colour, Colour], ...] = (
    ((252, 252, 250), (236, 236, 232)),
    ((240, 247, 252), (222, 233, 241)),
    ((252, 247, 238), (240, 230, 216)),
    ((242, 249, 241), (225, 236, 224)),
    ((247, 243, 251), (231, 225, 238)),
)
"""Colours of each background at the top and at the bottom."""

_SUPERSAMPLE = 4
_PALE = (255, 255, 255)
_EDGE = 0.09
_RIM = {"cross": 0.2, "star": 0.2}
_WIDE_RIM = 0.32
# Stripes and dots are coarse enough to be told apart when a small object is 13 pixels wide (64 pixels a side).
_STRIPE_PERIOD = {"small": 0.72, "large": 0.5}
_DOT_PERIOD = {"small": 0.66, "large": 0.48}


def draw_scene(scene: Scene, side: int) -> Image.Image:
    """The picture of a scene: an RGB image of ``side`` pixels each way, the same for the same scene and side.

    >>> from rungwise.scenes._description import SceneObject
    >>> star = SceneObject("star", "red", "small", "plain", 0.25, 0.5)
    >>> picture = draw_scene(Scene((star,)), 64)
    >>> picture.size, picture.getpixel((16, 32)), picture.getpixel((48, 0))
    ((64, 64), (218, 32, 36), (252, 252, 250))
    """
    picture = _background(scene.background, side).copy()
    for thing in scene.objects:
        sprite = _sprite(thing.shape, thing.colour, thing.size, thing.texture, side)
        left, top = (round(centre * side - sprite.width / 2) for centre in (thing.x, thing.y))
        picture.paste(sprite, (left, top), sprite)
    return picture


@lru_cache(maxsize=16)
def _background(which: int, side: int) -> Image.Image:
    top, bottom = BACKGROUNDS[which]
    ramp = Image.linear_gradient("L").resize((side, side), Image.Resampling.BILINEAR)
    return Image.composite(Image.new("RGB", ramp.size, bottom), Image.new("RGB", ramp.size, top), ramp)


@lru_cache(maxsize=1024)
def _sprite(shape: str, colour: str, size: str, texture: str, side: int) -> Image.Image:
    """One object, RGBA, drawn large and shrunk. Places are whole pixels, so each sprite is drawn once."""
    extent = round(2 * RADIUS[size] * side)
    canvas = (extent * _SUPERSAMPLE, extent * _SUPERSAMPLE)
    radius = canvas[0] / 2
    outline = [(radius * (1 + x), radius * (1 + y)) for x, y in _outline(shape)]
    inside = Image.new("L", canvas, 0)
    ImageDraw.Draw(inside).polygon(outline, fill=255)
    ink = INK[colour]
    dark: Colour = (ink[0] * 7 // 10, ink[1] * 7 // 10, ink[2] * 7 // 10)
    face = Image.new("RGB", canvas, ink)
    visible = inside
    if texture == "hollow":
        visible = _band(inside, outline, _RIM.get(shape, _WIDE_RIM) * radius)
    elif texture != "plain":
        pattern = _stripes(canvas, _STRIPE_PERIOD[size] * radius)
        if texture == "dotted":
            pattern = _dots(canvas, _DOT_PERIOD[size] * radius)
        face.paste(_PALE, mask=pattern)
    face.paste(dark, mask=_band(inside, outline, _EDGE * radius))
    sprite = face.convert("RGBA")
    sprite.putalpha(visible)
    # Premultiplied, so that what lies outside the shape does not bleed into its edge.
    return sprite.convert("RGBa").reduce(_SUPERSAMPLE).convert("RGBA")


def _band(inside: Image.Image, outline: list[Point], width: float) -> Image.Image:
    """The part of a shape that is nearer than ``width`` to its outline."""
    line = Image.new("L", inside.size, 0)
    draw = ImageDraw.Draw(line)
    draw.line([*outline, outline[0]], fill=255, width=round(2 * width))
    for x, y in outline:
        draw.ellipse((x - width, y - width, x + width, y + width), fill=255)
    return ImageChops.multiply(line, inside)


def _stripes(canvas: tuple[int, int], period: float) -> Image.Image:
    """Slanting pale stripes, as wide as the spaces between them."""
    pattern = Image.new("L", canvas, 0)
    draw = ImageDraw.Draw(pattern)
    extent = canvas[0]
    step = period * math.sqrt(2)
    for n in range(-1, math.ceil(2 * extent / step) + 1):
        start = extent - n * step - step / 4
        draw.polygon(
            [(start, extent), (start + step / 2, extent), (start + step / 2 + extent, 0), (start + extent, 0)],
            fill=255,
        )
    return pattern


def _dots(canvas: tuple[int, int], period: float) -> Image.Image:
    """Pale dots on a square grid, one of them at the centre."""
    pattern = Image.new("L", canvas, 0)
    draw = ImageDraw.Draw(pattern)
    middle, radius = canvas[0] / 2, period * 0.3
    reach = math.ceil(middle / period)
    for row in range(-reach, reach + 1):
        for column in range(-reach, reach + 1):
            x, y = middle + column * period, middle + row * period
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return pattern


@lru_cache(maxsize=8)
def _outline(shape: str) -> tuple[Point, ...]:
    """Corners within -1..1, y downwards."""
    if shape == "square":
        return _symmetric((0.86, 0.86))
    if shape == "triangle":
        return (0.0, -0.95), (0.98, 0.8), (-0.98, 0.8)
    if shape == "cross":
        return _symmetric((0.38, 0.95), (0.38, 0.38), (0.95, 0.38))
    turns = [2 * math.pi * n / 120 for n in range(120)]
    if shape == "circle":
        return tuple((0.96 * math.cos(t), 0.96 * math.sin(t)) for t in turns)
    if shape == "heart":
        return tuple((_heart_x(t) / 16.5, (-_heart_y(t) - 2.5) / 16.5) for t in turns)
    points = [(1.0 if n % 2 == 0 else 0.5, math.pi * n / 5) for n in range(10)]
    return tuple((r * math.sin(t), 0.06 - r * math.cos(t)) for r, t in points)


def _symmetric(*quarter: Point) -> tuple[Point, ...]:
    """Mirror the corners of the lower right quarter, given clockwise from below, into all four quarters."""
    back = quarter[::-1]
    return (
        *((x, -y) for x, y in quarter),
        *back,
        *((-x, y) for x, y in quarter),
        *((-x, -y) for x, y in back),
    )


def _heart_x(turn: float) -> float:
    return 16 * math.sin(turn) ** 3


def _heart_y(turn: float) -> float:
    return 13 * math.cos(turn) - 5 * math.cos(2 * turn) - 2 * math.cos(3 * turn) - math.cos(4 * turn)
