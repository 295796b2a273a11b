"""Overview of an index that a page shows before any search: random pictures, groups of like ones, columns.

It reads many pictures, so it is made once for a version, in its own thread. While an index grows, an older overview is
shown for a while: ids stay valid, and removed pictures are left out.
"""

from __future__ import annotations

import logging
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from threading import Lock, Thread
from time import monotonic

import numpy as np

from rungwise.core import UserError, limits
from rungwise.core.output import line_of
from rungwise.index import FACTS, Row
from rungwise.index.filters import OWN
from rungwise.index.stores import words_of
from rungwise.language import JOINING, phrases_of, typical_phrases
from rungwise.serving.schemas.responses import IndexColumn
from rungwise.serving.state._facets import Facets
from rungwise.serving.state._served_index import ServedIndex
from rungwise.serving.state._texts_of_items import texts_of

OVERVIEW_THREAD = "rungwise-overview"
"""Name of the threads that make overviews and count columns."""

_SAMPLE = 2_000
_GROUPS = 12
_OF_GROUP = 12
_REST, _REST_OF_COLUMNS = 20.0, 3.0
"""Groups are made anew after this many times the duration of the last ones; and columns, which cost little."""
_LONGEST_LABEL = 60
_TOLD = 0.2
"""Share of pictures that must have texts for these to name groups: those without any say nothing of a name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cluster:
    """Pictures whose vectors are near to each other.

    Attributes:
        label: Value of a column that half of the pictures share, else a phrase that many of their captions share, or
            their columns or folders; empty if there is none.
        size: Number of pictures of the index that belong to it.
        about: Whether that is about so, since some pictures were grouped for all.
        ids: Ids of a few pictures to which the label applies, the one nearest to the centre first.
    """

    label: str
    size: int
    about: bool
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """Overview of one version of an index.

    Attributes:
        version: Version of the index.
        sample: Ids of pictures drawn at random.
        clusters: Groups of like pictures, the largest first.
    """

    version: str
    sample: tuple[str, ...]
    clusters: tuple[Cluster, ...]


class Overviews:
    """Cache of the overview of what is served, made when it is first asked for; ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.at_hand: Overview | None = None
        self._facets: tuple[str, Facets] | None = None
        self._clock = clock
        self._lock = Lock()
        self._making: Thread | None = None
        self._reading: Thread | None = None
        self._not_before = self._columns_not_before = 0.0

    def of(self, served: ServedIndex) -> Overview | None:
        """The newest overview; None if there is none yet. A missing one is made in the background."""
        with self._lock:
            at_hand = self.at_hand
            if at_hand is not None and at_hand.version == served.version:
                return at_hand
            if self._making is None and self._clock() >= self._not_before:
                self._making = Thread(target=self._make, args=(served,), name=OVERVIEW_THREAD, daemon=True)
                self._making.start()
            return at_hand

    def columns_of(self, served: ServedIndex) -> tuple[IndexColumn, ...]:
        """The columns of what is served, within seconds of a change; without numbers until they are counted first."""
        facets = self.facets_of(served)
        return served.columns if facets is None else facets.columns

    def facets_of(self, served: ServedIndex) -> Facets | None:
        """The counted columns of what is served, within seconds of a change; None until they are counted first."""
        with self._lock:
            at_hand = self._facets
            missing = at_hand is None or at_hand[0] != served.version
            if missing and self._reading is None and self._clock() >= self._columns_not_before:
                self._reading = Thread(target=self._read, args=(served,), name=OVERVIEW_THREAD, daemon=True)
                self._reading.start()
            return None if at_hand is None else at_hand[1]

    def settle(self) -> None:
        """Wait for what is being made."""
        with self._lock:
            under_way = [one for one in (self._making, self._reading) if one is not None]
        for one in under_way:
            one.join()

    def _read(self, served: ServedIndex) -> None:
        start = self._clock()
        try:
            made = Facets(served.index.picture_store.counts(limits().column_values), served.columns)
            with self._lock:
                self._facets = served.version, made
        except UserError as error:  # such as a store that is away; the filters of before are better than none
            _log.warning("the columns of the index could not be read: %s", line_of(error))
        except Exception:
            _log.exception("the columns of the index could not be read")
        finally:
            with self._lock:
                self._reading = None
                now = self._clock()
                self._columns_not_before = now + min(60.0, _REST_OF_COLUMNS * (now - start))

    def _make(self, served: ServedIndex) -> None:
        start = self._clock()
        try:
            made = overview(served)
            with self._lock:
                self.at_hand = made
        except UserError as error:  # a page without groups is better than none
            _log.warning("no overview of the index could be made: %s", line_of(error))
        except Exception:
            _log.exception("no overview of the index could be made")
        finally:
            with self._lock:
                self._making = None
                now = self._clock()
                self._not_before = now + min(600.0, _REST * (now - start))


def overview(served: ServedIndex) -> Overview:
    """Make the overview of a version."""
    sample = served.index.picture_store.drawn(_SAMPLE)
    random.Random(served.version).shuffle(sample)  # else the same pictures would always come first
    return Overview(served.version, tuple(sample), clusters_of(served, sample))


def clusters_of(served: ServedIndex, ids: Sequence[str]) -> tuple[Cluster, ...]:
    """Groups of like pictures, by k-means of their vectors at length 1."""
    from scipy.cluster.vq import kmeans2

    rows = served.index.picture_store.get(ids)
    groups = min(_GROUPS, len(rows) // 3)
    if groups < 2:
        return ()
    names = list(rows)
    vectors = np.stack([row.vector for row in rows.values()]).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centres, of_row = kmeans2(vectors, groups, minit="++", seed=0)
    share = served.pictures / len(rows)
    texts = texts_of(served.found(names).values())
    phrases = [{name: phrases_of(one) for name, one in zip(names, kind, strict=True)} for kind in texts]
    # Where many pictures have captions, they name groups: who took pictures says little of what they show.
    phrases = [kind for kind in phrases if sum(map(bool, kind.values())) > _TOLD * len(names)][:1] or phrases
    usual = [Counter(phrase for one in kind.values() for phrase in one) for kind in phrases]
    values = {name: _values(row) for name, row in rows.items()}
    usual_values = Counter(value for found in values.values() for value in found)
    groups_of_names = []
    for group in range(groups):
        inside = np.flatnonzero(of_row == group)
        order = inside[np.argsort(-(vectors[inside] @ centres[group]), kind="stable")]
        groups_of_names.append([names[row] for row in order])
    made: list[Cluster] = []
    names_given: list[frozenset[str]] = []
    for members in sorted(filter(None, groups_of_names), key=len, reverse=True):
        # Each name with the members that have it: a group is shown by what bears its name.
        bearers: dict[str, list[str]] = {}
        if named := _shared_value([values[name] for name in members], usual_values, len(values)):
            bearers[named] = [name for name in members if named in values[name]]
        for kind, counts in zip(phrases, usual, strict=True):
            told = [kind[name] for name in members if kind[name]]
            if len(told) < _TOLD * len(members):
                continue
            for label, words in typical_phrases(told, counts, sum(map(bool, kind.values()))).items():
                bearers.setdefault(label, [name for name in members if words in kind[name]])
        # Two groups of nearly one name would lead to nearly the same pictures.
        label = next((one for one in bearers if not _is_taken(_stems(one), names_given)), "")
        if label:
            names_given.append(_stems(label))
        shown = bearers.get(label, members)
        size = round(len(members) * share)
        made.append(Cluster(label, size, len(rows) < served.pictures, tuple(shown[:_OF_GROUP])))
    return tuple(made)


def _stems(label: str) -> frozenset[str]:
    """What a name is made of, whatever its case, accents, order and plurals: words, and characters of East Asia.

    >>> sorted(_stems("Two Foxes")), _stems("puppies") == _stems("Puppy"), _stems("The dogs") == _stems("dog")
    (['fox', 'two'], True, True)
    """
    words = [word for word in words_of(label) if word not in JOINING]
    parts = (word if unicodedata.east_asian_width(word[0]) == "W" else [_singular(word)] for word in words)
    return frozenset(chain.from_iterable(parts))


def _singular(word: str) -> str:
    """An English word without what a plural may have added to it; of others no more is lost than an s."""
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("shes", "ches", "xes", "sses")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _is_taken(name: frozenset[str], given: Iterable[frozenset[str]]) -> bool:
    """Whether a name says no more than one that was given, or no less, or nothing."""
    return not name or any(name <= other or other <= name for other in given)


def _values(row: Row) -> frozenset[str]:
    texts = (value for name, value in row.record.items() if name not in FACTS and not name.startswith(OWN))
    return frozenset(text for text in texts if isinstance(text, str) and 0 < len(text) <= _LONGEST_LABEL)


def _shared_value(members: Sequence[frozenset[str]], usual: Mapping[str, int], of: int) -> str:
    """The value of a column that half of the members have, and far fewer of all pictures; empty without one.

    >>> fruit = [frozenset({"fruit", "new"})] * 3
    >>> _shared_value(fruit, Counter({"fruit": 4, "new": 9}), of=9)
    'fruit'
    """
    return next(iter(_commoner(members, usual, of, share=0.5, times=1.5)), "") if len(members) > 1 else ""


def _commoner(
    members: Sequence[frozenset[str]], usual: Mapping[str, int], of: int, *, share: float, times: float
) -> list[str]:
    """Texts with at least this share among the members, and ``times`` their share of all; the most typical first."""
    here = Counter(text for texts in members for text in texts)
    lift = {
        text: count / len(members) - usual[text] / of
        for text, count in here.items()
        if count >= share * len(members) and count / len(members) > times * usual[text] / of
    }
    return sorted(lift, key=lambda text: (-lift[text], text))
