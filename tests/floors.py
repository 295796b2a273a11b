"""The floors of docs/architecture.md as data: for the tests that hold them, and for ``start.py``."""

FLOORS = (
    "core",
    "similarity",
    "losses",
    "metrics",
    "calibration",
    "data",
    "language",
    "relevance",
    "scenes",
    "encoders",
    "models",
    "evaluation",
    "training",
    "doctor",
    "index",
    "quality",
    "planning",
    "serving",
    "grading",
    "demo",
    "cli",
    "__main__",
    "",  # the package itself, which nothing below may import
)
"""Rooms from the ground up; a room imports from lower ones only."""

APART = {
    "metrics": {"similarity", "losses"},
    "calibration": {"similarity", "losses"},
    "data": {"similarity", "losses", "metrics", "calibration"},
    "language": {"similarity", "losses", "metrics", "calibration", "data"},
    "relevance": {"similarity", "losses", "metrics", "calibration"},
    "scenes": {"similarity", "losses", "metrics", "calibration"},
    "encoders": {"losses", "metrics", "calibration", "relevance", "scenes"},
    "models": {"losses", "metrics", "relevance", "scenes"},
    "evaluation": {"losses", "scenes", "encoders", "models"},
    "doctor": {"losses", "metrics", "calibration", "similarity", "evaluation"},
    "index": {"losses", "metrics", "relevance", "scenes", "encoders", "evaluation", "training", "doctor"},
    "quality": {"losses", "scenes", "encoders", "training", "doctor"},
    "planning": {"losses", "metrics", "calibration", "language", "relevance", "scenes", "encoders", "evaluation"}
    | {"training", "doctor", "quality"},
    "serving": {"losses", "metrics", "relevance", "scenes", "encoders", "evaluation", "training", "doctor", "quality"}
    | {"planning"},
}
"""Lower rooms that are none of a room's business."""


def allowed(room: str) -> set[str]:
    """Other rooms that a room may import."""
    return set(FLOORS[: FLOORS.index(room)]) - APART.get(room, set()) - {""}


def with_those_above(rooms: set[str]) -> set[str]:
    """These rooms and all that may come to import them, through other rooms too."""
    found = set(rooms)
    for room in FLOORS:  # from the ground up, so that one pass finds what stands on what was found
        if allowed(room) & found:
            found.add(room)
    return found
