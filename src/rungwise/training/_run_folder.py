"""The folder of a run: names of its files, and its text files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UncheckedError, UserError, dump_yaml, read_text
from rungwise.core.disk import digest_of, replacing
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.core.disk.staging import sweep

if TYPE_CHECKING:
    from rungwise.data import Issue

CONFIG, CHECKPOINT, MODEL = "config.yaml", "checkpoint.safetensors", "model"
HISTORY, SKIPPED = "history.jsonl", "skipped.txt"
STEPS = "steps.jsonl"
IDS = {"wandb": "wandb_id.txt", "mlflow": "mlflow_id.txt"}
"""Files with the ids by which services know this run."""

LOGS = (STEPS, *IDS.values())
"""Files that a run writes only where its configuration names them."""

WRITER = "a training run"
"""Name of the holder of a run folder's lock, for messages."""

_SUM = "# SHA-256 of the lines above: "
_COVERED = re.compile(r"^# ([0-9a-f]{64})  ([a-z]+\.[a-z]+)$", re.MULTILINE)

STAGES = "stages"
"""Folder of a run's stages, each of which is a run of its own; such a run has no checkpoint itself."""


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, complete or not."""
    return any((folder / name).exists() for name in (CHECKPOINT, HISTORY, STAGES))


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a run that can be resumed, with stages or without."""
    return (folder / CHECKPOINT).exists() or (folder / STAGES).exists()


def stage_folder(run: Path, number: int, name: str) -> Path:
    """Folder of a run's stage."""
    return run / STAGES / f"{number}-{name}"


def sweep_run(folder: Path) -> None:
    """Remove the unfinished files of a killed run or stage, while nobody writes in its folder."""
    for name in (CONFIG, CHECKPOINT, HISTORY, SKIPPED, MODEL, *LOGS):
        sweep(folder / name)


def write_config(folder: Path, config: Any, covers: Sequence[str] = ()) -> None:
    """Write the configuration, from which the run can be repeated, with checksums below it as comments.

    ``covers`` are names of other files of the run that no longer change, whose checksums are written too.
    """
    text = dump_yaml(config) + "".join(f"# {digest_of(folder / name)}  {name}\n" for name in covers)
    _write(folder / CONFIG, f"{text}{_SUM}{hash_of_text(text)}\n")


def check_config(folder: Path) -> None:
    """Compare the files of :func:`write_config` with their checksums.

    Raises:
        UncheckedError: If there are no checksums, as in a configuration that a person wrote.
        UserError: If the configuration is missing, or a file is not as it was written.
    """
    path = folder / CONFIG
    text, mark, digest = read_text(path, "settings_bytes").rpartition(_SUM)
    if not mark:
        raise UncheckedError("it has no checksum; resuming the run writes one")
    if digest != f"{hash_of_text(text)}\n":
        raise UserError(f"{path}: altered or damaged since the run wrote it; restore a copy, or resume the run")
    for match in _COVERED.finditer(text):
        if (folder / match[2]).exists() and digest_of(folder / match[2]) != match[1]:
            raise UserError(f"{folder / match[2]}: altered or damaged since it was written; restore a copy")


def write_history(folder: Path, history: Iterable[Mapping[str, Any]]) -> None:
    """Write one mapping of measured numbers for each epoch, or combination of a grid, as a line of JSON."""
    _write(folder / HISTORY, "".join(json.dumps(one) + "\n" for one in history))


def write_skipped(folder: Path, issues: Iterable[Issue]) -> None:
    """Write a line for each skipped item; without any there is no file."""
    lines = [f"{issue.kind}\t{issue.where}\t{issue.detail}\n" for issue in issues]
    if lines:
        _write(folder / SKIPPED, "".join(lines))
    else:
        (folder / SKIPPED).unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Write a text; bytes in file names that are not UTF-8 are escaped."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
