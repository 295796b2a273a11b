#!/usr/bin/env python3
"""Set everything up and run one job: ``python3 start.py demo`` or ``python3 start.py test``.

Needs Python 3.11 or newer and nothing else: makes a virtual environment, installs rungwise into it with the versions of
``constraints.txt``, and runs the job there.
"""

import argparse
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> int:
    """Parse, install, run."""
    parser = argparse.ArgumentParser(description="Set up rungwise in a virtual environment and run one job.")
    parser.add_argument("job", choices=["demo", "test"], help="the demo with its search page, or all checks")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="where the virtual environment is made")
    asked, rest = parser.parse_known_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python is given
        sys.exit(f"rungwise needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    python = install(asked.venv, "." if asked.job == "demo" else ".[dev]")
    if asked.job == "demo":
        # Where the user is: the commands that the demo prints are pasted there.
        return subprocess.call([python, "-m", "rungwise", "demo", *rest])
    return check(python)


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


def check(python: str) -> int:
    """Lint, types, tests with doctests, documentation, demo; stops at the first that fails."""
    steps = {
        "lint": ["-m", "ruff", "check", "."],
        "format": ["-m", "ruff", "format", "--check", "."],
        "types": ["-m", "mypy"],
        "docs": ["-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html"],
        "demo": ["-m", "rungwise", "demo", "--check"],
        "tests": ["-m", "pytest", "-q", "--numprocesses", str(os.cpu_count() or 1), "--dist", "loadfile"],
    }
    # The tests run in a process for each core; were each to take all cores, they would wait for one another.
    one_core = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name, arguments in steps.items():
        started = time.monotonic()
        print(f"\n== {name}", flush=True)
        code = subprocess.call([python, *arguments], cwd=ROOT, env=one_core if name == "tests" else None)
        print(
            f"== {name}: {'ok' if code == 0 else f'failed ({code})'} in {time.monotonic() - started:.0f} s", flush=True
        )
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
