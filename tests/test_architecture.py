"""The arrows of docs/architecture.md, held to."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rungwise

ROOT = Path(rungwise.__file__).parent
FORBIDDEN = {
    "losses": {"models", "training", "index", "encoders", "data", "evaluation", "serving", "cli"},
    "metrics": {"models", "training", "index", "encoders", "losses", "serving", "cli"},
    "relevance": {"models", "training", "index", "encoders", "losses", "metrics", "serving", "cli"},
    "similarity": {"models", "training", "index", "encoders", "losses", "metrics", "data", "serving", "cli"},
    "data": {"models", "training", "index", "encoders", "losses", "metrics", "serving", "cli", "relevance"},
    "encoders": {"models", "training", "index", "losses", "metrics", "serving", "cli"},
    "models": {"training", "index", "losses", "metrics", "serving", "cli"},
    "index": {"models", "training", "losses", "metrics", "serving", "cli", "encoders"},
    "training": {"index", "serving", "cli"},
    "evaluation": {"models", "training", "index", "serving", "cli"},
    "serving": {"training", "losses", "metrics", "cli"},
}


def imported_rooms(path: Path) -> set[str]:
    """Rooms whose code a file runs; what it names for type checkers alone does not count."""
    names = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("rungwise.")}


@pytest.mark.parametrize("room", FORBIDDEN)
def test_arrows_point_one_way(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        assert not imported_rooms(path) & FORBIDDEN[room], path


@pytest.mark.parametrize(
    "light", ["import rungwise", "import rungwise.cli", "import rungwise.relevance", "import rungwise.data"]
)
def test_light_imports_load_no_torch(light: str) -> None:
    code = f"import sys; {light}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
