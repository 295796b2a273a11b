"""Checks of rows of features: non-finite numbers, constant rows and dimensions, odd norms, repeated rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.doctor._finding import Finding, first, share
from rungwise.doctor._roles import Roles

Progress = Callable[[str, int, int], None]

NORMS_APART = 10.0
"""Factor above or below the median from which a norm is odd."""

ODD_NORMS = 0.01
"""Share of odd norms from which rows are called unnormalised; a single norm 10 times as odd is enough."""

DEAD, ROWS_FOR_DEAD = 0.01, 100
"""Share of constant dimensions that is reported, and the number of rows that this needs."""

_READ_BYTES = 1 << 24


@dataclass
class _Seen:
    """Statistics of one pass over the rows of one side."""

    not_finite: list[int] = field(default_factory=list)
    constant: list[int] = field(default_factory=list)
    norms: list[NDArray[np.float64]] = field(default_factory=list)
    owners: list[NDArray[np.int64]] = field(default_factory=list)
    digests: dict[bytes, int] = field(default_factory=dict)
    twice: list[tuple[int, int]] = field(default_factory=list)
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None


def odd_features(data: ImageCaptions, roles: Roles, progress: Progress) -> Iterator[Finding]:
    """Findings in the rows that stand for pictures, and in those that stand for captions."""
    used = roles.used(data)
    if data.features is not None:
        yield from _side(data, roles, "picture", data.features, data.image_ids, used, used, progress)
    if data.text_features is not None:
        role = roles.role_of(data)
        captions = np.flatnonzero([bool(role[image]) for image in data.image_of_caption.tolist()]).astype(np.int64)
        owners = data.image_of_caption[captions]
        yield from _side(data, roles, "caption", data.text_features, data.caption_ids, captions, owners, progress)


def _side(
    data: ImageCaptions,
    roles: Roles,
    what: str,
    rows: FeatureRows,
    ids: Sequence[str],
    chosen: NDArray[np.int64],
    owners: NDArray[np.int64],
    progress: Progress,
) -> Iterator[Finding]:
    role = roles.role_of(data)
    seen = _Seen()
    together = max(1, _READ_BYTES // max(1, rows.dtype.itemsize * int(np.prod(rows.shape[1:]))))
    for at in range(0, len(chosen), together):
        part = chosen[at : at + together]
        _look(seen, rows[part], part, [role[image] for image in owners[at : at + together].tolist()])
        progress(f"reading {what} features", len(part), len(chosen))
    count = len(chosen)
    if seen.not_finite:
        yield Finding(
            "features not finite",
            "fault",
            f"{len(seen.not_finite)} of {count} {what} rows ({share(len(seen.not_finite), count)}) hold NaN or"
            " infinity; one such row makes the loss of its batch NaN.",
            "Extract these rows again, or leave their items out.",
            first([ids[row] for row in seen.not_finite]),
        )
    if seen.constant:
        yield Finding(
            "constant feature rows",
            "fault",
            f"{len(seen.constant)} of {count} {what} rows ({share(len(seen.constant), count)}) are one number"
            " throughout; nothing can be told from them.",
            "Extract these rows again, or leave their items out.",
            first([ids[row] for row in seen.constant]),
        )
    yield from _norms(seen, what, ids)
    yield from _dead(seen, what, count)
    if seen.twice:
        place = dict(zip(chosen.tolist(), owners.tolist(), strict=True))
        yield Finding(
            "features repeat across splits",
            "fault",
            f"{len({row for _, row in seen.twice})} of {count} {what} rows"
            f" ({share(len({row for _, row in seen.twice}), count)}) are equal, number by number, to a row of another"
            " split.",
            "Look for pictures that stand in two splits, or for rows that were written twice.",
            first([f"{ids[a]} ({data.splits[place[a]]}) = {ids[b]} ({data.splits[place[b]]})" for a, b in seen.twice]),
        )


def _look(seen: _Seen, rows: NDArray[np.floating], numbers: NDArray[np.int64], role: Sequence[str]) -> None:
    flat = rows.reshape(len(rows), -1, rows.shape[-1])
    finite = np.isfinite(flat).all(axis=(1, 2))
    constant = finite & (flat.max(axis=2) == flat.min(axis=2)).all(axis=1)
    seen.not_finite += numbers[~finite].tolist()
    seen.constant += numbers[constant].tolist()
    sound = finite & ~constant
    if not sound.any():
        return
    vectors = flat[sound].astype(np.float64)
    seen.norms.append(np.linalg.norm(vectors, axis=2).ravel())
    seen.owners.append(np.repeat(numbers[sound], vectors.shape[1]))
    low, high = vectors.min(axis=(0, 1)), vectors.max(axis=(0, 1))
    seen.low = low if seen.low is None else np.minimum(seen.low, low)
    seen.high = high if seen.high is None else np.maximum(seen.high, high)
    for place in np.flatnonzero(sound).tolist():
        digest = hashlib.blake2b(rows[place].tobytes(), digest_size=16, key=role[place].encode()).digest()
        if digest in seen.digests:
            continue  # of this split
        number = int(numbers[place])
        seen.digests[digest] = number
        for other in {"training", "validation", "test"} - {role[place]}:
            known = hashlib.blake2b(rows[place].tobytes(), digest_size=16, key=other.encode()).digest()
            if known in seen.digests:
                seen.twice.append((seen.digests[known], number))
                break


def _norms(seen: _Seen, what: str, ids: Sequence[str]) -> Iterator[Finding]:
    if not seen.norms:
        return
    norms, owners = np.concatenate(seen.norms), np.concatenate(seen.owners)
    norms, owners = norms[norms > 0], owners[norms > 0]
    middle = float(np.median(norms))
    apart = np.maximum(norms / middle, middle / norms)
    odd = apart > NORMS_APART
    if odd.mean() < ODD_NORMS and apart.max() <= NORMS_APART**2:
        return
    worst = owners[np.argsort(-apart, kind="stable")]
    yield Finding(
        "unnormalised features",
        "fault",
        f"The norms of the {what} features run from {norms.min():.3g} to {norms.max():.3g}, the median being"
        f" {middle:.3g}; {share(int(odd.sum()), len(norms))} are more than {NORMS_APART:g} times it, or less than a"
        f" tenth of it.",
        "Set l2_normalise of that side of the model, or divide each row by its norm.",
        first(list(dict.fromkeys(ids[row] for row in worst[:50].tolist()))),
    )


def _dead(seen: _Seen, what: str, count: int) -> Iterator[Finding]:
    if seen.low is None or seen.high is None or count < ROWS_FOR_DEAD:
        return
    dead = np.flatnonzero(seen.low == seen.high)
    if len(dead) >= DEAD * len(seen.low):
        yield Finding(
            "dead feature dimensions",
            "advice",
            f"{len(dead)} of {len(seen.low)} dimensions of the {what} features ({share(len(dead), len(seen.low))}) have"
            f" the same value in all {count} rows.",
            "Extract the features again, or drop these dimensions: they cost memory and say nothing.",
            first([f"dimension {one} = {seen.low[one]:g}" for one in dead.tolist()]),
        )
