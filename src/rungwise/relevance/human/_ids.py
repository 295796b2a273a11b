"""Items found by their ids, which files of judgements and of positives write in more than one way.

An image is found by its id, by its file's name without folder and ending, or by the number that ends it, since COCO's
annotations call ``COCO_val2014_000000391895.jpg`` just 391895.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from rungwise.core import UserError, parse_json
from rungwise.data.files import read_text

# Ids of more digits are no numbers to anybody, and Python refuses to read very long ones.
_LAST_NUMBER = re.compile(r"(?:^|_)([0-9]{1,18})$")


class Finder:
    """Finds the position of an id: by exact id, or by the only file of that name or final number.

    >>> find = Finder(("COCO_val2014_000000391895.jpg", "b.jpg"))
    >>> find("391895"), find("b"), find("c")
    (0, 1, None)
    """

    def __init__(self, ids: tuple[str, ...]) -> None:
        self._exact = {one: position for position, one in enumerate(ids)}
        self._loose: dict[str, int | None] = {}
        for position, one in enumerate(ids):
            for name in _other_names(one) - {one}:
                self._loose[name] = None if name in self._loose else position

    def __call__(self, one: str) -> int | None:
        """The position; None where no item matches, or several do."""
        bare = one.rpartition(":")[2]
        for name in (one, bare):
            if (position := self._exact.get(name, self._loose.get(name))) is not None:
                return position
        return None


def _other_names(one: str) -> set[str]:
    if "#" in one:  # a caption's id that is its picture's name and a number
        return set()
    path = PurePosixPath(one)
    number = _LAST_NUMBER.search(path.stem)
    return {path.name, path.stem} | ({str(int(number[1]))} if number else set())


def read_id_lists(path: Path) -> dict[str, list[str]]:
    r"""JSON ``{id: [ids]}``, the form of ECCV Caption's positives and of its program's ranked lists."""
    content = parse_json(read_text(path), path)
    if not isinstance(content, dict) or not all(isinstance(value, list) for value in content.values()):
        raise UserError(f"{path}: is not an object of lists of ids, {{query: [positives]}}; give another file")
    return {key: [str(one) for one in value] for key, value in content.items()}
