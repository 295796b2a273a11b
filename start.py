#!/usr/bin/env python3
"""Set everything up and run one job: ``python3 start.py demo`` or ``python3 start.py test``.

Needs Python 3.11 or newer and nothing else: makes a virtual environment, installs rungwise into it with the versions of
``constraints.txt``, and runs the job there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
    checks = Checks(asked, rest) if asked.job == "test" else None
    if checks and not checks.steps():
        print(f"nothing differs from {asked.changed}: nothing to check")
        return 0
    python = install(asked.venv, "dev" if checks else "serve")
    if checks:
        return checks.run(python)
    # Where the user is: the commands that the demo prints are pasted there.
    return subprocess.call([python, "-m", "rungwise", "demo", *rest])


def parsed(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """What was asked for, and what goes on to the demo or to pytest."""
    parser = argparse.ArgumentParser(description="Set up rungwise in a virtual environment and run one job.")
    jobs = parser.add_subparsers(dest="job", required=True, metavar="demo | test")
    demo = jobs.add_parser("demo", help="two models on the same pictures, and a search page")
    test = jobs.add_parser(
        "test",
        help="the checks to run before a commit, or more of them",
        description="Run checks: tests/README.md says which. What follows -- goes to pytest.",
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
        help="only rooms that differ from a commit, and those that may import them",
    )
    test.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=f"only these steps: {', '.join(STEPS)}")
    test.add_argument("--last-failed", action="store_true", help="of the tests only those that failed last")
    test.add_argument("--random", action="store_true", help="run the tests in random order")
    test.add_argument(
        "--seed", type=int, help="the seed of what is drawn; one is drawn and printed where none is given"
    )
    if given[:1] == ["test"]:
        end = given.index("--") if "--" in given else len(given)
        return argparse.Namespace(job="test", **vars(test.parse_intermixed_args(given[1:end]))), given[end + 1 :]
    return parser.parse_known_args(given)  # the demo knows its own options


def install(folder: Path, extra: str) -> str:
    """Make the environment if there is none and install rungwise with an extra into it; returns its Python."""
    started = time.monotonic()
    python = folder.resolve() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"making a virtual environment in {folder}", flush=True)
        venv.create(folder, with_pip=True)
    print("installing (torch is large: this can take minutes)", flush=True)
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    command += ["--constraint", str(ROOT / "constraints.txt"), "--editable", f"{ROOT}[{extra}]"]
    if subprocess.call([*command, "--quiet"]):
        sys.exit(f"pip did not install rungwise; this says more: {shlex.join(command)}")
    print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return str(python)


class Checks:
    """The steps that were asked for: the tests speak as they go, the others run beside them, one after another."""

    def __init__(self, asked: argparse.Namespace, rest: list[str]) -> None:
        self.asked = asked
        self.seed = random.randrange(2**32) if asked.seed is None else asked.seed
        self.files = chosen_files(asked)
        self.passed = state_of_the_tree() if asked.long else None
        self.rest = rest
        self.failed: dict[str, list[str]] = {}  # steps in the order in which they failed, and what of them
        self._lock = threading.Lock()
        self._python = sys.executable
        self._over = False

    def run(self, python: str) -> int:
        """All steps; says at the end what failed, and how to run that again."""
        self._python = python
        started = time.monotonic()
        steps = self.steps()
        if self.asked.random:
            print(f"\nrandom order by the seed {self.seed}", flush=True)
        with ThreadPoolExecutor(1) as line:
            try:
                beside = [one for one in steps if one not in ("tests", "alone")]
                others = [line.submit(self._step, one, quietly="tests" in steps) for one in beside]
                if "tests" in steps:
                    self._tests()
                for other in others:
                    other.result()
                if "alone" in steps:
                    self._each_alone()
            except KeyboardInterrupt:  # which every process that is running was told as well
                self._over = True
                print("\ninterrupted", flush=True)
        seconds = time.monotonic() - started
        if not self.failed and not self._over:
            if self.passed and not (self.files or self.rest or self.asked.only or self.asked.last_failed):
                self.passed.unlink(missing_ok=True)  # the next long run begins anew
            print(f"\nall passed in {seconds:.0f} s: {', '.join(steps)}", flush=True)
            return 0
        if self.failed:
            print(f"\nfailed: {', '.join(self.failed)} (in {seconds:.0f} s)")
            for what in self.failed.values():
                print("".join(f"  {one}\n" for one in what), end="")
            print(f"again: {self.again()}", flush=True)
        return 130 if self._over else 1

    def steps(self) -> list[str]:
        """Names of the steps that were asked for; none where only what differs was, and nothing does."""
        if self.files == []:
            return []
        if self.asked.only:
            return [step for step in STEPS if step in self.asked.only]
        if self.asked.long:
            return ["tests"]
        if self.files:
            return ["tests", "lint", "format", "types", *(["docs"] if self.asked.changed else [])]
        return [step for step in STEPS if step != "alone" or self.asked.all]

    def again(self) -> str:
        """The command that runs again what failed."""
        asked = self.asked
        words = ["python3", sys.argv[0] if Path(sys.argv[0]).name == "start.py" else "start.py", "test"]
        words += [flag for flag in ("--all", "--long", "--random") if getattr(asked, flag[2:])]
        words += [] if asked.venv == ROOT / ".venv" else ["--venv", str(asked.venv)]
        words += ["--seed", str(self.seed)] if asked.random or "alone" in self.failed else []
        words += ["--last-failed"] if "tests" in self.failed else []
        words += ["--only", *self.failed]
        data = os.environ.get("RUNGWISE_DATA")
        return (f"RUNGWISE_DATA={shlex.quote(data)} " if data else "") + shlex.join(words)

    def _tests(self) -> None:
        """The tests, as many files at once as there are cores."""
        with tempfile.TemporaryDirectory() as folder:
            noted = Path(folder) / "failures.txt"
            command = [*self._pytest(), "--failures", str(noted), "--durations", "20"]
            # A process that ends in the middle of a test ends the run: in another one the test would do so again.
            command += ["--numprocesses", str(CORES), "--dist", "loadfile", "--max-worker-restart", "0"]
            command += ["--last-failed"] if self.asked.last_failed else []
            resumed = self.passed is not None and self.passed.is_file()
            code = self._step("tests", [*command, *self.rest, *(self.files or [])], none_left_is_fine=resumed)
            if code:
                self.failed["tests"] = noted.read_text(encoding="utf-8").splitlines() if noted.is_file() else []

    def _pytest(self) -> list[str]:
        """What every run of pytest is given."""
        command = ["pytest", "-q"]
        if self.asked.all:
            command += ["-m", "not long"]
        if self.asked.long:
            # A family of attacks may take longer than any other test.
            command += ["-m", "long", "-o", "faulthandler_timeout=14400"]
        if self.passed:
            command += ["--passed", str(self.passed)]
        if self.asked.random:
            # The files as drawn, not the largest first.
            command += ["-p", "randomly", "--randomly-seed", str(self.seed), "--no-loadscope-reorder"]
        return command

    def _step(
        self, name: str, module: list[str] | None = None, *, quietly: bool = False, none_left_is_fine: bool = False
    ) -> int:
        """Run one step. What it prints is shown as it comes, or ``quietly`` at its end and only if it failed."""
        modules = {
            "lint": ["ruff", "check", "."],
            "format": ["ruff", "format", "--check", "."],
            "types": ["mypy"],
            "docs": ["sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html"],
            "demo": ["rungwise", "demo", "--check", *([] if self.asked.all else ["--small"])],
        }
        if self._over:
            return 0
        started = time.monotonic()
        if not quietly:
            print(f"\n== {name}", flush=True)
        code, said = self._call(module or modules[name], quietly=quietly)
        if code == 5 and none_left_is_fine:  # a run that ended after its last test, and before it was done
            code = 0
        self._say(name, code, time.monotonic() - started, said if code else "")
        return code

    def _call(self, module: list[str], *, quietly: bool) -> tuple[int, str]:
        """Run a module of the environment; returns its exit code, and what it printed where that was not shown."""
        # The tests run in a process for each core; were each to take all cores, they would wait for one another.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE if quietly else None
        errors = subprocess.STDOUT if quietly else None
        with subprocess.Popen(
            [self._python, "-m", *module], cwd=ROOT, env=environment, stdout=pipe, stderr=errors
        ) as process:
            try:
                said, _ = process.communicate()
            except KeyboardInterrupt:
                with suppress(KeyboardInterrupt):
                    process.wait()  # pytest notes what failed until now
                raise
        return process.returncode, (said or b"").decode(errors="replace")

    def _say(self, name: str, code: int, seconds: float, said: str) -> None:
        with self._lock:
            print(f"\n{said}== {name}: {'ok' if code == 0 else f'failed ({code})'} in {seconds:.0f} s", flush=True)
            if code:
                self.failed.setdefault(name, [])

    def _each_alone(self) -> None:
        """Some test files, each in a process of its own: no test may need what another left behind."""
        started = time.monotonic()
        candidates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
        drawn = random.Random(self.seed).sample(candidates, ALONE)
        print(f"\n== alone: {ALONE} of {len(candidates)} test files, drawn by the seed {self.seed}", flush=True)
        failed = []

        def run(file: str) -> None:
            code, said = self._call([*self._pytest(), "-p", "no:cacheprovider", file], quietly=True)
            with self._lock:
                if code in (0, 5):  # 5: all its tests are of the long tier
                    print(f"ok     {file}", flush=True)
                else:
                    failed.append(file)
                    print(f"{said}\nFAILED {file}", flush=True)

        with ThreadPoolExecutor(CORES) as pool:
            try:
                list(pool.map(run, drawn))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
        self._say("alone", int(bool(failed)), time.monotonic() - started, "")
        if failed:
            self.failed["alone"] = failed


def chosen_files(asked: argparse.Namespace) -> list[str] | None:
    """What pytest is given where a part was asked for; None for everything, and nothing where nothing differs."""
    from tests import rooms

    chosen = set(asked.rooms)
    if unknown := chosen - rooms.rooms():
        sys.exit(f"start.py test: no room {', '.join(sorted(unknown))}; there are {', '.join(sorted(rooms.rooms()))}")
    if asked.changed:
        try:
            touched = rooms.changed(asked.changed)
            if touched == set() and not chosen and not rooms.differing(asked.changed):
                return []
        except (OSError, subprocess.CalledProcessError):
            sys.exit(f"start.py test: git cannot compare with {asked.changed}; name a commit or a branch of this clone")
        if touched is None:
            print(f"what differs from {asked.changed} concerns all rooms", flush=True)
            return None
        print(
            f"rooms that differ from {asked.changed}, and those above: {', '.join(sorted(touched)) or 'none'}",
            flush=True,
        )
        chosen |= touched
    return rooms.files_of(chosen) if chosen or asked.changed else None


def state_of_the_tree() -> Path | None:
    """Where a long run notes what passed, a file for each state of the tree; None where git does not tell the state."""
    from tests import rooms

    try:
        names = rooms.files_of_the_tree()
    except (OSError, subprocess.CalledProcessError):
        print("this is no clone of git: a long run that is broken off begins anew", flush=True)
        return None
    digest = hashlib.sha256()
    for name in names:
        if (ROOT / name).is_file():
            digest.update(os.fsencode(f"{name}\n"))
            digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return ROOT / ".pytest_cache" / f"passed-{digest.hexdigest()[:12]}.txt"


if __name__ == "__main__":
    sys.exit(main())
