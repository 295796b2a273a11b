"""What the files of a study hold, and tables of its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev

from rungwise.evaluation import Result
from rungwise.evaluation.statistics import number_text
from rungwise.runs import FinishedRun
from rungwise.runs.study import JudgedClaim, StudyConfig, StudyRecord, judged_claims, load_study

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "studies"
SUMMARY = "what-holds-up"
"""Name of the page that has all claims."""

TITLES = {
    "losses-flickr8k": "Losses alone",
    "claims-flickr8k": "The papers' own architecture",
    "degrees-one-caption": "One caption a picture",
    "degrees-shuffled": "Captions beside wrong pictures",
    "degrees-scenes": "Generated scenes",
    "recipe-flickr8k": "The recipe",
}
"""Studies in the order in which the summary has them, and the titles of their pages."""

RECIPE = "recipe-flickr8k"
"""The study whose page says how the recipe was chosen and whether its aim was reached."""

COLUMNS = {
    "rsum": "rsum",
    "t2i/nDCG@10": "nDCG@10",
    "t2i/CS@100": "CS@100",
    "t2i/NCS@10": "NCS@10",
    "t2i/NCS@10(non_gt)": "NCS@10 (N)",
    "t2i/JudgedNDCG@10": "people's nDCG@10",
    "t2i/JudgedAP(t=0.5)": "people's AP",
    "t2i/CutF1(t=0.25)": "CutF1",
    "t2i/ECE": "ECE",
}
"""Numbers of the table of systems, and the heads of their columns."""

MEASURES = {
    "rsum": "how often an annotated answer is among the first 1, 5 and 10: the sum of six percentages, 600 at most",
    "t2i/CS@100": "whether the first hundred stand in the order of their degrees of relevance, -1 to 1",
    "t2i/nDCG@10": "the relevance in the first ten, where the first ranks count most, in percent of all possible",
    "t2i/NCS@10(non_gt)": "the relevance in the first ten beside the annotated answers, in percent of all possible",
    "t2i/JudgedAP(t=0.5)": "whether pictures that people judged right stand before those they judged wrong, in percent",
}
"""Measures of claims, and what each tells."""

DRAWN = ("rsum", "t2i/nDCG@10", "t2i/CS@100", "t2i/JudgedAP(t=0.5)")
"""Numbers of the figure, a panel each; those that a study did not ask are left out."""


@dataclass(frozen=True)
class Measured:
    """A study and what its files hold.

    Attributes:
        name: Name of the study: that of its file and of its folder.
        study: The study.
        record: Trials, choices and openings.
        runs: Files of the runs by system, in the order of the seeds; systems of which a run is missing are left out.
    """

    name: str
    study: StudyConfig
    record: StudyRecord
    runs: Mapping[str, tuple[FinishedRun, ...]]

    @classmethod
    def read(cls, name: str) -> Measured:
        """Read a study and the files of its runs."""
        study, folder = load_study(STUDIES / f"{name}.yaml"), STUDIES / name
        runs = {}
        for system in study.systems():
            files = [FinishedRun.file_of(folder / system.name / f"seed-{seed}") for seed in study.seeds]
            if all(file.exists() for file in files):
                runs[system.name] = tuple(map(FinishedRun.from_json, files))
        return cls(name, study, StudyRecord.read(folder), runs)

    @cached_property
    def results(self) -> dict[str, list[list[Result]]]:
        """Results of each run of each system, on the split that the study asks."""

        def asked(run: FinishedRun) -> list[Result]:
            return [one for one in run.measured.values() if (one.split == "test") == self.study.opens_test]

        return {name: list(map(asked, own)) for name, own in self.runs.items()}

    @property
    def drawn(self) -> list[str]:
        """Names of the numbers of the figure that all systems have."""
        return [name for name in DRAWN if all(values_of(own, name) for own in self.results.values())]

    def claims(self) -> tuple[JudgedClaim, ...]:
        """The claims with their verdicts."""
        return judged_claims(self.study.claims, self.results)

    def seconds(self) -> float:
        """Seconds that all epochs took, those of trials too."""
        trained = sum(run.seconds for own in self.runs.values() for run in own)
        return trained + sum(trial.seconds for one in self.record.searches.values() for trial in one.trials)

    def machines(self) -> list[str]:
        """The machines that the runs were trained on."""
        every = [one for own in self.runs.values() for run in own for one in run.record["machines"]]
        return sorted({f"{one['name']}, {one['precision']}" for one in every})


def values_of(runs: Sequence[Sequence[Result]], name: str) -> list[float]:
    """A number of each run; empty where one lacks it."""
    found = [next((result[name] for result in run if name in result), None) for run in runs]
    return [] if None in found else [one for one in found if one is not None]


def unit_of(runs: Sequence[Sequence[Result]], name: str) -> str:
    """The unit of a number that each run has."""
    return next(result.units[name] for result in runs[0] if name in result)


def counted(measured: Measured) -> str:
    """How many of the systems are trained."""
    done, every = len(measured.runs), len(measured.study.systems())
    return f"{done}" if done == every else f"{done} of {every}"


def systems_table(measured: Measured) -> Iterator[str]:
    """A line for each system: means and deviations over its seeds."""
    results = measured.results
    columns = {name: head for name, head in COLUMNS.items() if all(values_of(own, name) for own in results.values())}
    yield f"| system | {' | '.join(columns.values())} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for system, own in results.items():
        cells = []
        for name in columns:
            values, unit = values_of(own, name), unit_of(own, name)
            spread = f" ± {number_text(stdev(values), unit)}" if len(values) > 1 else ""
            cells.append(f"{number_text(mean(values), unit)}{spread}")
        yield f"| `{system}` | {' | '.join(cells)} |"
