"""The floors of docs/architecture.md, held to: what a room may import, and that no modules need each other."""

import pytest

from tests.house import PACKAGE, imports_of, modules, room_of
from tests.rooms import FLOORS, allowed


def test_every_room_has_a_floor():
    assert {room_of(module) for module in modules()} <= set(FLOORS), "give the new room its place among the floors"


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_from_lower_floors_only(room):
    """Imports inside functions and those for type checkers count as well."""
    mine = [module for module in modules() if room_of(module) == room]
    assert mine, f"there is no room {room!r}"
    lower = {room} | allowed(room)
    wrong = [
        f"{modules()[module].relative_to(PACKAGE)}:{line}: {room} may not import {name}"
        for module in mine
        for name, line in imports_of(module).items()
        if room_of(name) not in lower
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
