"""A few generated scenes, a table of pairs of them, and the grading page."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rungwise.data import ImageCaptions
from rungwise.grading import Questions, create_grading_app, read_questions, with_pictures
from rungwise.scenes import SceneConfig, generate
from rungwise.serving import ServerSettings, background_app
from tests.page.conftest import chromium, new_page, servers
from tests.serving.conftest import PATIENT

__all__ = ["chromium", "new_page", "servers"]


def write_pairs(
    path: Path, data: ImageCaptions, pairs: Sequence[tuple[int, int]], directions: Sequence[str] = ("i2t", "t2i")
) -> Path:
    """A table as ``rungwise evaluate --false-negatives`` writes it; directions take turns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("direction", "image", "caption", "rank", "similarity", "degree", "needed", "text"))
        for number, (image, caption) in enumerate(pairs):
            direction = directions[number % len(directions)]
            named = data.image_ids[image], data.caption_ids[caption]
            rows.writerow((direction, *named, number + 1, 0.5, 1, 0.5, data.captions[caption]))
    return path


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> ImageCaptions:
    return generate(tmp_path_factory.mktemp("scenes") / "scenes", SceneConfig(pictures=8, side=32))


@pytest.fixture
def questions(data: ImageCaptions, tmp_path: Path) -> Questions:
    """Four pairs in the order of the table."""
    table = write_pairs(tmp_path / "wrong.csv", data, [(0, 7), (1, 12), (2, 3), (3, 21)])
    return with_pictures(read_questions(table, data, shuffle=False))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "judgements.jsonl"


@pytest.fixture
def address(questions: Questions, out: Path) -> Iterator[str]:
    """Of a server with the page."""
    command = "rungwise evaluate MODEL scenes --positives judgements.jsonl"

    def make(settings: ServerSettings, _: str) -> object:
        return create_grading_app(
            questions,
            out,
            file="wrong.csv",
            next_command=command,
            settings=settings,
        )

    with background_app(make, settings=ServerSettings(limits=PATIENT)) as found:  # type: ignore[arg-type]
        yield found
