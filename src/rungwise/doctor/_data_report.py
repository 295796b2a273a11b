"""Examination of a collection: its pictures or features, captions, splits and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rungwise.data import ImageCaptions, with_splits, with_validation
from rungwise.doctor._features import odd_features
from rungwise.doctor._finding import Finding, Report, faults_first, first, share
from rungwise.doctor._missing_words import learnt_words, no_blanks
from rungwise.doctor._pictures import Progress, look_at, pictures_in_two_splits
from rungwise.doctor._roles import Roles
from rungwise.doctor._shared_captions import captions_in_two_splits
from rungwise.doctor._split_sizes import absent_labels, captions_per_picture, empty_captions, missing_splits, unsplit

MIN_COUNT = 4
"""Number of occurrences from which the vocabularies of the VSE++ family keep a word."""


def unheard(title: str, more: int, total: int) -> None:
    """Progress callback that does nothing."""


def examine_data(
    data: ImageCaptions,
    roles: Roles | None = None,
    *,
    min_count: int | None = MIN_COUNT,
    progress: Progress = unheard,
) -> Report:
    """Look for what spoils training on a collection, or measuring on it.

    Every picture, or every row of features, is read once; nothing is written. Memory is 3 KB a picture.

    Args:
        data: Collection with or without splits; without any, those are drawn that ``rungwise train`` draws.
        roles: Splits by their roles.
        min_count: Number of occurrences below which words of the training captions are unknown to the model; None where
            its vocabulary does not come from them.
        progress: Callback with what is being read.

    >>> import numpy as np
    >>> data = ImageCaptions(("a", "b"), ("a dog", " "), np.array([0, 1]), splits=("train", "train"))
    >>> report = examine_data(data)
    >>> [finding.name for finding in report.findings]
    ['empty captions', 'tiny split', 'no validation split', 'no test split']
    """
    roles = roles or Roles()
    findings = list(missing_splits(data, roles)) if not unsplit(data) else [_no_splits(data)]
    split = with_validation(with_splits(data), roles.train, roles.validation)
    findings += _of_texts(split, roles)
    if min_count is not None:
        findings += learnt_words(split, roles, min_count)
    looks = look_at(split, roles, progress)
    findings += pictures_in_two_splits(split, roles, looks, progress)
    findings += odd_features(split, roles, progress)
    if looks.unreadable:
        findings.append(
            Finding(
                "unreadable pictures",
                "advice",
                f"{len(looks.unreadable)} of {len(looks.unreadable) + len(looks.images)} pictures"
                f" ({share(len(looks.unreadable), len(looks.unreadable) + len(looks.images))}) cannot be read; they are"
                " left out of training.",
                "Get them anew, or remove them.",
                first([f"{issue.where}: {issue.detail}" for issue in looks.unreadable]),
            )
        )
    unreadable = (*data.issues, *looks.unreadable)
    size = f"{len(data)} pictures, {len(data.captions)} captions"
    return Report(f"{data.name}: {size}", tuple(_examined(split, roles)), (), faults_first(findings), unreadable)


def _of_texts(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    for look in (captions_per_picture, empty_captions, absent_labels, captions_in_two_splits):
        yield from look(data, roles)
    yield from no_blanks(data)


def _no_splits(data: ImageCaptions) -> Finding:
    return Finding(
        "no splits",
        "advice",
        f"None of the {len(data)} pictures is in a split; rungwise train draws train, val and test by their ids, and"
        " these are examined here.",
        "Name splits of your own if some pictures belong together, such as shots of one event.",
    )


def _examined(data: ImageCaptions, roles: Roles) -> Iterator[str]:
    role = roles.role_of(data)
    pictures = Counter(role)
    captions = Counter(role[image] for image in data.image_of_caption.tolist())
    for name, splits in roles.named:
        if pictures[name]:
            yield f"{name} ({', '.join(splits)}): {pictures[name]} pictures, {captions[name]} captions"
    if pictures[""]:
        yield f"not looked at: {pictures['']} pictures in no split of these"
