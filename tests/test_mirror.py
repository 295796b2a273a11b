"""Tests mirror the source: whoever changes a module finds its tests by its name."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.house import PACKAGE, definitions_in, modules, room_of

TESTS = Path(__file__).parent


def namesake(module: str) -> Path:
    """Where a module's tests stand: of ``rungwise.room.module`` in ``tests/room/test_module.py``."""
    path = modules()[module].relative_to(PACKAGE)
    name = module.rpartition(".")[2] if path.stem == "__init__" else path.stem.removeprefix("_")
    return TESTS / path.parent / f"test_{name}.py"


def also_tested() -> set[str]:
    """Modules that test files say they test, by ``Also tests rungwise.x.y`` in their docstring."""
    said = set()
    for path in TESTS.rglob("test_*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for sentence in re.findall(r"Also tests\s(.*?)(?:[.:;](?:\s|$)|$)", docstring, flags=re.DOTALL):
            said.update(re.findall(r"rungwise(?:\.\w+)+", sentence))
    return said


def test_every_module_has_a_namesake_or_a_test_that_says_it_tests_it():
    said = also_tested()
    missing = defaultdict(list)
    for module, path in modules().items():
        if path.stem == "__init__" and not definitions_in(module):
            continue  # it passes on the names of other modules
        if not namesake(module).is_file() and module not in said:
            missing[room_of(module)].append(f"{module}: no {namesake(module).relative_to(TESTS.parent)}")
    lines = [line for room in sorted(missing) for line in (f"{room}:", *(f"  {one}" for one in missing[room]))]
    assert not missing, "\n".join(
        ["", *lines, "Write the test file, or say 'Also tests MODULE.' in the docstring of the one that tests it."]
    )


def test_what_test_files_say_they_also_test_is_there():
    assert not also_tested() - modules().keys()


def test_every_test_file_has_a_module_of_its_name():
    """But for those that test a whole room, the house or its documents, which say so in their docstring."""
    files = {namesake(module) for module in modules()}
    stray = [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("test_*.py")
        if path not in files and not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not stray, f"rename these after a module, or say in their docstring what they test: {', '.join(stray)}"
