"""The four applications of ours that listen, each as its command serves it, on a small collection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rungwise.demo import Demo, create_demo_app
from rungwise.demo._comparison import SideBySide
from rungwise.demo._places import NAMES
from rungwise.demo._record import Results
from rungwise.demo._sides import DemoModel
from rungwise.grading import Questions, create_grading_app
from rungwise.grading._questions import Question
from rungwise.index import Index
from rungwise.model_server import create_model_app
from rungwise.scenes import SceneConfig, generate, load_scene_file
from rungwise.serving import MakeApp, ServingLimits, create_app
from tests.colour_model import ColourModel
from tests.hostile import world

DOORS = ("serve", "demo", "grade", "serve-model")

PLACE = "xyzzy-where-things-lie"
"""A folder above everything that is served. No answer may hold its name."""

SECRET = b"nobody may read this"

_SCENES = SceneConfig(pictures=20, side=32)

LIMITS = ServingLimits(header_seconds=2.0, body_seconds=2.0, idle_seconds=1.0, send_seconds=4.0)


def door(name: str, folder: Path, limits: ServingLimits = LIMITS) -> MakeApp:
    """What makes an application: the search page, the demo, or the grading page.

    Args:
        name: One of :data:`DOORS`; the last encodes for other programs.
        folder: An empty one, or one in which doors were made before.
        limits: Of the server.
    """
    root = folder / PLACE
    scenes, model = root / "scenes", ColourModel()
    data = generate(scenes, _SCENES)
    (root / "secret.txt").write_bytes(SECRET)
    if name == "serve-model":
        return lambda settings, _: create_model_app(model, settings=replace(settings, limits=limits))
    if name == "grade":
        questions = Questions(data, (Question(0, 2), Question(1, 5)))
        return lambda settings, _: create_grading_app(
            questions,
            root / "judgements.jsonl",
            file="wrong.csv",
            settings=replace(settings, limits=limits),
        )
    if not (root / "index").exists():
        Index.build(data, model, root / "index")
    index = Index.open(root / "index")
    if name == "serve":
        return lambda settings, _: create_app(
            index,
            model,
            only_here=True,
            kept=root / "kept",
            settings=replace(settings, limits=limits),
        )
    sides = {one: DemoModel(one, index, model, world.calibration()) for one in NAMES}  # type: ignore[arg-type]
    results = Results({}, (), (), {}, len(data))
    demo = Demo(SideBySide(sides, load_scene_file(scenes)), results)
    return lambda settings, _: create_demo_app(demo, settings=replace(settings, limits=limits))
