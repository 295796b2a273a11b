"""Which cases of a family are played: all of them, a share, a part, or those that hold a text."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from zlib import crc32


class Part(NamedTuple):
    """One of so many parts that together are all cases, each case in one of them.

    Attributes:
        number: From 1.
        of: How many there are.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Part:
        """``3/24`` is the third of 24.

        >>> Part.parse("3/24")
        Part(number=3, of=24)
        """
        number, _, of = text.partition("/")
        found = cls(int(number), int(of))
        if not 1 <= found.number <= found.of:
            raise ValueError(text)
        return found

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


ALL = Part(1, 1)


@dataclass(frozen=True)
class Choice:
    """Whether a case is played hangs on its name alone, so that it does not change with what else is played.

    Attributes:
        seed: Of everything that is drawn.
        share: Of the cases.
        only: Those whose name holds this text.
        part: Those that fall into this part.
    """

    seed: int = 0
    share: float = 1.0
    only: str = ""
    part: Part = ALL

    def takes(self, name: str, fraction: float = 1.0) -> bool:
        """Whether the case of this name is played.

        Args:
            name: Unlike those of all other cases of the family.
            fraction: Of the share, for what costs much.

        >>> [Choice(part=Part(number, 2)).takes("cut to 3 bytes") for number in (1, 2)].count(True)
        1
        """
        if self.only not in name:
            return False
        if crc32(name.encode("utf-8", "backslashreplace")) % self.part.of != self.part.number - 1:
            return False
        return Random(f"{self.seed} {name}").random() < self.share * fraction
