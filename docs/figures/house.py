"""Draws docs/images/house.svg: the rooms from the ground up, and the rooms inside them.

Run it after a change to the rooms: python docs/figures/house.py
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.rooms import FLOORS, INSIDE  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "house.svg"
WIDTH, LEFT, FLOOR, CEILING = 1220, 118, 40, 26
LETTER = 7.3
"""Width of a letter, about."""

IDEAS = {
    "core": "ground floor: files, threads, limits",
    "similarity": "S from vectors, regions and words",
    "losses": "what one side's queries lose",
    "metrics": "one value per query",
    "calibration": "where relevance ends",
    "data": "images with captions",
    "language": "words without pictures",
    "relevance": "R from words, models, people",
    "scenes": "the generated world",
    "encoders": "pictures and texts to vectors",
    "models": "pair scorers and dual encoders",
    "evaluation": "what a model's rankings are worth",
    "training": "batches to weights",
    "runs": "runs, seeds and tables",
    "doctor": "what is wrong, and the cure",
    "index": "vectors kept and found",
    "quality": "what a live index misses",
    "planning": "what a collection takes",
    "serving": "the interface over HTTP",
    "grading": "people asked",
    "demo": "two models side by side",
    "cli": "commands",
}


def inner_rooms(room: str) -> list[str]:
    """Names of the rooms inside a room, from the ground up."""
    return [one for one in INSIDE.get(room, ()) if (ROOT / "src" / "rungwise" / room / one / "__init__.py").is_file()]


def drawn() -> str:
    """The picture as SVG text."""
    rooms = [room for room in FLOORS if room in IDEAS]
    height = CEILING + FLOOR * len(rooms) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
        ' font-size="12">',
        "<title>The rooms of rungwise from the ground up, with the rooms inside them</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="10" y="17" fill="#555555">A room imports from rooms below it. Boxes are the rooms inside a room,'
        " lower ones first.</text>",
    ]
    for place, room in enumerate(reversed(rooms)):
        top = CEILING + FLOOR * place
        inner = inner_rooms(room)
        parts.append(
            f'<rect x="8" y="{top}" width="{WIDTH - 16}" height="{FLOOR - 5}" rx="4" fill="#eef3f8" stroke="#b8c7d6"/>'
        )
        parts.append(f'<text x="18" y="{top + 22}" font-weight="bold" fill="#1b3a57">{escape(room)}</text>')
        x = LEFT
        for one in inner:
            width = len(one) * LETTER + 14
            parts.append(
                f'<rect x="{x:.0f}" y="{top + 6}" width="{width:.0f}" height="{FLOOR - 17}" rx="3" fill="#ffffff"'
                ' stroke="#8fa7bf"/>'
            )
            parts.append(f'<text x="{x + 7:.0f}" y="{top + 22}" fill="#1b3a57">{escape(one)}</text>')
            x += width + 6
        parts.append(
            f'<text x="{WIDTH - 20}" y="{top + 22}" text-anchor="end" fill="#555555">{escape(IDEAS[room])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
