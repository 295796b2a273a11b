"""What is compared: results, their files, runs, and folders of runs, as systems of one question."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, is_regular
from rungwise.jobs._python_values import refused
from rungwise.jobs._terminal import shortest

if TYPE_CHECKING:
    from rungwise.evaluation import Result, ResultQuestion, System
    from rungwise.runs import SystemRuns

_WANTED = "a result, its file, the text of to_json(), a run, its folder, or a folder of runs"


@dataclass(frozen=True)
class Candidate:
    """A system before it is known by which of its results it is compared.

    Attributes:
        name: Name of the system.
        results: Its results by their question, one for each training.
        trainings: Number of its trainings.
        unmeasured: Folders of its trainings that have no result at all.
    """

    name: str
    results: Mapping[ResultQuestion, tuple[Result, ...]]
    trainings: int
    unmeasured: tuple[Path, ...] = ()

    def without_results(self) -> str:
        """One line on what has no result, with the command that gives it; empty where all have one."""
        if not self.unmeasured:
            return ""
        first = shortest(self.unmeasured[0])
        others = f" and {len(self.unmeasured) - 1} more" if self.unmeasured[1:] else ""
        return f"{first}{others}: no results yet; rungwise evaluate {first} DATA"

    @classmethod
    def of(cls, system: SystemRuns, name: str) -> Candidate:
        """The candidate of runs that differ in their seed alone."""
        unmeasured = tuple(run.folder for run in system.runs if not run.results)
        return cls(name, system.results(), len(system.runs), unmeasured)


@dataclass(frozen=True)
class Wanted:
    """The question by which systems are compared; None takes any.

    Attributes:
        protocol: Name of the protocol.
        split: Name of the split.
        relevance: Beginning of the name of the degrees, in capital or small letters.
    """

    protocol: str | None = None
    split: str | None = None
    relevance: str | None = None

    def fits(self, question: ResultQuestion) -> bool:
        """Whether a result of this question may be taken."""
        return (
            self.protocol in (None, question.protocol)
            and self.split in (None, question.split)
            and (self.relevance is None or question.relevance.casefold().startswith(self.relevance.casefold()))
        )


def candidates_of(given: Sequence[Any]) -> tuple[list[Candidate], list[str]]:
    """Systems of what is named, in its order, and one line for each run that cannot be read.

    Raises:
        UserError: If something is none of what may be named, or holds nothing.
    """
    found: list[Candidate] = []
    unreadable: list[str] = []
    for place, one in enumerate(given):
        found += _candidates(one, place, unreadable)
    return found, unreadable


def candidates_together(given: Sequence[Any]) -> tuple[list[Candidate], list[str]]:
    """As :func:`candidates_of`, but runs that differ in their seed alone are one system wherever they lie."""
    places = [one for one in given if isinstance(one, str | os.PathLike) and _holds_runs(one)]
    found: list[Candidate] = []
    unreadable: list[str] = []
    for place, one in enumerate(given):
        if any(one is other for other in places):
            continue
        try:
            found += _candidates(one, place, unreadable)
        except UserError as error:  # one that cannot be read leaves the others be
            unreadable.append(f"{shortest(Path(one)) if isinstance(one, str | os.PathLike) else place}: {error}")
    if places:
        from rungwise.runs import find_runs, systems_of

        runs, broken = find_runs([_folder(one) for one in places])
        found = [Candidate.of(one, one.name) for one in systems_of(runs)] + found
        unreadable += broken
    return found, unreadable


def of_each_question(
    candidates: Sequence[Candidate], wanted: Wanted
) -> tuple[dict[ResultQuestion, list[System]], list[str]]:
    """The systems by each question that some of them answer, the test split first, and remarks on what is missing.

    A system without degrees stands beside those with degrees.
    """
    from rungwise.evaluation import System

    remarks = [said for one in candidates if (said := one.without_results())]
    known = list(dict.fromkeys(key for one in candidates for key in one.results))
    asked = [key for key in known if wanted.fits(key)]
    if known and not asked:
        raise UserError(f"no system has such a result; there are {'; '.join(key.text for key in known)}")
    graded = {key._replace(relevance="") for key in asked if key.relevance}
    asked = sorted((key for key in asked if key not in graded), key=lambda key: key.split != "test")
    found: dict[ResultQuestion, list[System]] = {}
    for key in asked:
        for one in candidates:
            own = one.results.get(key) or one.results.get(key._replace(relevance=""))
            if own:
                found.setdefault(key, []).append(System(one.name, own))
                remarks += _missing([replace(one, results={key: own})])
    return found, remarks


def of_one_question(candidates: Sequence[Candidate], wanted: Wanted) -> tuple[list[System], list[str]]:
    """The systems by the results of one question that all have, and remarks on what else they have.

    Of several such questions that of the test split is taken.

    Raises:
        UserError: If they have none in common, or several that an option must choose from.
    """
    from rungwise.evaluation import System

    if wanted == Wanted() and all(len(one.results) == 1 for one in candidates):
        # There is nothing to choose, and a comparison says best in what two results differ.
        return [System(one.name, next(iter(one.results.values()))) for one in candidates], list(_missing(candidates))
    common = _common(candidates, wanted)
    several = [one for one in common if one.split == "test"] or common
    if len(several) > 1:
        listed = "; ".join(one.text for one in several)
        raise UserError(
            f"the systems were evaluated in {len(several)} ways: {listed}; name one of them by --protocol, --split or"
            " --relevance"
        )
    question, remarks, systems = several[0], [], []
    if others := [one for one in common if one != question]:
        remarks.append(f"compared by {question.text}; they have {'; '.join(one.text for one in others)} as well")
    for one in candidates:
        own = next(results for key, results in one.results.items() if _answers(key, question))
        systems.append(System(one.name, own))
        remarks += _missing([replace(one, results={question: own})])
    return systems, remarks


def _missing(candidates: Sequence[Candidate]) -> Iterator[str]:
    """One line for each system of which some trainings have no result of its only question."""
    for one in candidates:
        for question, own in one.results.items():
            if (missing := one.trainings - len(own)) > 0:
                yield f"{one.name}: {missing} of {one.trainings} trainings have no result of {question.text}"


def _common(candidates: Sequence[Candidate], wanted: Wanted) -> list[ResultQuestion]:
    """Questions that all systems answer; degrees of some do not keep the rest from being compared."""
    of_each = [[key for key in one.results if wanted.fits(key)] for one in candidates]
    for one, own in zip(candidates, of_each, strict=True):
        if not one.results:
            raise UserError(one.without_results())
        if not own:
            raise UserError(f"{one.name}: has no such result; it has {'; '.join(key.text for key in one.results)}")
    asked = list(dict.fromkeys(key for own in of_each for key in own))
    common = [key for key in asked if all(key in own for own in of_each)]
    plain = {key._replace(relevance="") for key in common}
    without_degrees = dict.fromkeys(key._replace(relevance="") for key in asked)
    common += [
        key
        for key in without_degrees
        if key not in plain and all(any(_answers(one, key) for one in own) for own in of_each)
    ]
    if not common:
        said = "; ".join(
            f"{one.name}: {', '.join(key.text for key in own)}" for one, own in zip(candidates, of_each, strict=True)
        )
        raise UserError(f"the systems have no result of the same data, split and protocol: {said}")
    return common


def _answers(key: ResultQuestion, asked: ResultQuestion) -> bool:
    return key == asked or (not asked.relevance and key._replace(relevance="") == asked)


def _candidates(given: Any, place: int, unreadable: list[str]) -> Iterator[Candidate]:
    from rungwise.evaluation import Result, System
    from rungwise.evaluation.comparison import label_of

    if isinstance(given, System):
        yield _of_results(given.name, given.results)
    elif isinstance(given, list | tuple) and given:
        own = [result for one in given for result in _results(one, place)]
        yield _of_results(label_of(place), own)
    elif isinstance(given, Result):
        yield _of_results(label_of(place), [given])
    elif isinstance(given, str) and given.lstrip().startswith("{"):
        yield _of_results(label_of(place), [Result.from_json(given)])
    elif isinstance(given, str | os.PathLike):
        yield from _of_place(given, unreadable)
    else:
        raise refused(f"systems[{place}]", given, _WANTED)


def _results(given: Any, place: int) -> Sequence[Result]:
    """Results of a member of a list: trainings of one system."""
    from rungwise.evaluation import Result

    if isinstance(given, Result):
        return [given]
    if isinstance(given, str | os.PathLike) and not os.path.isdir(given):  # noqa: PTH112 - a text may be too long
        return [Result.from_json(given if isinstance(given, str) else Path(given))]
    raise refused(f"systems[{place}]", given, "a list of results or of their files: trainings of one system")


def _of_results(name: str, results: Sequence[Result]) -> Candidate:
    from rungwise.evaluation import ResultQuestion

    found: dict[ResultQuestion, list[Result]] = {}
    for one in results:
        found.setdefault(ResultQuestion.of(one), []).append(one)
    return Candidate(name, {key: tuple(own) for key, own in found.items()}, len(results))


def _of_place(given: str | os.PathLike[str], unreadable: list[str]) -> Iterator[Candidate]:
    from rungwise.evaluation import Result
    from rungwise.runs import FinishedRun

    path = Path(given)
    if not path.is_dir() and not FinishedRun.is_one(path):
        yield _of_results(shortest(path), [Result.from_json(path)])
        return
    if not _holds_runs(given):
        files = sorted(one for one in path.glob("*.json") if is_regular(one))
        yield _of_results(shortest(path), [Result.from_json(one) for one in files])
        return
    from rungwise.runs import find_runs, systems_of

    path = _folder(given)
    runs, broken = find_runs([path])
    unreadable += broken
    systems = systems_of(runs)
    for one in systems:
        name = shortest(path) if len(systems) == 1 else f"{shortest(path)}/{one.name}"
        yield Candidate.of(one, name)


def _holds_runs(given: str | os.PathLike[str]) -> bool:
    """Whether a place holds runs, and not results alone; a folder that is empty is said to hold no run."""
    from rungwise.runs import FinishedRun

    if not os.path.isdir(given):  # noqa: PTH112 - a text of JSON is longer than a path may be
        return os.path.isfile(given) and FinishedRun.is_one(Path(given))  # noqa: PTH113
    try:
        with os.scandir(given) as entries:
            own = list(entries)
    except OSError:  # find_runs says why
        return True
    places = [Path(one.path) for one in own]  # whose is_dir answers for a link to itself, too
    if any(one.is_dir() or FinishedRun.is_one(one) for one in places):
        return True
    return not any(one.name.endswith(".json") for one in own)


def _folder(given: str | os.PathLike[str]) -> Path:
    """Folder of a run; of a Run of several seeds, the folder of all."""
    seeds = getattr(given, "seeds", None)
    return Path(os.path.commonpath([run.folder for run in seeds.values()])) if seeds else Path(given)


def refuse_input(option: str, out: Path | None, given: Sequence[Any]) -> None:
    """Refuse to write over a result that is read.

    Raises:
        UserError: If what is to be written is one of the files that are given.
    """
    if out is None:
        return
    if absolute(out) in [absolute(one) for one in given if isinstance(one, str | os.PathLike)]:
        raise UserError(f"{option} {out}: is one of the results that are read; name another file")


def absolute(path: str | os.PathLike[str]) -> str:
    """The path from the root on, links not followed; as it is where the current folder was removed."""
    try:
        return os.path.abspath(path)  # noqa: PTH100
    except FileNotFoundError:
        return os.fspath(path)


def folders_of(given: Sequence[Any]) -> list[Path]:
    """Folders of runs, where only these may be given.

    Raises:
        UserError: If something else is.
    """
    for place, one in enumerate(given):
        if not isinstance(one, str | os.PathLike):
            raise refused(f"runs[{place}]", one, "a run, its folder, or a folder of runs")
    return [_folder(one) for one in given]


def named(systems: Sequence[System], names: Sequence[str]) -> list[System]:
    """The systems under other names.

    Raises:
        UserError: If there are more or fewer names than systems, or two names are equal.
    """
    given = names_for([one.name for one in systems], names)
    return [replace(one, name=name) for one, name in zip(systems, given, strict=True)]


def names_for(own: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """The names that a person gave to systems, or their own where none are given.

    Raises:
        UserError: If there are more or fewer names than systems, or two names are equal.
    """
    if not names:
        return own
    if len(names) != len(own):
        raise UserError(f"--names has {len(names)} for {len(own)} systems: {', '.join(own)}; give one for each")
    if len(set(names)) < len(names):
        raise UserError(f"--names {' '.join(names)}: two are equal; give each system its own")
    return names
