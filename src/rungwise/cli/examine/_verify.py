"""``rungwise verify FOLDER``: whether something that rungwise made is whole and unaltered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from rungwise.cli.frame import parse
from rungwise.core import Check, MissingExtraError, UncheckedError, UserError, checked, summary
from rungwise.core.disk import DROPPINGS, check_seal, has_seal
from rungwise.core.disk.locks import LOCKS
from rungwise.core.disk.staging import is_draft
from rungwise.core.text import IdleCase, idle_where, refuse_idle
from rungwise.jobs import ADVANCED, Device, flag, say

if TYPE_CHECKING:
    from rungwise.index.layout.manifest import Manifest
    from rungwise.models import DualEncoder

_WITH_INDEX = ("an index", "a folder of runs or indexes")
"""Kinds of which pictures and captions are encoded anew."""
UNCHECKED = 3
"""Exit status where nothing wrong was found, but something could not be checked."""

_EXAMPLES = ("rungwise verify photos.index", "rungwise verify run")


@dataclass
class Verify:
    """Check an index, a model, a run, degrees of relevance or a cache: checksums, counts, ids, numbers.

    Prints a line for each thing: ok, wrong, or not checked. Ends with status 0 if everything was checked and nothing is
    wrong, with 2 if anything is wrong, and with 3 if nothing wrong was found, but something could not be checked.
    Nothing is written.

    Attributes:
        folder: What is checked. Scores of pairs (see rungwise relevance cascade --cache) are a file.
        model: Of an index: the model that built it, if it has moved.
        sample: Of an index: how many pictures and captions are encoded anew and compared.
        encode: Of an index: encode a sample anew.
    """

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    model: str | None = None
    sample: int = field(default=32, metadata=ADVANCED)
    encode: bool = True
    device: Device = field(default=None, metadata=ADVANCED)

    IDLE = (
        idle_where(
            "model sample device",
            lambda asked: not asked.encode,
            "with {no_encode}, which encodes nothing",
            "leave one of them out",
        ),
    )


def main(arguments: list[str]) -> int:
    """Check, and print the results."""
    asked = parse(Verify, arguments, "rungwise verify", examples=_EXAMPLES)
    if asked.sample < 1:
        raise UserError(f"--sample must be at least 1, got {asked.sample}; --no-encode leaves the sample out")
    from rungwise.index.stores import named

    what, checks = _kind(asked)
    if what not in _WITH_INDEX:
        refuse_idle(asked, _of_others(what), option=flag)
    say(f"{named(asked.folder)}: {what}")
    found = []
    for check in checks:
        say(str(check))
        found.append(check)
    say(summary(found))
    if any(check.wrong for check in found):
        return 2
    return UNCHECKED if not found or any(check.unchecked for check in found) else 0


def _of_others(what: str) -> IdleCase:
    """The case that no index is checked, so that nothing is encoded."""
    return idle_where("model sample device", lambda _: True, f"for {what}, and is for an index")


def _kind(asked: Verify) -> tuple[str, Iterator[Check]]:
    """Kind of what is in the folder, and its checks.

    Raises:
        UserError: If there is nothing that can be checked.
    """
    from rungwise.core import is_regular
    from rungwise.index.layout import manifest as index_storage
    from rungwise.index.maintenance import is_backup, verify_backup, verify_index
    from rungwise.relevance.storage import saved as relevance_storage

    folder = asked.folder
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{folder}: may not be read; change its permissions")
    if index_storage.is_index(folder):
        return _WITH_INDEX[0], verify_index(folder, _model_of(asked) if asked.encode else None, asked.sample)
    if is_backup(folder):
        return "a backup of an index", verify_backup(folder)
    if (folder / relevance_storage.HEADER).is_file():
        return "degrees of relevance", relevance_storage.verify(folder)
    if (folder / "config.json").is_file() and _is_own(folder / "config.json"):
        return "a model", _model(folder)
    # These bring torch along, which an exported model is checked without.
    from rungwise.encoders import row_cache
    from rungwise.training import is_run

    if is_run(folder):
        return "a run", _run(folder)
    inner = sorted(one for pattern in ("*", "*/*") for one in folder.glob(pattern) if one.is_dir())
    if parts := [one for one in inner if index_storage.is_index(one) or is_run(one)]:
        return _WITH_INDEX[1], _parts(asked, parts)
    if folder.is_dir() and row_cache.is_cache(folder):
        return "cached features or pictures", _cache(folder)
    if is_regular(folder) and (file := _of_file(folder)) is not None:
        return file
    if has_seal(folder):
        return "a sealed folder", iter([checked("seal", lambda: _sealed(folder))])
    if not folder.exists():
        raise UserError(f"{folder}: is not there; correct the path")
    raise UserError(
        f"{folder}: nothing here that can be checked; name an index, a model, a run, degrees of relevance, a cache, or"
        " a file of scores, judgements, results or a calibration"
    )


def _of_file(path: Path) -> tuple[str, Iterator[Check]] | None:
    """Kind of a single file, and its check; None if it is nothing that has a checksum."""
    from rungwise.calibration import Calibration
    from rungwise.core import read_json
    from rungwise.core.disk.sealed_lines import a_sealed_line
    from rungwise.evaluation import FORMAT
    from rungwise.evaluation import verify as verify_result
    from rungwise.evaluation.benchmarks import BenchmarkResult
    from rungwise.relevance.combine import read_fit
    from rungwise.relevance.human import is_judgement_line
    from rungwise.relevance.storage import pair_cache

    if pair_cache.is_pair_cache(path):
        return "scores of pairs", pair_cache.verify(path)
    line = a_sealed_line(path)
    if line is not None and is_judgement_line(line):
        return "judgements of people", iter([checked(path.name, lambda: _judgements(path))])
    if path.suffix != ".json":
        return None
    value = read_json(path)
    form = value.get("format") if isinstance(value, dict) else None
    if form == FORMAT:
        return "a result", verify_result(path)
    looks: dict[object, tuple[str, Callable[[], str]]] = {
        "rungwise-calibration": ("a calibration", lambda: str(Calibration.load(path))),
        BenchmarkResult.format: (
            "a benchmark's result",
            lambda: f"{len(BenchmarkResult.from_json(path).numbers)} numbers",
        ),
        "rungwise-combination": ("weights of sources", lambda: f"of {', '.join(read_fit(path).names)}"),
    }
    if form not in looks:
        return None
    what, look = looks[form]
    return what, iter([checked(path.name, look)])


def _judgements(path: Path) -> str:
    from rungwise.relevance.human import read_judgements

    found = read_judgements(path)
    if found.issues:
        first = found.issues[0]
        raise UserError(
            f"{first.where}: {first.kind} ({first.detail}); {len(found.issues)} lines are damaged, and the other"
            f" {len(list(found))} judgements count; remove them"
        )
    return f"{len(list(found))} judgements, each with its checksum"


def _model_of(asked: Verify) -> Callable[[Manifest], DualEncoder]:
    from rungwise.models import AlteredModelError, load_dual_encoder

    def load_it(manifest: Manifest) -> DualEncoder:
        source = asked.model or manifest.model_location
        if not source:
            raise UncheckedError("the index does not say where its model is; name it with --model, or give --no-encode")
        try:
            return load_dual_encoder(source, asked.device)
        except MissingExtraError as error:
            what = "encoding a sample anew"
            raise MissingExtraError(
                error.library, what, extra=error.extra, otherwise=", or give --no-encode"
            ) from error
        except UserError as error:
            reason = error.reason if isinstance(error, AlteredModelError) else error
            line = f"{reason}; name the model with --model, or give --no-encode"
            # Of a model that is not at hand, or lacks a part here, nobody knows whether it is whole.
            is_there = Path(source).exists() and not isinstance(error, UncheckedError)
            raise (UserError if is_there else UncheckedError)(line) from error

    return load_it


def _is_own(config: Path) -> bool:
    """Whether a model's description is one of rungwise, or damaged, and not that of a published model."""
    from rungwise.core import read_json

    try:
        facts = read_json(config)
    except UserError:
        return True
    return not isinstance(facts, dict) or "format" in facts


def _parts(asked: Verify, parts: Sequence[Path]) -> Iterator[Check]:
    """Checks of the parts of several seeds or of a demo; other content is reported as unchecked."""
    for place in parts:
        _, checks = _kind(replace(asked, folder=place))
        name = place.relative_to(asked.folder).as_posix()
        yield from (replace(check, what=f"{name}: {check.what}") for check in checks)
    for place in sorted(asked.folder.iterdir()):
        if not any(part.is_relative_to(place) for part in parts) and place.name not in {*LOCKS, *DROPPINGS}:
            yield Check(place.name, unchecked="it is no run and no index; name it to see whether it can be checked")


def _cache(folder: Path) -> Iterator[Check]:
    """Checks of a cache: feature rows, pair scores, sources of relevance, facts of models; other content is named."""
    from rungwise.encoders import row_cache
    from rungwise.models import read_facts
    from rungwise.relevance.storage import pair_cache

    if not os.access(folder, os.R_OK | os.X_OK):
        yield Check(str(folder), unchecked="it may not be read; change its permissions")
        return
    if (folder / row_cache.KEYS).is_file():
        yield from row_cache.verify(folder)
        return
    if has_seal(folder):
        yield checked(str(folder), lambda: _sealed(folder))
        return
    found: list[Check] = []
    facts, unknown = 0, []
    for path in sorted(folder.iterdir()):
        if path.name in {*LOCKS, *DROPPINGS} or path.suffix == ".lock" or is_draft(path.name):
            continue
        if path.is_dir() and not path.is_symlink():  # which may lead to a folder above
            found += _cache(path)
        elif pair_cache.is_pair_cache(path):
            found += pair_cache.verify(path)
        elif path.suffix == ".json" and read_facts(path) is not None:
            facts += 1
        else:
            unknown.append(path)
    if facts:
        found.append(Check(str(folder), f"facts of models, each as it was written: {facts}"))
    yield from found
    if found:
        yield from (Check(str(path), unchecked="it is nothing that verify knows") for path in unknown)
    elif unknown:
        yield Check(str(folder), unchecked=f"it holds {unknown[0].name!r}, which is nothing that verify knows")


def _run(folder: Path) -> Iterator[Check]:
    from rungwise.runs import verify_run
    from rungwise.training import MODEL

    yield from verify_run(folder)
    if (folder / MODEL).is_dir():
        yield from _model(folder / MODEL)


def _model(folder: Path) -> Iterator[Check]:
    yield checked("seal of the model", lambda: _sealed(folder))
    yield checked("model", lambda: _loaded(folder))


def _sealed(folder: Path) -> str:
    check_seal(folder)
    return "every file is as it was written"


def _loaded(folder: Path) -> str:
    from rungwise.models import AlteredModelError, load
    from rungwise.models.io import StoredModel

    try:
        model = load(folder, "cpu")
    except AlteredModelError as error:
        raise UserError(f"{error.reason}; get the model anew") from None
    said = (model.contents, model.try_out()) if isinstance(model, StoredModel) else ()
    contents = "".join(f"{one}, " for one in said if one)
    return f"kind {model.kind}, {contents}fingerprint {model.fingerprint[:12]}"
