"""The whole demo: loaded as an earlier one left it, or made anew."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rungwise.core import UserError
from rungwise.demo._comparison import SideBySide
from rungwise.demo._places import RECIPES, SCENES, Name, Places
from rungwise.demo._record import Results
from rungwise.demo._sides import both
from rungwise.scenes import SceneConfig, SceneFile, held_out_queries, load_scene_file

if TYPE_CHECKING:
    from rungwise.data import ImageCaptions
    from rungwise.demo._examples import ExampleQuery
    from rungwise.demo._measurement import Compared
    from rungwise.demo._progress import Bars

QUERIES = 100
"""Number of measured searches for held-out combinations."""

FEW_QUERIES = 20
"""Number of measured searches with as few pictures as :data:`rungwise.demo.FEW_SCENES`."""

_MEASURED, SHOWN = 1, 2
"""Seeds of the measured searches and of the shown ones, which differ; recipes were chosen on seed 0."""


@dataclass(frozen=True)
class Demo:
    """A demo that can be served."""

    comparison: SideBySide
    results: Results


def made_before(places: Places, device: str | None = None) -> Demo | None:
    """The demo that an earlier run made; None where anything is missing or damaged."""
    try:
        results = Results.load(places.results)
        sides = both(places, device)
        if any(results.fingerprints.get(name) != side.model.fingerprint for name, side in sides.items()):
            return None
        return Demo(SideBySide(sides, load_scene_file(places.scenes)), results)
    except UserError:
        return None


def make(
    places: Places,
    bars: Bars,
    device: str,
    *,
    drawing: Callable[[int, int], None] | None = None,
    scenes: SceneConfig = SCENES,
    recipes: Mapping[Name, str] = RECIPES,
    queries: int = QUERIES,
    done: Callable[[str, float], None] = lambda _part, _seconds: None,
) -> Demo:
    """Draw the scenes, train both models, index, calibrate and measure.

    Args:
        places: Folders of the demo. An interrupted demo is continued; a finished one is made anew.
        bars: Bars that show the progress of the trainings.
        device: Device of the models.
        drawing: Callback with the number of pictures drawn and of all.
        scenes: Settings of the scenes.
        recipes: A preset or a configuration file for each model.
        queries: Number of searches that are measured.
        done: Callback with each part that is done, and its seconds.
    """
    from rungwise.demo import _parts as parts
    from rungwise.demo._pair import train_both

    parts.discard_finished_runs(places)
    clock = _Clock(done)
    with clock.part("drawing"):
        data = parts.make_scenes(places, drawing, scenes)
    with clock.part("training, indexing and calibrating, both at once"):
        train_both(places, device, bars, recipes)
    with clock.part("measuring"):
        sides = both(places, device)
        file = load_scene_file(places.scenes)
        comparison = SideBySide(sides, file)
        compared = _compared(comparison, places, file, data, queries)
        examples = _examples(comparison, places, file, queries)
    results = Results(
        {name: side.model.fingerprint for name, side in sides.items()},
        compared,
        examples,
        {part: round(seconds, 1) for part, seconds in clock.seconds.items()},
        len(data.split("train")),
    )
    results.save(places.results)
    return Demo(comparison, results)


class _Clock:
    def __init__(self, done: Callable[[str, float], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._done = done

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started
        self._done(name, self.seconds[name])


def _compared(
    comparison: SideBySide, places: Places, file: SceneFile, data: ImageCaptions, queries: int
) -> tuple[Compared, ...]:
    from rungwise.demo._measurement import compared, per_query

    held_out = held_out_queries(places.scenes, queries, _MEASURED)
    test = data.split("test")
    found = []
    for title, texts, statements, owners in (
        (
            "searches for combinations absent from training",
            [query.text for query in held_out],
            [query.statement for query in held_out],
            list(range(len(held_out))),
        ),
        (
            "captions of the test pictures",
            list(test.captions),
            [file.statement_of(one) for one in test.caption_ids],
            test.image_of_caption.tolist(),
        ),
    ):
        relevance = comparison.degrees(statements)
        values = {}
        for name, side in comparison.sides.items():
            scores, known = side.scores(texts)
            values[name] = per_query(scores, relevance, side.judged(scores, known))
        found.append(compared(title, values["triplet"], values["degrees"], relevance, owners))
    return tuple(found)


def _examples(comparison: SideBySide, places: Places, file: SceneFile, queries: int) -> tuple[ExampleQuery, ...]:
    from rungwise.demo._examples import choose_examples
    from rungwise.demo._parts import fresh_queries

    held_out = held_out_queries(places.scenes, queries, SHOWN)
    return choose_examples(comparison, held_out, fresh_queries(file.config, file.held_out, queries))
