"""What each extra adds beside torch: packages, MB on disk, and seconds of import.

    python benchmarks/extras.py [--python PYTHON]

Packages and MB are those of this environment, in which everything is installed (``pip install '.[dev]'``): what the
requirements of pyproject.toml lead to, without torch and what torch itself brings. MB are the sizes of the files that
each package recorded when it was installed. Seconds are the fastest of five starts of ``--python``, such as one of an
environment with the bare install. The output is the table of docs/start/installing.md.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"bench", "docs", "dev"}
IMPORTS = {
    "nothing": "pass",
    "import torch": "import torch",
    "import rungwise": "import rungwise",
    "from rungwise.losses import Ladder": "from rungwise.losses import Ladder",
    "from rungwise.metrics import NDCG": "from rungwise.metrics import NDCG",
    "from rungwise import evaluate": "from rungwise import evaluate",
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="Python whose imports are timed")
    asked = parser.parse_args()
    torch = packages(["torch"])
    print("| install | packages beside torch | MB beside torch |\n| --- | ---: | ---: |")
    for extra in ["", *(one for one in EXTRAS if one not in FOR_DEVELOPERS)]:
        found = packages([f"rungwise[{extra}]"]) - torch - {"rungwise"}
        absent = sorted(one for one in found if distribution(one) is None)
        megabytes = sum(map(size, found)) / 1e6
        name = f"rungwise[{extra}]" if extra else "rungwise"
        print(
            f"| `{name}` | {len(found)} | {megabytes:.0f} |" + (f" (not here: {', '.join(absent)})" if absent else "")
        )
    print("\n| import | seconds |\n| --- | ---: |")
    for name, code in IMPORTS.items():
        print(f"| {name if name == 'nothing' else f'`{name}`'} | {seconds(asked.python, code):.2f} |")


def packages(requirements: Iterable[str]) -> set[str]:
    """Names of the packages that requirements lead to, with those that are not installed here."""
    found: set[tuple[str, str]] = set()
    waiting = list(map(Requirement, requirements))
    while waiting:
        asked = waiting.pop()
        for extra in asked.extras | {""}:
            name = re.sub(r"[-_.]+", "-", asked.name).lower()
            if (name, extra) in found:
                continue
            found.add((name, extra))
            more = map(Requirement, required(name, extra))
            waiting += [one for one in more if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def required(name: str, extra: str) -> list[str]:
    """What a package requires; of rungwise what this checkout says."""
    if name == "rungwise":
        return EXTRAS[extra] if extra else PROJECT["dependencies"]
    there = distribution(name)
    return list(there.requires or []) if there else []


def distribution(name: str) -> metadata.Distribution | None:
    """A package that is installed here."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def size(name: str) -> int:
    """Bytes of the files of a package."""
    there = distribution(name)
    files = [Path(str(there.locate_file(one))) for one in (there.files or [])] if there else []
    return sum(one.stat().st_size for one in files if one.is_file())


def seconds(python: str, code: str) -> float:
    """The fastest of five runs of some code in a new process."""
    took = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([python, "-c", code], check=True)
        took.append(time.perf_counter() - started)
    return min(took)


if __name__ == "__main__":
    main()
