"""Every place that a command may be told to write to: written, or refused in one line before anything is computed.

The options are found among the parsers; each is tried on all places. A case is wrong that refuses where it could write,
that writes where it must not, that computes first and refuses then, that leaves a draft, or that touches what stood
there.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import resource
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_type_hints
from unittest import mock

from rungwise.cli.frame import _process as process
from rungwise.core.disk.locks import LOCKS
from rungwise.core.disk.staging import is_draft
from tests.hostile import world as good
from tests.hostile.choice import Choice
from tests.hostile.commands import _through_the_command_line
from tests.hostile.counting import Case, Verdict
from tests.hostile.files import _last
from tests.hostile.forked import Outcome, outcome_of, outcomes, without_privileges

FAMILY = "outs"

Kind = Literal["file", "folder"]


@dataclass(frozen=True)
class Output:
    """One option that names something to write.

    Attributes:
        command: The words before the arguments, such as ``relevance model-scores``.
        option: With its dashes.
        kind: What is written.
        arguments: Of a command line that writes it, but for the option; ``{}`` stands for the folder of the case.
        folders: Of the world that it needs.
        read: What it reads: its input folder, and its model's folder, relative to the folder of the case.
        whole: It takes the place of what is there, and so refuses strangers; else it writes among them.
        verified: ``rungwise verify`` knows what it writes.
        ending: Of the name of a file.
        both: There is a file for each direction, whose name has the direction before the ending.
    """

    command: str
    option: str
    kind: Kind
    arguments: tuple[str, ...]
    folders: tuple[str, ...]
    read: tuple[str, ...] = ()
    whole: bool = False
    verified: bool = False
    ending: str = ""
    both: bool = False

    def __str__(self) -> str:
        return f"{self.command} {self.option}"


_RUN = ("run", "csv")
_MODEL = "{}/run/model"


def outputs() -> list[Output]:
    """All of them; :func:`named_by_the_parsers` says which there must be."""
    train = ("{}/run/config.yaml", "{}/csv")
    evaluate = (_MODEL, "{}/csv", "--split", "all")
    degrees = ("--relevance", "{}/degrees/dense")
    calibrate = (_MODEL, "{}/scenes/scenes", "--split", "all", "--queries", "20")
    grader = ("{}/csv", "--captions-only", "--model", "{}/grader", "--scale", "sigmoid")
    scores = ("{}/csv", "--model", _MODEL)
    pairs = ("{}/scored", "--model", "{}/pair_encoder", "--epochs", "1")
    run = ("csv", "run/model")
    study = ("{}/study/study.yaml", "--data", "{}/csv", "--device", "cpu")
    return [
        Output("demo", "--folder", "folder", ("--no-browser", "--port", "0"), (), whole=True),
        Output("demo", "--export", "folder", ("--folder", "{}/new"), (), whole=True),
        Output("inspect", "--contact-sheet", "file", ("{}/csv",), ("csv",), ("csv",), ending=".png"),
        Output("train", "--out", "folder", (*train, "--cache", "{}/kept"), _RUN, run, verified=True),
        Output("train", "--cache", "folder", (*train, "--out", "{}/new"), _RUN, run),
        Output("evaluate", "--out", "file", (*evaluate, "--cache", "{}/kept"), _RUN, run, ending=".json"),
        Output("evaluate", "--report", "file", (*evaluate, "--cache", "{}/kept"), _RUN, run, ending=".html"),
        Output("evaluate", "--false-negatives", "file", (*evaluate, *degrees, "--cache", "{}/kept"),
               (*_RUN, "degrees"), run, ending=".csv"),
        Output("evaluate", "--write-run", "file", (*evaluate, "--cache", "{}/kept"), _RUN, run, ending=".trec",
               both=True),
        Output("evaluate", "--write-qrels", "file", (*evaluate, "--cache", "{}/kept"), _RUN, run, ending=".qrels",
               both=True),
        Output("evaluate", "--write-degrees", "file", (*evaluate, *degrees, "--cache", "{}/kept"),
               (*_RUN, "degrees"), run, ending=".tsv"),
        Output("evaluate", "--cache", "folder", evaluate, _RUN, run),
        Output("compare", "--out", "file", ("{}/evaluation/first.json", "{}/evaluation/second.json", "--draws", "20"),
               ("evaluation",), ("evaluation",), ending=".json"),
        Output("table", "--out", "file", ("--runs", "{}/run"), ("run",), ("run/model",), ending=".md"),
        Output("plot", "--out", "file", ("{}/run",), ("run",), ("run/model",), ending=".svg"),
        Output("plot", "--csv", "file", ("{}/run",), ("run",), ("run/model",), ending=".csv"),
        Output("study", "--out", "folder", (*study, "--cache", "{}/kept"), ("study", "csv"), ("csv",)),
        Output("study", "--cache", "folder", (*study, "--out", "{}/new"), ("study", "csv"), ("csv",)),
        Output("calibrate", "--out", "file", (*calibrate, "--cache", "{}/kept"), ("run", "scenes"),
               ("scenes/scenes", "run/model"), ending=".json"),
        Output("calibrate", "--cache", "folder", (*calibrate, "--out", "{}/c.json"), ("run", "scenes"),
               ("scenes/scenes", "run/model")),
        Output("relevance SOURCE", "--out", "folder", ("{}/csv", "--captions-only"), ("csv",), ("csv",), whole=True,
               verified=True),
        Output("relevance SOURCE", "--show-rungs", "file", ("{}/csv", "--captions-only", "--thresholds", "0.4"),
               ("csv",), ("csv",), ending=".html"),
        Output("relevance cross-encoder", "--cache", "file", grader, ("csv", "grader"), ("csv", "grader")),
        Output("relevance cascade", "--cache", "file", (*grader, "--coarse", "tfidf"), ("csv", "grader"),
               ("csv", "grader")),
        Output("relevance combine", "--keep-fit", "file",
               ("{}/csv", "--captions-only", "--of", "tfidf", "cider-d", "--fit", "{}/grades.csv"),
               ("csv",), ("csv",), ending=".json"),
        Output("relevance model-scores", "--out", "folder", (*scores, "--cache", "{}/kept"), _RUN, run, whole=True,
               verified=True),
        Output("relevance model-scores", "--vectors", "file", (*scores, "--cache", "{}/kept"), _RUN, run,
               ending=".npz"),
        Output("relevance model-scores", "--cache", "folder", (*scores, "--out", "{}/degrees"), _RUN, run),
        Output("relevance train-cross-encoder", "--out", "folder", pairs, ("scored", "pair_encoder"),
               ("scored", "pair_encoder"), whole=True),
        Output("relevance train-cross-encoder", "--distil-into", "folder",
               (*pairs, "--out", "{}/new", "--bi-encoder", "{}/sentences", "--unlabelled", "20", "--distil-epochs",
                "1"), ("scored", "pair_encoder", "sentences"), ("scored", "sentences"), whole=True),
        Output("relevance agree", "--json", "file",
               ("tfidf", "{}/evaluation/grades.csv", "--data", "{}/flickr8k", "--draws", "5"),
               ("evaluation", "flickr8k"), ("flickr8k",), ending=".json"),
        Output("grade", "--out", "file",
               ("{}/evaluation/grades.csv", "--data", "{}/csv", "--port", "0", "--no-browser"),
               ("evaluation", "csv"), ("csv",), ending=".jsonl"),
        Output("index", "--out", "folder", ("{}/csv", "--model", _MODEL), _RUN, run, whole=True, verified=True),
        Output("index export", "--out", "file", ("{}/index/index",), ("index",), ("index/index",), ending=".parquet"),
        Output("index backup", "--out", "folder", ("{}/index/index",), ("index",), ("index/index",), whole=True,
               verified=True),
        Output("index restore", "--out", "folder", ("{}/index/backup",), ("index",), ("index/backup",), whole=True,
               verified=True),
        Output("search", "--copy-to", "folder", ("{}/index/index", "a red picture", "--model", _MODEL),
               ("index", *_RUN), ("index/index", "run/model")),
        Output("export", "--out", "folder", (_MODEL,), ("run",), ("run", "run/model"), whole=True, verified=True),
        Output("import", "--out", "folder", ("{}/vsepp/model_best.pth.tar", "{}/vsepp/vocab.pkl"), ("vsepp",),
               ("vsepp",), whole=True, verified=True),
        Output("plan", "--folder", "folder", ("10k", "--measure"), ()),
    ]  # fmt: skip


READ = frozenset({
    "calibrate --index", "calibrate --query-file", "doctor --data", "evaluate --calibration",
    "evaluate --image-of-caption", "evaluate --positives", "evaluate --ranked-lists", "grade --data",
    "relevance agree --data", "relevance explain --vectors", "relevance explain --wordnet", "relevance SOURCE --fit",
    "relevance SOURCE --fitted", "relevance SOURCE --judgements", "relevance SOURCE --vectors",
    "relevance SOURCE --wordnet", "index --captions", "plan --stored",
    "serve --tokens", "serve-model --tokens", "mcp --tokens", "inspect --captions",
    "relevance train-cross-encoder --captions",
    "search --image", "study --data",
})  # fmt: skip
"""Options that name files and folders to read."""

_SOURCE_FOR = {"cross-encoder", "cascade", "combine"}
"""Sources with options of their own that name something to write."""


def named_by_the_parsers() -> set[str]:
    """Every option of every command that names a file or a folder, by the types of what the parsers read."""
    found = set()
    for command, kind in _parsers().items():
        for option in _paths_of(kind):
            words = command.split()
            source = words[0] == "relevance" and words[1] not in _tasks()
            own = source and words[1] in _SOURCE_FOR and option in ("--cache", "--keep-fit")
            found.add(f"relevance SOURCE {option}" if source and not own else f"{command} {option}")
    return found


def _tasks() -> Sequence[str]:
    from rungwise.cli.relevance._command import TASKS

    return tuple(TASKS)


def _parsers() -> Mapping[str, type]:
    """What the parser of each command reads into."""
    from rungwise.cli import COMMANDS, main
    from rungwise.cli.frame import _parser as parser
    from rungwise.cli.index import _maintenance as maintenance
    from rungwise.relevance.config import KINDS

    lines = [[name] for name in COMMANDS] + [["index", name] for name in maintenance.COMMANDS]
    lines += [["relevance", name] for name in (*KINDS, *_tasks())]
    found: dict[str, type] = {}
    for line in lines:

        def ask(kind: type, *_: Any, line: list[str] = line, **__: Any) -> Any:
            found[" ".join(line)] = kind
            raise SystemExit(0)

        with mock.patch.object(parser.tyro, "cli", ask), suppress(SystemExit):
            main([*line, "--help-all"])
    return found


def _paths_of(kind: type) -> Iterator[str]:
    hints = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        plain, given, is_positional = _unwrapped(hints[one.name])
        if is_dataclass(plain) and isinstance(plain, type):
            yield from _paths_of(plain)
        elif not is_positional and _names_a_path(plain):
            name = given.name if given is not None and given.name else one.name
            yield f"--{name.replace('_', '-')}"


def _unwrapped(hint: Any) -> Any:
    from rungwise.cli.frame._parser import _unwrapped as unwrapped

    return unwrapped(hint)


def _names_a_path(plain: Any) -> bool:
    return plain is Path or any(_names_a_path(_unwrapped(one)[0]) for one in get_args(plain))


class Place(NamedTuple):
    """One place to write to.

    Attributes:
        name: Of the attack.
        make: Makes it in the folder of the case, and gives what the option is told.
        file: What must become of a file there: ``"written"``, ``"refused"``, or ``"any"`` of both.
        folder: What must become of a folder.
        mounts: It takes the right to mount.
        as_nobody: Only those without the privileges of root are stopped by it.
        environment: What is set besides; None takes a name away.
    """

    name: str
    make: Callable[[Path, Output], str]
    file: Literal["written", "refused", "any"] = "refused"
    folder: Literal["written", "refused", "any"] = "refused"
    mounts: bool = False
    as_nobody: bool = False
    environment: Mapping[str, str | None] = {}


def _said(text: str) -> Callable[[Path, Output], str]:
    return lambda place, output: text.replace("{}", str(place))


def _new(place: Path, output: Output) -> str:
    return str(place / f"out{output.ending}")


def _deep(place: Path, output: Output) -> str:
    return str(place / f"new/folders/out{output.ending}")


def _called(name: str) -> Callable[[Path, Output], str]:
    return lambda place, output: str(place / f"{name}{output.ending}")


def _removed(place: Path, output: Output) -> str:
    away = place / "away"
    away.mkdir()
    os.chdir(away)
    away.rmdir()
    return f"out{output.ending}"


def _links(target: str) -> Callable[[Path, Output], str]:
    def make(place: Path, output: Output) -> str:
        path = place / f"out{output.ending}"
        path.symlink_to(target)
        return str(path)

    return make


def _link_to_folder(place: Path, output: Output) -> str:
    (place / "there").mkdir()
    return _links("there")(place, output)


def _stands(make: Callable[[Path], None]) -> Callable[[Path, Output], str]:
    def made(place: Path, output: Output) -> str:
        path = place / f"out{output.ending}"
        make(path)
        return str(path)

    return made


def _socket(path: Path) -> None:
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)


def _below_a_file(place: Path, output: Output) -> str:
    (place / "afile").write_text("somebody's")
    return str(place / f"afile/out{output.ending}")


def _stranger(place: Path, output: Output) -> str:
    (place / "theirs").mkdir()
    (place / "theirs/thesis.tex").write_text("years of work")
    return str(place / "theirs")


def _working(name: str) -> Callable[[Path, Output], str]:
    def make(place: Path, output: Output) -> str:
        (place / "here").mkdir()
        os.chdir(place / "here")
        return name

    return make


def _read_by(number: int, below: str = "") -> Callable[[Path, Output], str]:
    def make(place: Path, output: Output) -> str:
        read = output.read[min(number, len(output.read) - 1)] if output.read else "nothing"
        return str(place / read / below) if below else str(place / read)

    return make


def _mounted(*within: str, only_read: bool = False, bound: bool = False, below: str = "") -> Callable[..., str]:
    def make(place: Path, output: Output) -> str:
        volume = place / "volume"
        volume.mkdir()
        if bound:
            (place / "elsewhere").mkdir()
            _mount(volume, bound=place / "elsewhere")
        else:
            _mount(volume)
        for name in within:
            path = volume / name
            path.write_text("years of work") if path.suffix else path.mkdir(0o700)
        if only_read:
            _mount(volume, flags=_REMOUNT | _READ_ONLY)
        end = f"{below}{output.ending}" if below else ""
        return str(volume / end) if end else str(volume)

    return make


def _read_only(place: Path, output: Output) -> str:
    (place / "locked").mkdir()
    (place / "locked").chmod(0o555)
    return str(place / f"locked/out{output.ending}")


def _own_in_a_locked_one(place: Path, output: Output) -> str:
    (place / "locked/mine").mkdir(parents=True)
    (place / "locked").chmod(0o555)
    return str(place / "locked/mine")


def _few_files(more: int) -> Callable[[Path, Output], str]:
    def make(place: Path, output: Output) -> str:
        used = {int(one.name) for one in Path("/proc/self/fd").iterdir()}
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        # Four are taken by what catches the output of the command; one that is used is that of the listing itself.
        free = [number for number in range(len(used) + 20) if number not in used][: 3 + more]
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1] + 1, most))
        return _new(place, output)

    return make


PLACES: tuple[Place, ...] = (
    Place("a new name", _new, "written", "written"),
    Place("a new name in new folders", _deep, "written", "written"),
    Place("a name with a line break", _called("a\nb"), "written"),
    Place("a name that is no UTF-8", _called("a\udcff"), "written"),
    Place("a name of 300 letters", _called("x" * 300)),
    Place("a name with NUL", _called("a\0b")),
    Place("a name with half of a character", _called("a\ud800")),
    Place("no name", _said("")),
    Place("/proc/x", _said("/proc/x")),
    Place("/dev/fd/1", _said("/dev/fd/1")),
    Place("/dev/null", _said("/dev/null")),
    Place("/dev/full", _said("/dev/full")),
    Place("/", _said("/"), folder="any"),
    Place(".", _working("."), folder="written"),
    Place("..", _working(".."), folder="any"),
    Place("below a folder that was removed", _removed),
    Place("below a file", _below_a_file),
    Place("a file", _stands(lambda path: path.write_text("somebody's") and None), file="any"),
    Place("a pipe", _stands(os.mkfifo)),
    Place("a socket", _stands(_socket)),
    Place("a link to nowhere", _links("nowhere"), file="any", folder="written"),
    Place("a link to itself", _links("out"), file="any"),
    Place("a link to an empty folder", _link_to_folder, folder="written"),
    Place("a folder with a stranger's file", _stranger, folder="any"),
    Place("what it reads", _read_by(0), folder="any"),
    Place("below what it reads", _read_by(0, "new"), file="any", folder="any"),
    Place("the folder of its model", _read_by(1), folder="any"),
    Place("a read-only folder", _read_only, as_nobody=True),
    Place("its own folder in a read-only one", _own_in_a_locked_one, folder="written", as_nobody=True),
    Place("an empty mount point", _mounted(), folder="written", mounts=True),
    Place("an empty mount point of the same disk", _mounted(bound=True), folder="written", mounts=True),
    Place("a mount point with lost+found", _mounted("lost+found"), folder="written", mounts=True),
    Place("a mount point with a stranger's file", _mounted("thesis.tex"), folder="any", mounts=True),
    Place("below a mount point", _mounted(below="out"), "written", "written", mounts=True),
    Place("a read-only mount", _mounted(only_read=True, below="out"), mounts=True),
    Place("RUNGWISE_CACHE=/proc/x", _new, "any", "any", environment={"RUNGWISE_CACHE": "/proc/x"}),
    Place("no home", _new, "written", "written", environment={"RUNGWISE_CACHE": None, "HOME": "/proc/none",
                                                              "XDG_CACHE_HOME": None}),
    Place("TMPDIR=/proc/x", _new, "written", "written", environment={"TMPDIR": "/proc/x"}),
    *(Place(f"{more} more open files", _few_files(more), "any", "any") for more in (1, 2, 3)),
)  # fmt: skip

_READ_ONLY, _REMOUNT, _BIND, _PRIVATE = 1, 32, 4096, 1 << 18 | 16384
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000


def _mount(place: Path, flags: int = 0, bound: Path | None = None) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    source, kind, flags = (b"rungwise", b"tmpfs", flags) if bound is None else (os.fsencode(bound), None, _BIND)
    if library.mount(source, os.fsencode(place), kind, flags, None):
        raise OSError(ctypes.get_errno(), f"cannot mount {place}")


def _own_mounts() -> None:
    """From here on this process sees mounts of its own, which end with it."""
    library, user = ctypes.CDLL(None, use_errno=True), os.geteuid()
    if library.unshare(_NEW_MOUNTS | (0 if user == 0 else _NEW_USERS)):
        raise OSError(ctypes.get_errno(), "cannot unshare")
    if user:
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    if library.mount(b"none", b"/", None, _PRIVATE, None):
        raise OSError(ctypes.get_errno(), "cannot make mounts private")


def _can_mount(folder: Path) -> Any:
    _own_mounts()
    _mount(folder)


@dataclass(frozen=True)
class Attack:
    """One output told one place."""

    output: Output
    place: Place

    @property
    def expected(self) -> str:
        return self.place.file if self.output.kind == "file" else self.place.folder

    def __str__(self) -> str:
        return f"{self.output}: {self.place.name}"


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case | str]:
    """Every output on every place, or a share of them."""
    trial = scratch / "trial"
    trial.mkdir()
    mounts = outcome_of(partial(_can_mount, trial), memory=None).ending == "returned"
    if not mounts:
        yield f"{FAMILY}: mount points, since this process may not mount any"
    found = [one for one in (Attack(a, b) for a in outputs() for b in PLACES) if choice.takes(str(one))]
    found = [one for one in found if mounts or not one.place.mounts]
    for as_nobody in (False, True) if without_privileges() is not None else (False,):
        some = [one for one in found if one.place.as_nobody == as_nobody]
        jobs = [partial(_carry_out, one, world, scratch / str(number)) for number, one in enumerate(some)]
        # One child for each: some set limits, mounts and folders for good.
        for attack, job in zip(some, jobs, strict=True):
            ended = next(outcomes([job], memory=4 << 30, as_nobody=as_nobody and bool(without_privileges())))
            yield Case(FAMILY, str(attack.output), attack.place.name, *_judged(attack, ended))
        for left in scratch.iterdir():
            shutil.rmtree(left, ignore_errors=True)


class _Reached:
    """Notes what was computed."""

    def __init__(self) -> None:
        self.what: list[str] = []

    def noting(self, name: str, real: Any) -> Any:
        def called(*given: Any, **named: Any) -> Any:
            self.what.append(name)
            return real(*given, **named)

        return called


def _carry_out(attack: Attack, world: Path, place: Path) -> Any:
    if attack.place.mounts:
        _own_mounts()
    place.mkdir()
    for folder in attack.output.folders:
        shutil.copytree(world / folder, place / folder, symlinks=True, copy_function=shutil.copyfile)
    pairs = [
        f"{image},{caption},{4 if image.split('-')[1][:3] in caption else len(caption) % 2}"
        for image in good.NAMES
        for caption in good.caption_ids()
    ]
    (place / "grades.csv").write_text("\n".join(["image,caption,grade", *pairs]))
    os.chdir(place)
    for name, value in {"RUNGWISE_CACHE": str(place / "cache"), **attack.place.environment}.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _forget_what_was_tried()
    told = attack.place.make(place, attack.output)
    before = _contents(place)
    words = attack.output.command.replace("SOURCE", "tfidf").split()
    words += [one.replace("{}", str(place)) for one in attack.output.arguments] + [attack.output.option, told]
    reached = _Reached()
    # As in a process of the command's own: what an object says that could not be made whole is no line of the command.
    sys.unraisablehook, warnings.showwarning = process._unraised, process._show_ours
    with ExitStack() as patched:
        _replace_computing(patched, reached)
        code, out, error = _through_the_command_line(words, place)
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        written = Path(told)
        whole = ""
        if code in (0, 130) and attack.output.verified and attack.place.file == attack.place.folder == "written":
            verdict, said, _ = _through_the_command_line(["verify", str(written), "--no-encode"], place)
            whole = said.strip()[-300:] if verdict else ""
    after = _contents(place)
    lost = [name for name, what in before.items() if after.get(name) != what and not _may_change(attack, name, told)]
    drafts = [name for name in after if any(is_draft(part) for part in name.split("/"))]
    elsewhere = attack.output.command in ("grade", "plan", "demo")
    there = code in (0, 130) and (elsewhere or _is_there_each_way(attack.output, told))
    return [code, out[-300:], error, reached.what[:3], lost[:3], drafts[:3], whole, there]


def _forget_what_was_tried() -> None:
    from rungwise.core.disk import _cache_folder as cache_folder

    cache_folder._try.cache_clear()
    cache_folder._instead.cache_clear()
    tempfile.tempdir = None


def _is_there_each_way(output: Output, told: str) -> bool:
    path = Path(told)
    names = [path.with_name(f"{path.stem}.{way}{path.suffix}") for way in ("i2t", "t2i")] if output.both else [told]
    return all(_is_there(str(one)) for one in names)


def _is_there(told: str) -> bool:
    try:
        return os.path.lexists(told)
    except ValueError:
        return False


def _may_change(attack: Attack, name: str, told: str) -> bool:
    """What a command may replace: the very thing that it is told to write, and its own bookkeeping."""
    parts = name.split("/")
    if Path(told).name == parts[-1] and len(parts) == 1:
        return True
    return parts[-1] in LOCKS or parts[0] in ("cache", "kept", ".stdout", ".stderr")


def _contents(place: Path) -> dict[str, str]:
    """What stands below a folder, by its name."""
    found = {}
    for folder, names, files in os.walk(place):
        for name in (*names, *files):
            path = Path(folder) / name
            if path.is_symlink():
                what = f"link to {path.readlink()}"
            elif path.is_file():
                what = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                what = "folder" if path.is_dir() else "other"
            found[str(path.relative_to(place))] = what
    return found


def _replace_computing(patched: ExitStack, reached: _Reached) -> None:
    """Let what computes say that it was reached; the demo and the measuring of a machine are left out."""
    import torch

    import rungwise.cli._demo
    import rungwise.evaluation
    import rungwise.planning._measurement
    from rungwise.relevance.config import SourceConfig

    def replace(where: Any, name: str, by: Any = None) -> None:
        real = getattr(where, name)
        patched.enter_context(mock.patch.object(where, name, reached.noting(name, by or real)))

    replace(torch.nn.Module, "__call__")
    replace(SourceConfig, "build")
    replace(rungwise.planning._measurement, "_searched", lambda work, rates, *_: rates)
    replace(rungwise.cli._demo, "_made", _end)


def _end(*_: Any, **__: Any) -> Any:
    raise SystemExit(0)


def _judged(attack: Attack, outcome: Outcome) -> tuple[Verdict, str]:
    if outcome.ending == "died":
        return "traceback", f"the process died with status {outcome.value}: {outcome.text}"
    if outcome.ending != "returned":
        return "traceback", "\n    ".join(_last(outcome.text))
    code, out, error, reached, lost, drafts, whole, there = outcome.value
    lines = error.strip().splitlines()
    if code == 70 or "Traceback" in error:
        return "traceback", error.strip()[-500:]
    if lost:
        return "lost", f"exit {code}: changed {lost}: {error.strip()[-300:]}"
    if drafts:
        return "wrong", f"exit {code}: left {drafts}: {error.strip()[-300:]}"
    if code in (0, 130):
        if attack.expected == "refused":
            return "wrong", f"exit {code}, and it cannot have been written: {out}"
        if not there:
            return "wrong", f"exit {code}, and nothing stands there: {out}"
        return ("wrong", f"verify: {whole}") if whole else ("accepted", f"exit {code}")
    if code != 2 or not lines or not lines[-1].startswith("rungwise "):
        return "traceback", f"exit {code}, {len(lines)} lines: {error[-400:]}"
    few = attack.place.name.endswith("open files")
    if attack.expected == "written":
        return "wrong", f"refused: {lines[-1]}"
    if len(lines) > 1:
        return "wrong", f"{len(lines)} lines: {error[-400:]}"
    if reached and not few:
        return "wrong", f"refused after {reached[0]} was reached: {lines[-1]}"
    return "clean", lines[-1]


def table(cases: Sequence[Case]) -> str:
    """What became of each output on each place: written, refused, or a fault."""
    word = {"accepted": "written", "clean": "refused"}
    found = [f"{case.subject:<44} | {case.attack:<40} | {word.get(case.verdict, case.verdict.upper())}"
             for case in cases if case.family == FAMILY]  # fmt: skip
    return "\n".join([f"{'command and option':<44} | {'place':<40} | result", *found]) if found else ""
