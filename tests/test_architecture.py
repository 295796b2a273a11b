"""The floors of the page on the architecture, held to: what a room may import, and that no modules need each other."""

import ast
import re
from collections import defaultdict
from importlib import import_module

import pytest

from tests.house import PACKAGE, definitions_in, exports_of, imports_of, modules, room_of, tree_of
from tests.pages import pages_below
from tests.rooms import FLOORS, INSIDE, allowed

MOST_ENTRIES = 14
"""Modules and inner rooms of a room; more are not known by heart."""
ONE_FILE_A_FAMILY = {"rungwise.losses"}
"""Rooms that may have more."""
MOST_ROOMS = 2
"""Rooms of the house that may have a file of one name; with more nobody knows which one is meant."""


def packages():
    """Every room and inner room but the package itself."""
    return [one for one, path in modules().items() if path.stem == "__init__" and one != "rungwise"]


def entries(package):
    """Names of the modules and inner rooms that stand in a room itself."""
    inside = [one.removeprefix(f"{package}.") for one in modules() if one.startswith(f"{package}.")]
    return {one.partition(".")[0].removeprefix("_") for one in inside}


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


def test_every_folder_of_modules_is_a_package():
    """Git and pytest pass over some names of folders, such as build, and nobody notices."""
    folders = {path.parent for path in modules().values()}
    missing = [str(one.relative_to(PACKAGE)) for one in folders if not (one / "__init__.py").is_file()]
    assert not missing, missing


@pytest.mark.parametrize("package", packages())
def test_a_room_has_about_a_dozen_entries(package):
    assert package in ONE_FILE_A_FAMILY or len(entries(package)) <= MOST_ENTRIES, "give it rooms of its own"


def test_every_room_says_its_idea_in_one_line():
    missing = [
        one for one in packages() if not (ast.get_docstring(tree_of(one)) or "").partition("\n")[0].endswith((".", ":"))
    ]
    assert not missing, missing


def test_every_room_that_has_rooms_has_an_order():
    with_rooms = {
        package.removeprefix("rungwise.")
        for package in packages()
        if any(f"{package}.{entry}" in packages() for entry in entries(package))
    }
    assert with_rooms == set(INSIDE)


@pytest.mark.parametrize("room", INSIDE)
def test_an_entry_imports_from_lower_entries_only(room):
    """One without a place stands above all that have one."""
    order, package = INSIDE[room], f"rungwise.{room}."
    there = entries(package.rstrip("."))
    assert set(order) <= there, "these are gone"
    floor = dict.fromkeys(there, len(order)) | {entry: place for place, entry in enumerate(order)}

    def of(module):
        return module.removeprefix(package).partition(".")[0].removeprefix("_")

    wrong = [
        f"{modules()[module].relative_to(PACKAGE)}:{line}: may not import {name}"
        for module in modules()
        if module.startswith(package)
        for name, line in imports_of(module).items()
        if name.startswith(package) and floor[of(name)] > floor[of(module)]
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def crossing_imports():
    """Every import from another room or inner room: where it stands, what it names, and the module that it names."""
    for module, path in modules().items():
        if path.stem == "__init__":
            continue  # it is what exports
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rungwise"):
                for alias in node.names:
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno}", module, str(node.module), alias.name


def test_other_rooms_import_public_names_only():
    """A private module is for the room in which it stands, and for the rooms inside that one."""
    wrong = []
    for place, module, source, name in crossing_imports():
        parts = f"{source}.{name}".split(".")
        private = next(
            (number for number, part in enumerate(parts) if part.startswith("_") and part != "__version__"), None
        )
        if private is not None and not module.startswith(".".join(parts[:private]) + "."):
            wrong.append(f"{place}: {source}.{name}")
        known = exports_of(source).keys() | definitions_in(source) if source in packages() else {name}
        if private is None and name not in known and f"{source}.{name}" not in modules():
            wrong.append(f"{place}: {source} does not export {name}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_a_module_is_private_or_says_what_it_exports():
    wrong = [
        module
        for module, path in modules().items()
        if not path.stem.startswith("_") and "__all__" not in path.read_text(encoding="utf-8")
    ]
    assert not wrong, wrong


def names_of_pages():
    """Each page of the reference: its module, whether it is a part of several, and the names that it lists."""
    directive = re.compile(r"^```{room} (\S+)\n(:part:\n)?(.*?)^```", re.DOTALL | re.MULTILINE)
    for module, part, body in directive.findall(pages_below(".")):
        yield module, bool(part), body.split()


def test_the_reference_lists_what_is_public():
    listed = [module for module, part, _ in names_of_pages() if not part]
    public = {one for one in packages() if exports_of(one) and not one.startswith("rungwise.cli")}
    public |= {one for one, path in modules().items() if not path.stem.startswith("_")}
    assert sorted(listed) == sorted({"rungwise", *public})


def test_the_pages_of_a_divided_room_have_every_name_once():
    divided = {module for module, part, _ in names_of_pages() if part}
    for module in divided:
        found = [name for one, _, names in names_of_pages() if one == module for name in names]
        passed_on = {name for name, place in exports_of(module).items() if "._" not in place}
        public = set(import_module(module).__all__) - passed_on
        assert sorted(found) == sorted(public), module


def test_search_and_cutoff_meet_through_a_contract():
    """What ranks hits and what says where they end know :mod:`rungwise.index._ranking`, and not each other."""
    sides = {"rungwise.index.search", "rungwise.index.cutoff"}
    wrong = [
        f"{module} imports {name}"
        for module in modules()
        for name in imports_of(module)
        if {module.rpartition(".")[0], name.rpartition(".")[0]} == sides
    ]
    assert not wrong, wrong


def test_a_class_name_means_one_thing():
    found = defaultdict(list)
    for module in modules():
        for node in tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    assert not (twice := {name: where for name, where in found.items() if len(where) > 1}), twice


def test_a_file_name_stands_in_few_rooms():
    found = defaultdict(set)
    for module, path in modules().items():
        if path.stem not in ("__init__", "_base", "_config"):
            found[path.stem.removeprefix("_")].add(room_of(module))
    assert not (many := {name: rooms for name, rooms in found.items() if len(rooms) > MOST_ROOMS}), many


def test_the_index_knows_the_contracts_of_models_and_nothing_else_of_them():
    wrong = {
        f"{module}: {name}"
        for module in modules()
        if room_of(module) == "index"
        for name in imports_of(module)
        if room_of(name) == "models" and name != "rungwise.models._contracts"
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
