"""Synonyms: a short list of our own, and WordNet's synonym sets where WordNet is installed.

WordNet (Fellbaum 1998) is read from its own dictionary files (``index.noun`` and so on): two words are synonyms if one
synonym set holds both, which is what SPICE asks (Anderson et al. 2016, section 3.2). The files are looked for in
``WNSEARCHDIR``, in ``dict`` of ``WNHOME``, and where Debian and NLTK keep them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rungwise.core import MissingFileError, UserError, digest_of_parts, read_text
from rungwise.core.disk import digest_of
from rungwise.core.output import short_repr

_FILES = ("noun", "verb", "adj", "adv")
_PLACES = ("/usr/share/wordnet", "/usr/local/share/wordnet", "/usr/local/WordNet-3.0/dict", "/usr/share/wordnet/dict")

_OWN = (
    "small little tiny mini",
    "large big huge giant enormous",
    "circle disc disk",
    "dotted spotted speckled",
    "hollow outlined",
    "plain solid",
    "purple violet",
    "grey gray",
    "blond blonde",
    "child kid youngster",
    "baby infant toddler",
    "man guy gentleman male",
    "woman lady female",
    "person individual human adult",
    "dog puppy doggy pup",
    "cat kitten kitty",
    "bike bicycle",
    "motorcycle motorbike moped",
    "couch sofa",
    "tv television",
    "plane airplane aeroplane aircraft jet",
    "photo photograph picture image",
    "road street roadway",
    "rock stone boulder",
    "shirt t-shirt tee-shirt",
    "pants trousers",
    "phone cellphone telephone smartphone",
    "ocean sea",
    "car automobile",
    "boat ship",
    "bag backpack",
    "glasses eyeglasses spectacles",
    "sidewalk pavement",
    "forest wood woods",
    "house home",
    "hat cap",
    "player athlete",
    "plus_sign cross",
    "hold carry",
    "look stare gaze watch",
    "jump leap",
    "run jog",
    "throw toss pitch",
    "walk stroll",
    "speak talk",
    "smile grin",
    "ride drive",
    "stand pose",
    "sit seat",
    "near close",
)
"""Everyday words of captions, and those of generated scenes. A word may stand in one line only."""


@dataclass(frozen=True)
class Synonyms:
    """Sets of words that mean the same.

    Attributes:
        sets: Numbers of the sets that each word is in.
        fingerprint: Hash of all sets.
    """

    sets: Mapping[str, frozenset[str]]
    fingerprint: str

    __repr__ = short_repr

    @classmethod
    def own(cls) -> Synonyms:
        """Only the short list."""
        sets = {
            word.replace("_", " "): frozenset((f"own {number}",))
            for number, line in enumerate(_OWN)
            for word in line.split()
        }
        return cls(sets, digest_of_parts(["\n".join(_OWN)]))

    @classmethod
    def wordnet(cls, folder: Path | str) -> Synonyms:
        """The short list and WordNet's synonym sets, from the folder of its dictionary files."""
        place = Path(folder).expanduser()
        try:
            return _with_wordnet(place, tuple(digest_of(place / f"index.{kind}") for kind in _FILES))
        except MissingFileError as error:
            raise MissingFileError(
                f"{place}: index.noun, index.verb, index.adj or index.adv not found; give the folder of "
                "WordNet's dictionary files, or install WordNet"
            ) from error

    @classmethod
    def installed(cls) -> Synonyms:
        """The short list, with WordNet where it is installed."""
        place = wordnet_folder()
        return cls.own() if place is None else cls.wordnet(place)

    def of(self, word: str) -> frozenset[str]:
        """The sets of a word."""
        return self.sets.get(word, frozenset())

    def same(self, first: str, second: str) -> bool:
        """Whether two words are equal or stand in one set."""
        return first == second or not self.of(first).isdisjoint(self.of(second))


def wordnet_folder() -> Path | None:
    """Folder of WordNet's dictionary files; None where they are not found."""
    named = [os.environ.get("WNSEARCHDIR", ""), os.path.join(os.environ.get("WNHOME", ""), "dict")]  # noqa: PTH118
    corpora = [
        Path(folder) / "corpora" / "wordnet"
        for folder in (*os.environ.get("NLTK_DATA", "").split(os.pathsep), str(Path.home() / "nltk_data"))
        if folder
    ]
    for place in (*(Path(name) for name in named if name), *map(Path, _PLACES), *corpora):
        if all(_is_there(place / f"index.{kind}") for kind in _FILES):
            return place
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


@lru_cache(maxsize=2)
def _with_wordnet(folder: Path, digests: tuple[str, ...]) -> Synonyms:
    own = Synonyms.own()
    sets: dict[str, set[str]] = {word: set(numbers) for word, numbers in own.sets.items()}
    for kind in _FILES:
        path = folder / f"index.{kind}"
        for number, line in enumerate(read_text(path, "text_bytes").splitlines(), start=1):
            if line.startswith(" ") or not line.strip():  # the licence stands before the words
                continue
            word, offsets = _entry(line, f"{path}, line {number}")
            sets.setdefault(word, set()).update(f"{kind} {offset}" for offset in offsets)
    fingerprint = digest_of_parts(["\n".join((own.fingerprint, *digests))])
    return Synonyms({word: frozenset(numbers) for word, numbers in sets.items()}, fingerprint)


def _entry(line: str, where: str) -> tuple[str, Iterable[str]]:
    """A word and the places of its synonym sets.

    The line holds lemma, kind, number of sets, number of pointers, their signs, senses, tagged senses, places.
    """
    cells = line.split()
    try:
        count, pointers = int(cells[2]), int(cells[3])
        offsets = cells[6 + pointers :]
        if not 0 <= pointers < len(cells) or len(offsets) != count or not all(one.isdigit() for one in offsets):
            raise ValueError
    except (IndexError, ValueError):
        raise UserError(f"{where}: is no entry of WordNet's index; give the folder of its dictionary files") from None
    return cells[0].replace("_", " "), offsets
