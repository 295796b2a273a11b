"""Checks for missing or tiny splits, odd numbers of captions, empty captions, and labels that a split lacks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from rungwise.data import NO_SPLIT, ImageCaptions
from rungwise.doctor._finding import Finding, first, share
from rungwise.doctor._roles import Roles

LEAST_PICTURES, LEAST_CAPTIONS = 4, 16
"""Numbers below which a split measures nothing: one query more or less moves R@1 by 6 points and more."""

WILD_TENTHS, WILD_LARGEST = 4.0, 10.0
"""Ratios of captions per picture: the ninth decile to the first, and the largest number to the median."""

BY_CHANCE = 1e-3
"""Largest probability that any label is missing from any split by chance alone."""


def missing_splits(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    """Findings of splits that training or measuring needs, and that hold no picture or too few."""
    pictures = Counter(data.splits)
    captions = Counter(data.splits[image] for image in data.image_of_caption.tolist()) if data.splits else Counter()
    present = ", ".join(f"{name} ({count})" for name, count in pictures.items()) or "no splits"
    for role, names in roles.named:
        count = sum(pictures[name] for name in names)
        if not count:
            what = f"No picture is in the {role} split ({' or '.join(names)}); there are {present}."
            if role == "training":
                yield Finding("no training split", "fault", what, "Name the splits to train on in data.train.")
            else:
                yield Finding(f"no {role} split", "advice", what, _CURES[role])
        elif count < LEAST_PICTURES or sum(captions[name] for name in names) < LEAST_CAPTIONS:
            said = sum(captions[name] for name in names)
            yield Finding(
                "tiny split",
                "advice",
                f"The {role} split has {count} pictures and {said} captions; one query is"
                f" {share(1, max(said, 1))} of its recall.",
                "Put more pictures into it, or measure by cross-validation.",
                names,
            )


_CURES = {
    "validation": "rungwise train holds a tenth of the training pictures out; name a split for it in data.validation.",
    "test": "Keep some pictures out of training, so that the model can be measured on them.",
}


def captions_per_picture(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    """Findings of pictures without captions, and of very different numbers of captions."""
    used = roles.used(data)
    counts = np.bincount(data.image_of_caption, minlength=len(data))[used]
    if not len(counts) or not counts.any():
        return
    none = used[counts == 0]
    if len(none):
        yield Finding(
            "pictures without captions",
            "advice",
            f"{len(none)} of {len(used)} pictures ({share(len(none), len(used))}) have no caption; nothing is learnt"
            " from them, and they stand in the gallery as wrong answers.",
            "Write captions for them, or leave the pictures out.",
            first([data.image_ids[image] for image in none]),
        )
    some = counts[counts > 0]
    low, middle, high = np.percentile(some, [10, 50, 90])
    if high > WILD_TENTHS * low or some.max() > WILD_LARGEST * middle:
        yield Finding(
            "captions per picture vary",
            "advice",
            f"Pictures have from {some.min()} to {some.max()} captions (a tenth {low:g} or fewer, the median"
            f" {middle:g}, a tenth {high:g} or more); those with many weigh most in training and in text-to-image"
            " measures.",
            "Draw as many captions for each picture, or cut the long lists.",
            first([f"{data.image_ids[used[at]]} ({counts[at]})" for at in np.argsort(-counts, kind="stable")[:3]]),
        )


def empty_captions(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    """Finding of captions that are blank, including those that the reader left out for this reason."""
    if data.text_features is not None:
        return
    found = [name for name, text in zip(data.caption_ids, data.captions, strict=True) if not text.split()]
    found += [issue.where for issue in data.issues if issue.kind == "empty caption"]
    if found:
        yield Finding(
            "empty captions",
            "fault",
            f"{len(found)} of {len(data.captions)} captions ({share(len(found), len(data.captions))}) have no word.",
            "Remove them or write them; all of them are the same query with different right answers.",
            first(found),
        )


def absent_labels(data: ImageCaptions, roles: Roles) -> Iterator[Finding]:
    """Finding of class labels that a split lacks although chance would hardly have left them out.

    A label of k pictures is missing from a split with the share p of the pictures with the probability (1 - p)^k. All
    labels and splits together may give one such miss with the probability :data:`BY_CHANCE`.
    """
    used = roles.used(data)
    if not data.labels or not len(used):
        return
    role = roles.role_of(data)
    count = Counter(label for image in used.tolist() for label in data.labels[image])
    there = {(label, role[image]) for image in used.tolist() for label in data.labels[image]}
    sizes = Counter(role[image] for image in used.tolist())
    bound = math.log(BY_CHANCE / max(1, len(count) * len(sizes)))
    for name, size in sizes.items():
        if size == len(used):
            continue
        missing = [label for label in sorted(count) if (label, name) not in there]
        gone = [label for label in missing if count[label] * math.log1p(-size / len(used)) < bound]
        if gone:
            pictures = sum(count[label] for label in gone)
            yield Finding(
                "labels absent from a split",
                "fault" if name == "training" else "advice",
                f"{len(gone)} of {len(count)} class labels, with {pictures} pictures in other splits, have none in the"
                f" {name} split; that is no chance.",
                "Draw the splits anew within each class"
                + (", unless unseen classes are what you measure." if name == "training" else "."),
                first([f"{label} ({count[label]} pictures)" for label in gone]),
            )


def unsplit(data: ImageCaptions) -> bool:
    """Whether no picture is in any split."""
    return all(split == NO_SPLIT for split in data.splits)
