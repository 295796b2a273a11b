"""The folder of a run: what lies where in it."""

from __future__ import annotations

from pathlib import Path

from rungwise.core.drafts import sweep

CONFIG, CHECKPOINT, MODEL = "config.yaml", "checkpoint.safetensors", "model"
HISTORY, SKIPPED = "history.jsonl", "skipped.txt"
STEPS = "steps.jsonl"
IDS = {"wandb": "wandb_id.txt", "mlflow": "mlflow_id.txt"}
"""What services that show runs call this one."""

LOGS = (STEPS, *IDS.values())
"""Files that a run writes only where its configuration asks for them."""

STAGES = "stages"
"""The folder of a run's stages, each of which is a run of its own; such a run has no checkpoint beside it."""


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, be it whole or not.

    >>> is_run(Path("nowhere"))
    False
    """
    return any((folder / name).exists() for name in (CHECKPOINT, HISTORY, STAGES))


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a run that can go on, of one stage or of several.

    >>> is_begun(Path("nowhere"))
    False
    """
    return (folder / CHECKPOINT).exists() or (folder / STAGES).exists()


def stage_folder(run: Path, number: int, name: str) -> Path:
    """Where a stage of a run stands.

    Args:
        run: Its folder.
        number: Of the stage, from 1.
        name: Of the stage.

    >>> stage_folder(Path("run"), 2, "fine_tune").as_posix()
    'run/stages/2-fine_tune'
    """
    return run / STAGES / f"{number}-{name}"


def sweep_run(folder: Path) -> None:
    """Remove what a killed run left unfinished of its files.

    Args:
        folder: Of a run, or of a stage; nobody writes in it now.

    >>> sweep_run(Path("nowhere"))
    """
    for name in (CONFIG, CHECKPOINT, HISTORY, SKIPPED, MODEL, *LOGS):
        sweep(folder / name)
