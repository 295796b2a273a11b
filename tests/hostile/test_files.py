"""Hostile files under every reader of files: a refusal in one line, or the right answer."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.hostile import world
from tests.hostile.conftest import assert_nothing_bad, in_parts
from tests.hostile.counting import BAD
from tests.hostile.files import Attack, attacks, carry_out, judged
from tests.hostile.forked import run
from tests.hostile.readers import Subject, subjects

_TEXTS = frozenset({".txt", ".csv", ".tsv", ".json", ".jsonl", ".trec", ".yaml"})
_OF_ANY_FILE = 30
"""Attacks that come first, and that are small; later ones on packed files are bombs."""


def some_attacks(subject: Subject, good: Path) -> Iterator[Attack]:
    """Two on a text, one on another file."""
    small = (one for one in attacks(subject, good, seed=0) if one.data is not None)
    draw = Random(subject.name)
    yield draw.choice(list(islice(small, _OF_ANY_FILE)))
    if Path(subject.files[0]).suffix in _TEXTS:
        yield draw.choice(list(small))


def test_a_few_damaged_files_are_refused_or_read_right(tmp_path: Path) -> None:
    """Of all that others may have made, in this process; what is too large for it is played by the kit."""
    good, bad, count = tmp_path / "good", [], 0
    good.mkdir()
    world.make_data(good)
    for subject in subjects():
        if not (good / subject.folder / subject.files[0]).is_file():
            continue
        whole = run(partial(subject.read, good / subject.folder))
        assert whole.ending == "returned", f"{subject.name} cannot read the good file: {whole}"
        for attack in some_attacks(subject, good):
            verdict, detail = judged(attack, run(partial(carry_out, attack, good, tmp_path / "case")), whole.value)
            bad += [f"{verdict}: {attack}\n    {detail}"] if verdict in BAD else []
            count += 1
    assert count > 60
    assert not bad, "\n".join(bad)


@pytest.mark.long
@in_parts(20)
def test_every_hostile_file_is_refused_or_read_right(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("files", part, tmp_path, 100)
