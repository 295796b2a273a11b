#!/usr/bin/env python3
"""Set everything up and run one job: ``python3 start.py demo`` or ``python3 start.py test``.

Needs Python 3.11 or newer and nothing else: makes a virtual environment, installs rungwise into it with the versions of
``constraints.txt``, and runs the job there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent
STEPS = ("tests", "lint", "format", "types", "docs", "demo", "alone")
CORES = os.cpu_count() or 1
ALONE = 30
"""Test files that the whole tier runs each by itself."""


def main() -> int:
    """Parse, install, run."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python is given
        sys.exit(f"rungwise needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    asked, rest = parsed(sys.argv[1:])
    python = install(asked.venv, "." if asked.job == "demo" else ".[dev]")
    if asked.job == "demo":
        # Where the user is: the commands that the demo prints are pasted there.
        return subprocess.call([python, "-m", "rungwise", "demo", *rest])
    return Checks(python, asked, rest).run()


def parsed(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and what goes on to the demo or to pytest."""
    parser = argparse.ArgumentParser(description="Set up rungwise in a virtual environment and run one job.")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="demo | test")
    demo = jobs.add_parser("demo", help="two models on the same pictures, and a search page")
    test = jobs.add_parser(
        "test", help="all checks", description="Run checks: tests/README.md says which. What follows -- goes to pytest."
    )
    for job in (demo, test):
        job.add_argument("--venv", type=Path, default=ROOT / ".venv", help="where the virtual environment is made")
    tier = test.add_mutually_exclusive_group()
    tier.add_argument("--all", action="store_true", help="the whole tier: also what is marked slow; up to an hour")
    tier.add_argument("--long", action="store_true", help="what is marked long; hours; goes on where it stopped")
    test.add_argument("rooms", nargs="*", metavar="ROOM", help="only the tests of these rooms, such as losses or index")
    test.add_argument(
        "--changed",
        nargs="?",
        const="HEAD",
        metavar="SINCE",
        help="only rooms that differ from a commit, and those above",
    )
    test.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=f"only these steps: {', '.join(STEPS)}")
    test.add_argument("--last-failed", action="store_true", help="of the tests only those that failed last")
    test.add_argument("--random", action="store_true", help="run the tests in random order")
    test.add_argument(
        "--seed", type=int, help="the seed of what is drawn; one is drawn and printed where none is given"
    )
    if given[:1] == ["test"]:
        end = given.index("--") if "--" in given else len(given)
        return parser.parse_args(given[:end]), given[end + 1 :]
    return parser.parse_known_args(given)  # the demo knows its own options


def install(folder: Path, what: str) -> str:
    """Make the environment if there is none and install into it; returns its Python."""
    started = time.monotonic()
    python = folder.resolve() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"making a virtual environment in {folder}", flush=True)
        venv.create(folder, with_pip=True)
    print("installing (torch is large: this can take minutes)", flush=True)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.check_call([*command, "--constraint", "constraints.txt", "--editable", what], cwd=ROOT)
    print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return str(python)


class Checks:
    """The steps that were asked for: the tests speak as they go, the others run beside them, one after another."""

    def __init__(self, python: str, asked: argparse.Namespace, rest: list[str]) -> None:
        self.python = python
        self.asked = asked
        self.seed = random.randrange(2**32) if asked.seed is None else asked.seed
        self.files = chosen_files(asked)
        self.passed = ROOT / ".pytest_cache" / f"passed-{state_of_the_tree()}.txt" if asked.long else None
        self.rest = rest
        self.failed: list[str] = []  # in the order in which it happened
        self._lock = threading.Lock()

    def run(self) -> int:
        """All steps; says at the end what failed, and how to run that again."""
        started = time.monotonic()
        steps = self.steps()
        beside = [name for name in steps if name not in ("tests", "alone")]
        with ThreadPoolExecutor(1) as line:
            others = [line.submit(self._step, name, quietly="tests" in steps) for name in beside]
            if "tests" in steps:
                self._step("tests")
            for other in others:
                other.result()
        if "alone" in steps:
            self._each_alone()
        if not self.failed:
            if self.passed:
                self.passed.unlink(missing_ok=True)  # the next long run begins anew
            print(f"\nall passed in {time.monotonic() - started:.0f} s: {', '.join(steps)}", flush=True)
            return 0
        print(f"\nfailed: {', '.join(self.failed)} (in {time.monotonic() - started:.0f} s)")
        for test in self._failed_tests():
            print(f"  {test}")
        print(f"again: {self.again()}", flush=True)
        return 1

    def steps(self) -> list[str]:
        """Names of the steps that were asked for."""
        if self.asked.only:
            return [step for step in STEPS if step in self.asked.only]
        if self.asked.long:
            return ["tests"]
        if self.files:
            return ["tests", "lint", "format", "types"]
        return [step for step in STEPS if step != "alone" or self.asked.all]

    def _command(self, step: str) -> list[str]:
        commands = {
            "lint": ["ruff", "check", "."],
            "format": ["ruff", "format", "--check", "."],
            "types": ["mypy"],
            "docs": ["sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html"],
            "demo": ["rungwise", "demo", "--check", *([] if self.asked.all else ["--small"])],
            "tests": [*self._pytest(), "--numprocesses", str(CORES), "--dist", "loadfile", "--durations", "20"],
        }
        again = ["--last-failed"] if self.asked.last_failed else []
        more = [*again, *self.rest, *self.files] if step == "tests" else []
        return [self.python, "-m", *commands[step], *more]

    def _pytest(self) -> list[str]:
        """What every run of pytest is given."""
        command = ["pytest", "-q"]
        if self.asked.all:
            command += ["-m", "not long"]
        if self.passed:
            # A family of attacks may take longer than any other test.
            command += ["-m", "long", "-o", "faulthandler_timeout=14400", "--passed", str(self.passed)]
        if self.asked.random:
            # The rooms' files as drawn, not the largest first.
            command += ["-p", "randomly", "--randomly-seed", str(self.seed), "--no-loadscope-reorder"]
        return command

    def _step(self, name: str, *, quietly: bool = False) -> None:
        """Run one step. What it prints is shown as it comes, or ``quietly`` at its end and only if it failed."""
        started = time.monotonic()
        if not quietly:
            print(f"\n== {name}", flush=True)
        # The tests run in a process for each core; were each to take all cores, they would wait for one another.
        run = subprocess.run(
            self._command(name),
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE if quietly else None,
            stderr=subprocess.STDOUT if quietly else None,
            check=False,
        )
        # 5: there was no test left to run, as where a run ended after its last test and before it was done.
        code = 0 if run.returncode == 5 and self.passed and name == "tests" else run.returncode
        self._say(name, code, time.monotonic() - started, run.stdout)

    def _say(self, name: str, code: int, seconds: float, output: bytes | None) -> None:
        with self._lock:
            said = output.decode(errors="replace") if output and code else ""
            print(f"\n{said}== {name}: {'ok' if code == 0 else f'failed ({code})'} in {seconds:.0f} s", flush=True)
            if code:
                self.failed.append(name)

    def _each_alone(self) -> None:
        """Some test files, each in a process of its own: no test may need what another left behind."""
        started = time.monotonic()
        candidates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
        drawn = random.Random(self.seed).sample(candidates, ALONE)
        print(f"\n== alone: {ALONE} of {len(candidates)} test files, drawn by the seed {self.seed}", flush=True)

        def run(file: str) -> int:
            command = [self.python, "-m", *self._pytest(), file]
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True)
            code = 0 if done.returncode == 5 else done.returncode  # 5: all its tests are of the long tier
            print(f"{'ok    ' if code == 0 else 'FAILED'} {file}", flush=True)
            if code:
                print((done.stdout + done.stderr).decode(errors="replace"), flush=True)
            return code

        with ThreadPoolExecutor(CORES) as pool:
            codes = list(pool.map(run, drawn))
        self._say("alone", max(codes), time.monotonic() - started, None)

    def _failed_tests(self) -> list[str]:
        """What pytest noted as failed, if the tests did."""
        noted = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
        if "tests" not in self.failed or not noted.is_file():
            return []
        return sorted(json.loads(noted.read_text(encoding="utf-8")))

    def again(self) -> str:
        """The command that runs again what failed."""
        words = ["python3 start.py test", *(flag for flag in ("--all", "--long") if getattr(self.asked, flag[2:]))]
        if self.asked.venv != ROOT / ".venv":
            words.append(f"--venv {self.asked.venv}")
        if self.asked.random or "alone" in self.failed:
            words.append(f"--seed {self.seed}")
        if self.asked.random:
            words.append("--random")
        words.append(f"--only {' '.join(self.failed)}")
        if "tests" in self.failed:
            words.append("--last-failed")
        return " ".join(words)


def chosen_files(asked: argparse.Namespace) -> list[str]:
    """What pytest is given where a part was asked for; empty for everything."""
    from tests import rooms

    chosen = set(asked.rooms)
    if unknown := chosen - rooms.rooms():
        sys.exit(f"start.py test: no room {', '.join(sorted(unknown))}; there are {', '.join(sorted(rooms.rooms()))}")
    if asked.changed:
        try:
            touched = rooms.changed(asked.changed)
        except (OSError, subprocess.CalledProcessError):
            sys.exit(f"start.py test: git cannot compare with {asked.changed}; name a commit or a branch of this clone")
        if touched is None:
            print(f"what differs from {asked.changed} concerns all rooms", flush=True)
            return []
        print(
            f"rooms that differ from {asked.changed}, and those above: {', '.join(sorted(touched)) or 'none'}",
            flush=True,
        )
        chosen |= touched
    return rooms.files_of(chosen) if chosen or asked.changed else []


def state_of_the_tree() -> str:
    """A short hash of the commit and of all that differs from it: what passed in another state counts for nothing."""
    commands = (["rev-parse", "HEAD"], ["diff", "HEAD"])
    parts = [subprocess.run(["git", *one], cwd=ROOT, capture_output=True, check=False).stdout for one in commands]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
