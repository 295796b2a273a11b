"""The folder of a run: what lies where in it, and its files in text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core.checks import UncheckedError
from rungwise.core.configuration import dump_yaml
from rungwise.core.disk.files import replacing
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.core.disk.seals import digest_of
from rungwise.core.disk.staging import sweep
from rungwise.core.errors import UserError
from rungwise.core.untrusted_files import read_text

if TYPE_CHECKING:
    from rungwise.data.collection import Issue

CONFIG, CHECKPOINT, MODEL = "config.yaml", "checkpoint.safetensors", "model"
HISTORY, SKIPPED = "history.jsonl", "skipped.txt"
STEPS = "steps.jsonl"
IDS = {"wandb": "wandb_id.txt", "mlflow": "mlflow_id.txt"}
"""What services that show runs call this one."""

LOGS = (STEPS, *IDS.values())
"""Files that a run writes only where its configuration asks for them."""

WRITER = "a training run"
"""Who holds the lock of a run's folder, for messages."""

_SUM = "# SHA-256 of the lines above: "
_COVERED = re.compile(r"^# ([0-9a-f]{64})  ([a-z]+\.[a-z]+)$", re.MULTILINE)

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


def write_config(folder: Path, config: Any, covers: Sequence[str] = ()) -> None:
    """Keep the configuration, from which the run can be made again, and checksums below it, as remarks.

    Args:
        folder: Of the run.
        config: Of the run.
        covers: Names of other files of the run that do not change any more, whose checksums are written down as well.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> from rungwise.similarity import Cosine
    >>> write_config(folder, Cosine())
    >>> (folder / CONFIG).read_text().splitlines()[-1][:28]
    '# SHA-256 of the lines above'
    >>> check_config(folder)
    """
    text = dump_yaml(config) + "".join(f"# {digest_of(folder / name)}  {name}\n" for name in covers)
    _write(folder / CONFIG, f"{text}{_SUM}{hash_of_text(text)}\n")


def check_config(folder: Path) -> None:
    """Compare what :func:`write_config` wrote, and the files that it covers, with their checksums.

    Raises:
        UncheckedError: If there are none, as in a configuration that a person wrote.
        UserError: If the configuration is missing, or anything that is there is not as it was written.
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
    """Keep what was measured, a line of JSON for each entry.

    Args:
        folder: Of the run.
        history: One mapping an epoch, or a combination of a grid.
    """
    _write(folder / HISTORY, "".join(json.dumps(one) + "\n" for one in history))


def write_skipped(folder: Path, issues: Iterable[Issue]) -> None:
    """Keep what the run goes on without, a line each; without any there is no file.

    Args:
        folder: Of the run.
        issues: Each of them.
    """
    lines = [f"{issue.kind}\t{issue.where}\t{issue.detail}\n" for issue in issues]
    if lines:
        _write(folder / SKIPPED, "".join(lines))
    else:
        (folder / SKIPPED).unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Names of files may have bytes that are no UTF-8; they are written as escapes."""
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
