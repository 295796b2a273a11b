"""How old the pinned packages are: the build date of each, as its wheel says, and known holes where pip-audit can ask.

python benchmarks/pins.py INDEX
python benchmarks/pins.py INDEX --only timm torch

INDEX is the address of a package index, the one that ends in /simple. Many builds set every date in a wheel to a
constant; for those the date is not known.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
_LINK = re.compile(r'href="([^"#]+\.whl)[^"]*"')
_FIRST_TRUE_YEAR = 2021  # builds without dates say 1980, 2016 or 2020


class Remote(io.RawIOBase):
    """A file on a server, of which only the asked parts are fetched."""

    def __init__(self, address: str) -> None:
        self.address, self.at = address, 0
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=60) as answer:
            self.size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of any file."""
        self.at = offset + (0, self.at, self.size)[whence]
        return self.at

    def tell(self) -> int:
        """As of any file."""
        return self.at

    def readinto(self, buffer: memoryview) -> int:
        """Fetch one part."""
        end = min(self.at + len(buffer), self.size)
        if self.at >= end:
            return 0
        asked = urllib.request.Request(self.address, headers={"Range": f"bytes={self.at}-{end - 1}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            data = answer.read(end - self.at)
        buffer[: len(data)] = data
        self.at += len(data)
        return len(data)


def built(pin: tuple[str, str], index: str) -> str:
    """The newest date in a wheel of this version, or why there is none."""
    name, version = pin
    page_address = f"{index}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    try:
        with urllib.request.urlopen(page_address, timeout=60) as page:
            links = _LINK.findall(page.read().decode())
        stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version.split('+')[0]}-"
        wheels = [link for link in links if link.rsplit("/", 1)[1].lower().replace("%2b", "+").startswith(stem)]
        if not wheels:
            return "no wheel"
        with zipfile.ZipFile(io.BufferedReader(Remote(urljoin(page_address, wheels[0])), 1 << 16)) as wheel:
            newest = max(entry.date_time for entry in wheel.infolist())
        return "{:04}-{:02}-{:02}".format(*newest) if newest[0] >= _FIRST_TRUE_YEAR else "not said"
    except (OSError, zipfile.BadZipFile, urllib.error.URLError) as error:
        return f"not reached ({type(error).__name__})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", help="address of a package index")
    parser.add_argument("--only", nargs="+", default=[], help="names of packages; all if not given")
    options = parser.parse_args()
    pins = [
        pin
        for pin in _PIN.findall(CONSTRAINTS.read_text(encoding="utf-8"))
        if not options.only or pin[0] in options.only
    ]
    with ThreadPoolExecutor(8) as pool:
        for (name, version), date in zip(
            pins, pool.map(partial(built, index=options.index.rstrip("/")), pins), strict=True
        ):
            print(f"{name:32} {version:16} {date}", flush=True)
    if shutil.which("pip-audit") is None:
        print("pip-audit is not installed: known holes were not looked for")
        return
    subprocess.run(["pip-audit", "-r", str(CONSTRAINTS), "--no-deps", "--disable-pip"], check=False)


if __name__ == "__main__":
    main()
