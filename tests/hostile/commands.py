"""Hostile files under every command, through the whole command line: exit code, one line, nothing for the terminal.

Most run in forked children of the warmed-up parent; with :func:`run_processes` some do as real processes.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any
from unittest import mock

from rungwise.cli.examine._verify import UNCHECKED
from rungwise.jobs import _terminal as terminal
from tests.hostile import world as good
from tests.hostile.choice import Choice
from tests.hostile.counting import Case, Verdict
from tests.hostile.damage import damages
from tests.hostile.files import _last, _remove
from tests.hostile.forked import Outcome, end_with_the_parent, outcomes, without_privileges
from tests.hostile.places import FILES, FOLDERS, Place
from tests.hostile.readers import benchmarks, collections

FAMILY = "commands"

_SERVERS = tuple(f"rungwise.cli.{one}.say" for one in ("serve._command", "serve._model", "serve._mcp", "_grade"))
"""By these, commands that end when they are asked to say that they are ready."""
_READY = "(Ctrl-C ends)"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Command:
    """One command line with the files that it reads.

    Attributes:
        name: For the table.
        arguments: With ``{}`` for the folder that the case is played in.
        folders: Of the world that it needs.
        files: That are attacked, relative to the place.
        whole: Folders that are replaced by other things.
    """

    name: str
    arguments: tuple[str, ...]
    folders: tuple[str, ...]
    files: tuple[str, ...]
    whole: tuple[str, ...] = ()


def commands() -> list[Command]:
    """Each command in the ways that it reads files."""
    from rungwise.cli import COMMANDS

    model = ("run/model/config.json", "run/model/model.safetensors", "run/model/tokenizer.json")
    index = ("index/index/index.json", "index/index/pictures/rows-0.jsonl", "index/index/pictures/vectors-0.npy",
             "index/index/captions/store.json")  # fmt: skip
    picture = f"csv/{good.NAMES[0]}"
    evaluate = ("evaluate", "--captions-per-image", "1")
    graded = ("--measures", "CS@10")  # takes degrees below 0, as the similarities have
    found = [
        *(Command("inspect", ("inspect", f"{{}}/{one.folder}"), (one.folder,), (f"{one.folder}/{one.files[0]}",),
                  (one.folder,)) for one in (*collections(), *benchmarks())),
        Command("train", ("train", "{}/run/config.yaml", "{}/csv", "--out", "{}/new", "--cache", "{}/cache"),
                ("run", "csv"), ("run/config.yaml", "csv/captions.csv"), ("csv",)),
        Command("train --resume", ("train", "{}/run/config.yaml", "{}/csv", "--out", "{}/run", "--cache", "{}/cache",
                                   "--resume"),
                ("run", "csv"), ("run/checkpoint.safetensors", "run/config.yaml"), ("run",)),
        Command("evaluate a model", ("evaluate", "{}/run/model", "{}/csv", "--split", "all", "--cache", "{}/cache"),
                ("run", "csv"), (*model, picture), ("run/model",)),
        Command("evaluate a benchmark", ("evaluate", "{}/run/model", "{}/winoground", "--cache", "{}/cache"),
                ("run", "winoground"), ("winoground/examples.jsonl", "winoground/images/ex_0_img_0.png"),
                ("winoground",)),
        *(Command("evaluate embeddings", (*evaluate, "--image-embeddings", f"{{}}/evaluation/vectors.{kind}",
                                          "--text-embeddings", "{}/evaluation/vectors.npy"),
                  ("evaluation",), (f"evaluation/vectors.{kind}",)) for kind in ("npz", "safetensors", "parquet")),
        *(Command("evaluate similarities", (*evaluate, "--similarity", f"{{}}/evaluation/similarity.{kind}",
                                            "--relevance", "{}/evaluation/similarity.npy", *graded),
                  ("evaluation",), (f"evaluation/similarity.{kind}",)) for kind in ("npy", "json", "jsonl")),
        *(Command("evaluate ranked lists", ("evaluate", "{}/flickr8k", "--split", "all", "--captions-only",
                                            "--ranked-lists", f"{{}}/evaluation/run.{kind}", "--measures", "R@1"),
                  ("evaluation", "flickr8k"), (f"evaluation/run.{kind}",)) for kind in ("json", "trec")),
        *(Command("evaluate, degrees in lines", ("evaluate", "{}/flickr8k", "--split", "all", "--captions-only",
                                                 "--ranked-lists", "{}/evaluation/run.trec", "--missing-queries",
                                                 "zero", "--relevance", f"{{}}/evaluation/{name}", "--measures",
                                                 "nDCG@5"),
                  ("evaluation", "flickr8k"), (f"evaluation/{name}",)) for name in ("degrees.tsv", "graded.qrels")),
        Command("evaluate, degrees", (*evaluate, "--similarity", "{}/evaluation/similarity.npy", "--relevance",
                                      "{}/degrees/dense", *graded), ("evaluation", "degrees"),
                ("degrees/dense/relevance.json", "degrees/dense/values.npy"), ("degrees/dense",)),
        Command("evaluate, judgements", ("evaluate", "{}/csv", "--split", "all", "--similarity",
                                         "{}/evaluation/similarity.npy", "--positives", "{}/evaluation/people.jsonl"),
                ("csv", "evaluation"), ("evaluation/people.jsonl",)),
        Command("grade", ("grade", "{}/evaluation/grades.csv", "--data", "{}/csv", "--port", "0", "--no-browser"),
                ("evaluation", "csv"), ("evaluation/grades.csv", "csv/captions.csv", picture), ("csv",)),
        Command("grade --agreement", ("grade", "{}/evaluation/grades.csv", "--out", "{}/evaluation/people.jsonl",
                                      "--agreement"), ("evaluation",), ("evaluation/people.jsonl",)),
        Command("compare", ("compare", "{}/evaluation/first.json", "{}/evaluation/second.json", "--draws", "20"),
                ("evaluation",), ("evaluation/first.json",)),
        Command("table", ("table", "vsepp:1", "--runs", "{}/run"), ("run",),
                ("run/results/result.json", "run/config.yaml", *model[:2]), ("run", "run/results")),
        Command("table of runs", ("table", "--runs", "{}/run"), ("run",), ("run/results/result.json",), ("run",)),
        Command("table of kept results", ("table", "--runs", "{}/kept"), ("kept",), ("kept/seed-0.json",), ("kept",)),
        Command("plot", ("plot", "{}/run", "--out", "{}/new.svg"), ("run",),
                ("run/results/result.json", "run/history.jsonl", "run/config.yaml"), ("run",)),
        Command("study", ("study", "{}/study/study.yaml", "--data", "{}/csv", "--out", "{}/new", "--cache", "{}/cache"),
                ("study", "csv"), ("study/study.yaml", "csv/captions.csv"), ("csv",)),
        Command("relevance", ("relevance", "cider-d", "{}/csv", "--out", "{}/new"), ("csv",), ("csv/captions.csv",),
                ("csv",)),
        Command("relevance human", ("relevance", "human", "{}/flickr8k", "--judgements",
                                    "{}/evaluation/grades.csv"), ("flickr8k", "evaluation"),
                ("evaluation/grades.csv",)),
        *(Command("relevance agree", ("relevance", "agree", "tfidf", f"{{}}/evaluation/{name}", "--data",
                                      "{}/flickr8k", "--draws", "5"), ("flickr8k", "evaluation"),
                  (f"evaluation/{name}",)) for name in ("grades.csv", "sts.csv", "rated.jsonl", "preferred.csv")),
        Command("relevance agree, Pascal-50S", ("relevance", "agree", "tfidf", "{}/evaluation/votes.mat",
                                                "{}/evaluation/pairs.mat", "--draws", "5"), ("evaluation",),
                ("evaluation/votes.mat", "evaluation/pairs.mat")),
        Command("relevance cbow", ("relevance", "cbow", "{}/csv", "--vectors", "{}/words/glove.txt.gz"),
                ("csv", "words"), ("words/glove.txt.gz",)),
        Command("train-cross-encoder", ("relevance", "train-cross-encoder", "{}/scored", "--model", "{}/pair_encoder",
                                        "--epochs", "1", "--out", "{}/new"), ("scored", "pair_encoder"),
                ("scored/sts-train.csv", "pair_encoder/config.json", "pair_encoder/tokenizer.json",
                 "pair_encoder/model.safetensors"), ("scored", "pair_encoder")),
        Command("train-cross-encoder, a table", ("relevance", "train-cross-encoder", "{}/scored/pairs.csv", "--model",
                                                 "{}/pair_encoder", "--epochs", "1", "--out", "{}/new"),
                ("scored", "pair_encoder"), ("scored/pairs.csv",)),
        Command("index", ("index", "{}/csv", "--model", "{}/run/model", "--out", "{}/new"), ("csv", "run"),
                (*model, picture, "csv/captions.csv"), ("csv", "run/model")),
        Command("index --overwrite", ("index", "{}/csv", "--model", "{}/run/model", "--out", "{}/index/index",
                                      "--overwrite"), ("csv", "run", "index"), index[:2], ("index/index",)),
        Command("search", ("search", "{}/index/index", "a red picture", "--model", "{}/run/model"),
                ("index", "run"), (*index, *model), ("index/index", "run/model")),
        Command("search --image", ("search", "{}/index/index", "--image", f"{{}}/{picture}", "--model",
                                   "{}/run/model"), ("index", "run", "csv"), (picture,)),
        Command("check --against", ("check", "{}/index/index", "--against",
                                    "faiss:{}/engine/rows.faiss?ids={}/engine/ids.txt", "--model", "{}/run/model"),
                ("index", "run", "engine"), ("engine/ids.txt",)),
        Command("serve", ("serve", "{}/index/index", "--model", "{}/run/model", "--port", "0", "--no-browser"),
                ("index", "run"), index[:3], ("index/index",)),
        Command("serve-model", ("serve-model", "{}/run/model", "--port", "0"), ("run",), model, ("run/model",)),
        Command("serve-model, exported", ("serve-model", "{}/exported", "--port", "0"), ("exported",),
                ("exported/config.json", "exported/image.onnx", "exported/tokenizer.json"), ("exported",)),
        Command("mcp", ("mcp", "{}/index/index", "--model", "{}/run/model", "--http", "--port", "0"), ("index", "run"),
                index[:3], ("index/index",)),
        Command("import", ("import", "{}/vsepp/model_best.pth.tar", "{}/vsepp/vocab.pkl", "--out", "{}/new"),
                ("vsepp",),
                ("vsepp/model_best.pth.tar", "vsepp/vocab.pkl")),
        Command("push", ("push", "{}/saved_words", "someone/model"), ("saved_words",),
                ("saved_words/config.json", "saved_words/model.safetensors"), ("saved_words",)),
        Command("index, published", ("index", "{}/csv", "--model", "hf:{}/clip", "--out", "{}/new"), ("csv", "clip"),
                ("clip/config.json", "clip/preprocessor_config.json", "clip/tokenizer.json")),
        Command("index, exported", ("index", "{}/csv", "--model", "{}/exported", "--out", "{}/new"),
                ("csv", "exported"), ("exported/config.json", "exported/text.onnx"), ("exported",)),
        Command("evaluate --card", ("evaluate", "{}/run/model", "{}/csv", "--split", "all", "--cache", "{}/cache",
                                    "--card"), ("run", "csv"), model[:1], ("run/model",)),
    ]  # fmt: skip
    if "verify" in COMMANDS:
        found += [
            Command("verify", ("verify", f"{{}}/{folder}"), (folder.partition("/")[0],), files, (folder,))
            for folder, files in (
                ("index/index", index),
                ("run/model", model),
                ("run", ("run/checkpoint.safetensors",)),
                ("degrees/dense", ("degrees/dense/relevance.json", "degrees/dense/values.npy")),
                ("caches/rows-2", ("caches/rows-2/rows.bin", "caches/rows-2/keys.bin")),
            )
        ]
    return found


@dataclass(frozen=True)
class _Attack:
    command: Command
    file: str
    name: str
    data: bytes | None = None
    place: Place | None = None


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every command with a share of the attacks on each of its files."""
    for command in commands():
        found = list(_attacks(command, world, choice))
        for as_nobody in (False, True):
            some = [one for one in found if bool(one.place and one.place.as_nobody) == as_nobody]
            if as_nobody and without_privileges() is None:
                continue
            jobs = [partial(_carry_out, one, world, scratch / str(number)) for number, one in enumerate(some)]
            ended = outcomes(jobs, memory=2 << 30, as_nobody=as_nobody and bool(without_privileges()))
            for attack, outcome in zip(some, ended, strict=True):
                verdict, detail = _judged(attack, outcome)
                yield Case(FAMILY, command.name, f"{attack.file}: {attack.name}", verdict, detail)
            for left in scratch.iterdir():
                _remove(left)


def run_processes(world: Path, scratch: Path, choice: Choice, count: int) -> Iterator[Case]:
    """Some of the same as real processes, started as a user starts them."""
    found = [one for command in commands() for one in _attacks(command, world, Choice(choice.seed))]
    found = [one for one in found if not (one.place and one.place.as_nobody)]
    for number, attack in enumerate(Random(f"{choice.seed} {choice.part}").sample(found, min(count, len(found)))):
        place = scratch / f"process-{number}"
        _set_up(attack, world, place)
        arguments = [one.replace("{}", str(place)) for one in attack.command.arguments]
        outcome = Outcome("returned", as_process(arguments, place))
        verdict, detail = _judged(attack, outcome)
        yield Case(FAMILY, "as processes", f"{' '.join(arguments[:1])}: {attack.file}: {attack.name}", verdict, detail)
        _remove(place)


def as_process(
    arguments: Sequence[str],
    place: Path,
    *,
    program: Sequence[str] = ("-m", "rungwise"),
    limit: Callable[[], object] = end_with_the_parent,
    settings: Mapping[str, str] = MappingProxyType({}),
    without: Sequence[str] = (),
) -> Any:
    """Exit code, standard output and standard error; a server is ended once it says that it is ready.

    Args:
        arguments: Of the command line.
        place: The working folder.
        program: What the interpreter is told to run.
        limit: Called in the new process before anything else.
        settings: Environment variables besides those of this process.
        without: Environment variables of this process that it does not get.
    """
    command, out = [sys.executable, *program, *arguments], b""
    with (
        (place / ".stderr").open("w+b") as error,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=error,
            cwd=place,
            env={name: value for name, value in os.environ.items() if name not in without} | settings,
            preexec_fn=limit,
        ) as run,
    ):
        assert run.stdout is not None
        for line in run.stdout:
            out += line
            if _READY.encode() in line:
                run.send_signal(signal.SIGINT)
        run.wait()
        error.seek(0)
        return [run.returncode, *(one.decode("utf-8", "backslashreplace") for one in (out, error.read()))]


def _attacks(command: Command, world: Path, choice: Choice) -> Iterator[_Attack]:
    def takes(name: str, fraction: float = 1.0) -> bool:
        return choice.takes(f"{command.name} {command.arguments}: {name}", fraction)

    for file in command.files:
        path = world / file
        if not path.is_file():
            continue
        data = path.read_bytes()
        for damage in damages(path.name, data, Random(f"{choice.seed} {file}")):
            if damage.data != data and takes(f"{file}: {damage.name}", 1 / 4):
                yield _Attack(command, file, damage.name, data=damage.data)
        for place in FILES:
            if takes(f"{file}: {place.name}"):
                yield _Attack(command, file, place.name, place=place)
    for folder in command.whole:
        for place in FOLDERS:
            if takes(f"{folder}, whole: {place.name}"):
                yield _Attack(command, folder, place.name, place=place)


def _set_up(attack: _Attack, world: Path, place: Path) -> None:
    place.mkdir()
    for folder in attack.command.folders:
        shutil.copytree(world / folder, place / folder, symlinks=True, copy_function=shutil.copyfile)
    target = place / attack.file
    if attack.data is not None:
        target.write_bytes(attack.data)
    elif attack.place is not None:
        attack.place.put(target)


def _carry_out(attack: _Attack, world: Path, place: Path) -> Any:
    try:
        _set_up(attack, world, place)
        os.chdir(place)
        arguments = [one.replace("{}", str(place)) for one in attack.command.arguments]
        return _through_the_command_line(arguments, place)
    finally:
        os.chdir("/")
        _remove(place)


def _through_the_command_line(arguments: Sequence[str], place: Path) -> Any:
    """Exit code, standard output and standard error of the command's own entry."""
    from rungwise.cli import main

    def say(text: str) -> None:
        terminal.say(text)
        if _READY in text:
            os.kill(os.getpid(), signal.SIGINT)

    kept = [os.dup(stream) for stream in (1, 2)]
    files = [place / name for name in (".stdout", ".stderr")]
    for stream, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), stream)
    code: Any = 0
    try:
        with ExitStack() as patched:
            for name in _SERVERS:
                patched.enter_context(mock.patch(name, say))
            code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, old in zip((1, 2), kept, strict=True):
            os.dup2(old, stream)
    return [code, *(file.read_bytes().decode("utf-8", "backslashreplace") for file in files)]


def _judged(attack: _Attack, outcome: Outcome) -> tuple[Verdict, str]:
    if outcome.ending == "died":
        return "traceback", f"the process died with status {outcome.value}: {outcome.text}"
    if outcome.ending != "returned":
        return "traceback", "\n    ".join(_last(outcome.text))
    code, out, error = outcome.value
    if found := _CONTROL.search(out + error):
        return "wrong", f"{found[0]!r} reaches the terminal: {(out + error)[max(0, found.start() - 60) :][:120]!r}"
    if code == 70 or "Traceback" in error:
        return "traceback", error.strip()[-500:]
    verifies = attack.command.name == "verify"
    if code in (0, UNCHECKED) and verifies and attack.data is not None and attack.name != "no line end":
        return "wrong", "altered, and verify finds nothing wrong"
    if code in (0, 130) or (code == UNCHECKED and verifies):
        return "accepted", f"exit {code}"
    if code == 2 and verifies and not error and "found something wrong" in out:
        return "clean", out.strip().splitlines()[-1]  # what it found is its answer, and not an error
    lines = error.strip().splitlines()
    if code == 2 and len(lines) == 1 and lines[0].startswith("rungwise "):
        return "clean", lines[0]
    return "traceback", f"exit {code}, {len(lines)} lines: {error[-400:]}"
