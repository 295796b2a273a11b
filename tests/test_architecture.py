"""The floors of docs/architecture.md, held to: what a room may import, and that no modules need each other."""

import subprocess
import sys

import pytest

from tests.house import PACKAGE, imports_of, modules, room_of

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


def test_every_room_has_a_floor():
    assert {room_of(module) for module in modules()} <= set(FLOORS), "give the new room its place among the floors"


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_from_lower_floors_only(room):
    """Imports inside functions and those for type checkers count as well."""
    mine = [module for module in modules() if room_of(module) == room]
    assert mine, f"there is no room {room!r}"
    allowed = {room, *FLOORS[: FLOORS.index(room)]} - APART.get(room, set()) - {""}
    wrong = [
        f"{modules()[module].relative_to(PACKAGE)}:{line}: {room} may not import {name}"
        for module in mine
        for name, line in imports_of(module).items()
        if room_of(name) not in allowed
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_index_knows_the_contracts_of_models_and_nothing_else_of_them():
    wrong = {
        f"{module}: {name}"
        for module in modules()
        if room_of(module) == "index"
        for name in imports_of(module)
        if room_of(name) == "models" and name != "rungwise.models.contracts"
    }
    assert not wrong, wrong


def test_no_modules_import_each_other():
    """Neither two nor a longer circle, wherever the imports stand."""
    done: set[str] = set()
    circles: list[str] = []

    def visit(module: str, path: list[str]) -> None:
        for name in imports_of(module):
            if name in path:
                circles.append(" -> ".join([*path[path.index(name) :], name]))
            elif name not in done:
                visit(name, [*path, name])
        done.add(module)

    for module in modules():
        if module not in done:
            visit(module, [module])
    assert not circles, "\n" + "\n".join(circles)


@pytest.mark.parametrize(
    "light",
    [
        "import rungwise",
        "import rungwise.cli",
        "import rungwise.relevance",
        "import rungwise.data",
        "import rungwise.core.topk",
    ],
)
def test_light_imports_load_no_torch(light: str) -> None:
    code = f"import sys; {light}; sys.exit('torch' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
