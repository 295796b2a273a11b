"""The doors through which files are opened, and that nothing else in the package opens any.

A reader that takes the doors needs no test of its own that it refuses pipes, devices, sockets and folders.
"""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rungwise.core import (
    MissingFileError,
    UserError,
    is_regular,
    is_settled,
    limited,
    opened_file,
    parse_json,
    read_bytes,
    read_json,
    read_text,
    require_regular,
    require_there,
    user_path,
)
from rungwise.core import _untrusted_files as untrusted_files
from tests.house import modules, tree_of
from tests.odd_files import on_posix, put

PSEUDO_FILE = Path("/proc/self/pagemap")


@on_posix
@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("pipe", "a pipe"),
        ("socket", "a socket"),
        ("device", "a device"),
        ("endless", "a device"),
        ("folder", "a folder"),
    ],
)
def test_only_regular_files_are_opened_and_none_is_waited_for(tmp_path, monkeypatch, kind, what):
    monkeypatch.chdir(tmp_path)
    path = Path("a.csv")
    put(path, kind)
    assert not is_regular(path)
    refused = f"^a.csv: is {what}, not a file; give a regular file$"
    for reader in (read_bytes, read_text, read_json):
        with pytest.raises(UserError, match=refused):
            reader(path, "text_bytes")
    with pytest.raises(UserError, match=refused):
        require_regular(path)
    with pytest.raises(UserError, match=refused), opened_file(path, None):
        pass
    if kind in ("socket", "device"):
        return  # the system itself opens no socket, and no terminal where there is none
    # It took the place of a file after the first look.
    monkeypatch.setattr(untrusted_files, "require_regular", lambda path, limit: 0)
    with pytest.raises(UserError, match=refused), opened_file(path, None):
        pass


@on_posix
def test_a_link_that_leads_round_in_a_circle_gets_one_line(tmp_path):
    put(tmp_path / "a.csv", "loop")
    with pytest.raises(UserError, match="cannot be read"):
        read_bytes(tmp_path / "a.csv", "text_bytes")
    assert not is_regular(tmp_path / "a.csv")


def test_missing_files_are_an_error_of_their_own(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.csv", tmp_path / "file" / "a.csv", tmp_path / "dangling"):
        if path.name == "dangling":
            path.symlink_to("nowhere")
        with pytest.raises(MissingFileError, match="no such file; correct the path"):
            read_bytes(path, "text_bytes")


@pytest.mark.parametrize("name", ["a" * 5000, "nul\0byte"])
def test_impossible_names_get_one_line(tmp_path, name):
    with pytest.raises(UserError, match="cannot be read"):
        read_bytes(tmp_path / name, "text_bytes")
    assert not is_regular(tmp_path / name)


def test_size_limits(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"12345")
    with limited(text_bytes=5):
        assert read_bytes(file, "text_bytes") == b"12345"
    with limited(text_bytes=4), pytest.raises(UserError, match="5 bytes, where at most 4 bytes are read"):
        read_bytes(file, "text_bytes")
    with limited(text_bytes=4), opened_file(file, None) as reader:
        assert reader.read() == b"12345"


def test_a_file_that_grows_is_read_as_it_was(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"one\ntwo\n")
    with opened_file(file, "text_bytes") as reader:
        with file.open("ab") as more:
            more.write(b"three\n" * 1000)
        assert list(reader) == [b"one\n", b"two\n"]
        assert reader.seek(0) == 0
        assert reader.read() == b"one\ntwo\n"
        assert reader.seek(-4, os.SEEK_END) == 4
        assert reader.read(100) == b"two\n"


@pytest.mark.skipif(not PSEUDO_FILE.exists(), reason="needs a pseudo file")
def test_a_pseudo_file_without_end_is_empty():
    assert read_bytes(PSEUDO_FILE, "text_bytes") == b""


def test_files_are_closed(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"12345")
    with opened_file(file, None) as reader:
        number = reader.fileno()
    with pytest.raises(OSError):
        os.fstat(number)
    held = []

    def fail() -> None:
        with opened_file(file, None) as reader:
            held.append(reader.fileno())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with pytest.raises(OSError):
        os.fstat(held[0])


def test_text(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfcaf\xc3\xa9")
    assert read_text(file, "settings_bytes") == "café"
    file.write_bytes(b"caf\xe9")
    with pytest.raises(UserError, match=r"byte 0xe9 at offset 3 is not UTF-8"):
        read_text(file, "settings_bytes")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ("9" * 5000, "a number of too many digits"),
        ('{"a": -Infinity}', "-Infinity is no number that JSON knows"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_none(tmp_path, text, reason):
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(UserError, match=rf"a\.json: not valid JSON \({reason}") as caught:
        read_json(file)
    assert len(str(caught.value).splitlines()) == 1


def test_json(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"a": [1, 2.5, "é"]}', encoding="utf-8")
    assert read_json(file) == {"a": [1, 2.5, "é"]}
    assert parse_json("[NaN]", "a", finite=False)[0] != 0
    with pytest.raises(UserError, match="offset 0 is not UTF-8"):
        parse_json(b"\xff", "a")


def test_all_of_a_file_is_read_in_one_step(tmp_path, monkeypatch):
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(range(256)) * 4000)
    reads = []
    read = os.read
    monkeypatch.setattr(os, "read", lambda handle, count: reads.append(count) or read(handle, count))
    assert read_bytes(file, "picture_bytes") == bytes(range(256)) * 4000
    assert len(reads) <= 2


def test_a_place_in_json_is_a_column_and_where_there_are_several_a_line():
    for text, place in (
        ('{"a": ]', r"\(Expecting value, column 7\)"),
        ('{"a":\n]', r"\(Expecting value, line 2, column 1\)"),
    ):
        with pytest.raises(UserError, match=place):
            parse_json(text, "a.json")


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere", "no such file or folder"), ("a" * 5000, "file name too long"), ("a\0", "embedded null byte")],
)
def test_a_place_that_is_not_there(path, said):
    with pytest.raises(UserError, match=said):
        require_there(Path(path))
    require_there(Path())


@pytest.mark.parametrize(("seconds", "settled"), [(-1, False), (0, False), (2, False), (2.1, True)])
def test_a_file_is_settled_two_seconds_after_it_was_written(monkeypatch, seconds, settled):
    monkeypatch.setattr(untrusted_files.time, "time_ns", lambda: 10**18)
    assert is_settled(10**18 - int(seconds * 1e9)) is settled


def test_home_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert user_path("~/a") == tmp_path / "a"
    with pytest.raises(UserError, match="there is no such home folder"):
        user_path("~nobody of this name")


DOORS = {
    "opened_file", "read_bytes", "read_text", "read_json", "require_regular", "mapped", "opened_npz", "opened_parquet",
    "checked_folder", "sentence_folder",
}  # fmt: skip
"""Functions that look before they open; the last two look through whole folders of models."""
OPEN_BY_THEMSELVES = {
    "Image.open", "InferenceSession", "ParquetFile", "SentenceTransformer", "ZipFile", "bz2.open",
    "codecs.open", "copy2", "copyfile", "copytree", "csv.read_csv", "from_file", "from_pretrained", "genfromtxt",
    "gzip.open", "io.open", "load_file", "load_model", "loadmat", "loadtxt", "lzma.open", "memmap", "mmap.mmap",
    "np.fromfile", "np.load", "onnx.load", "open", "os.open", "parquet.read_table", "pq.read_table", "safe_open",
    "shutil.copy", "spacy.load", "sqlite3.connect", "tarfile.open", "torch.load",
}  # fmt: skip
"""What reads the file of a name or path that it is given: the last name of what is called, or its last two."""
LAST_NAMES = {"read_text", "read_bytes"} | {name.rpartition(".")[2] for name in OPEN_BY_THEMSELVES}

ALREADY_OPEN = "is handed a file that a door has opened"
OF_THE_PACKAGE = "a file of this package"
OWN_MODEL = "a class of this package, which takes the doors"
OWN_WORK = "a file that it has just written itself"
WITHOUT_A_DOOR = {
    "rungwise._exports.exporting": "reads a file of the package itself, and imports nothing more",
    "rungwise.cli.frame._process._open_streams": "what takes the place of a closed stream",
    "rungwise.core.disk.staging._lock": "a folder, to lock it",
    "rungwise.core.disk._files.appending": "appends, and reads nothing",
    "rungwise.core.disk._mount_points._mounts": "what the system says of this process",
    "rungwise.core.disk._syncing.sync_file": OWN_WORK,
    "rungwise.core.disk._syncing.sync_folder": "a folder, to bring it to the disk",
    "rungwise.core.compute._memory._peak_of_late": "what the system says of this process",
    "rungwise.core.compute._memory.nearly_out": "what the system says of this process",
    "rungwise.data.files._parquet.parquet_file": "those that call it have looked",
    "rungwise.data.pictures._picture_files._by_pillow": ALREADY_OPEN,
    "rungwise.demo._parts.train_one": OWN_MODEL,
    "rungwise.demo._sides.DemoModel.open": OWN_MODEL,
    "rungwise.evaluation.tables._published_rows.printed": OF_THE_PACKAGE,
    "rungwise.integrations.mteb._mteb_models.load_mteb": "mteb's own loader; its files were looked through for code",
    "rungwise.integrations.trec._by_ranx": "ranx's own reader of the text files that a caller names",
    "rungwise.runs.study._machines._name_of": "what the system says of its processor",
    "rungwise.index.stores.lance._version_file.VersionFile._digests": OWN_WORK,
    "rungwise.index.stores.lance._version_file.VersionFile.sizes": "seeks names in a list that was compared",
    "rungwise.index.layout.location.at_hand": OWN_WORK,
    "rungwise.language.scene_graphs.chunking.fingerprint": OF_THE_PACKAGE,
    "rungwise.language.scene_graphs._dependencies.dependency_parser": "a model of spaCy, which is a program to trust",
    "rungwise.models.export._onnx_export._compared": OWN_WORK,
    "rungwise.models.export._onnx_export._finish": OWN_WORK,
    "rungwise.models.export._onnx_graphs.Graph._open": "is handed bytes",
    "rungwise.models.io._hub_upload._with_seal_of_card": "a file whose seal was checked",
    "rungwise.models.joint._vsepp_files._refuse_packed": ALREADY_OPEN,
    "rungwise.planning._rates._measured": OF_THE_PACKAGE,
    "rungwise.relevance.precomputed._shards.write_in_shards": "a method of this package that opens what is left to do",
    "rungwise.serving._pages._add_module": OF_THE_PACKAGE,
    "rungwise.serving._pages._linking": OF_THE_PACKAGE,
    "rungwise.training.config._presets._read": OF_THE_PACKAGE,
    "rungwise.training._stages._Whole.keep": OWN_MODEL,
}
"""Functions that call one of those without a door, and why they may."""


def test_readers_open_by_the_doors_alone():
    found = {}
    named = re.compile(rf"\b({'|'.join(LAST_NAMES)})\(")
    for module in [module for module, file in modules().items() if named.search(file.read_text(encoding="utf-8"))]:
        for function, nodes in functions_of(module):
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            if not any(isinstance(call.func, ast.Name) and call.func.id in DOORS for call in calls):
                found[function] = [f"line {call.lineno}: {ast.unparse(call)[:100]}" for call in calls if reads(call)]
    found = {function: lines for function, lines in found.items() if lines}
    bare = {function: lines for function, lines in found.items() if function not in WITHOUT_A_DOOR}
    assert not bare, "open these by a door of rungwise.core, or say above why they may do without"
    assert not WITHOUT_A_DOOR.keys() - found.keys(), "these open nothing any more: take them from the list"


def functions_of(module: str) -> Iterator[tuple[str, list[ast.AST]]]:
    """Each function and method by its dotted name with all that is in it; under the module's name what is outside."""
    outside: list[ast.AST] = []
    waiting: list[tuple[str, ast.stmt]] = [(module, node) for node in tree_of(module).body]
    for name, node in waiting:  # which classes lengthen
        if isinstance(node, ast.ClassDef):
            waiting += [(f"{name}.{node.name}", inner) for inner in node.body]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}.{node.name}", list(ast.walk(node))
        else:
            outside += ast.walk(node)
    yield module, outside


def reads(call: ast.Call) -> bool:
    """Whether a call opens a file to read it."""
    called = call.func
    if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", None)) not in LAST_NAMES:
        return False
    names = ast.unparse(called).split(".")
    said = [ast.unparse(value) for value in (*call.args, *(named.value for named in call.keywords))]
    if names[-1] in ("read_text", "read_bytes"):
        return len(names) > 1  # else it is the door of that name
    if ".".join(names[-2:]) in OPEN_BY_THEMSELVES:
        mode = said[1] if names[-1] == "open" and len(said) > 1 else ""
    elif names[-1] == "open":  # of a path, whose first argument is the mode; another one is a method of the package
        mode = said[0] if said else ""
        if mode and not mode.startswith("'"):
            return False
    else:
        return names[-1] in OPEN_BY_THEMSELVES
    if mode.startswith("'"):
        return "r" in mode
    return "O_WRONLY" not in mode


@pytest.mark.parametrize(
    ("code", "opens"),
    [
        ("open(path)", True),
        ("open(path, 'w')", False),
        ("path.open()", True),
        ("(folder / name).open('rb+')", True),
        ("draft.open('xb')", False),
        ("os.open(path, os.O_RDONLY)", True),
        ("os.open(path, os.O_WRONLY | os.O_CREAT)", False),
        ("path.read_text(encoding='utf-8')", True),
        ("read_text(path, 'text_bytes')", False),
        ("np.load(path)", True),
        ("json.loads(text)", False),
        ("Index.open(folder)", False),
        ("pyarrow.parquet.ParquetFile(path)", True),
    ],
)
def test_what_opens_a_file_is_seen(code, opens):
    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    assert reads(call) == opens
