"""Writes the pages of docs/explanation/held/ from the files of studies that lie in studies/; nothing is trained.

what-holds-up.md says of every claim whether it holds; a page for each study shows its numbers.

Run it after a study was run or changed: python docs/figures/studies.py
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from rungwise.evaluation import Result
from rungwise.evaluation.comparison import bounds_texts, signed
from rungwise.evaluation.statistics import number_text
from rungwise.runs import FinishedRun
from rungwise.runs.study import JudgedClaim, StudyClaim, StudyConfig, StudyRecord, judged_claims, load_study

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
PAGES = ROOT / "docs" / "explanation" / "held"
SUMMARY = "what-holds-up"
IMAGES = ROOT / "docs" / "images"

TITLES = {
    "losses-flickr8k": "Fourteen losses",
    "claims-flickr8k": "The papers' own architecture",
    "degrees-one-caption": "One caption a picture",
    "degrees-scenes": "Generated scenes",
    "recipe-flickr8k": "The recipe",
}
"""Studies in the order in which the summary has them, and the titles of their pages."""

DEGREES = "degrees-"
"""How the names of the studies begin that were built to find out where degrees help."""

ELSEWHERE = {
    "claims-flickr8k": "SCAN, CVSE and other models of regions, with and without SAM, were measured elsewhere:"
    " [their results](../../guide/models/region-results.md).",
}
"""What a page says of systems that its study leaves out."""

RECIPE = "recipe-flickr8k"
"""The study whose page says how the recipe was chosen and whether its aim was reached."""
SEARCHES = ("recipe-search-flickr8k", "recipe-degrees-flickr8k")
"""What the recipe was chosen from, on the validation split."""
AIM = 75.0
"""What the recipe was to have above VSE++ with the same image features, in rsum."""
BOUNDS = {
    "t2i/JudgedAP(t=0.5)": "What bounds people's AP: it is higher where less of the loss follows degrees, as in"
    " `without-degrees` and `first-version`, and the mean of NCS@10 (N) is lower there than that of `quick`. The share"
    " of degrees that raises NCS@10 (N) leaves people's AP at that of `quick`."
}
"""What bounds a part of the aim that was missed."""
BESIDE = STUDIES / "beside-the-recipe.json"
"""What was measured beside the recipe, by beside_recipe.py."""

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
COLOURS = ("#2b6cb0", "#c05621", "#3a8f63")


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
        return [name for name in DRAWN if all(_values(own, name) for own in self.results.values())]

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


def pages(studies: Sequence[Measured]) -> dict[str, str]:
    """The pages as Markdown: the summary, and one for each study, by the names of their files."""
    claims = {study.name: study.claims() for study in studies}
    made = {SUMMARY: _summary(studies, claims), **{one.name: _study(one, claims[one.name]) for one in studies}}
    return {f"{name}.md": "\n".join(lines) + "\n" for name, lines in made.items()}


def _summary(studies: Sequence[Measured], claims: Mapping[str, Sequence[JudgedClaim]]) -> Iterator[str]:
    every = [one for own in claims.values() for one in own]
    counts, waiting = Counter(one.verdict for one in every), sum(len(one.study.claims) for one in studies) - len(every)
    told = f"{len(every)} of {len(every) + waiting} claims are measured so far" if waiting else f"{len(every)} claims"
    yield from (
        "# What holds up",
        "",
        "This page says which claims about losses and degrees of relevance hold on the same photos, encoders, captions,"
        " epochs and seeds, and which do not.",
        "",
        f"{told}. Holds here: {counts['holds']}. Does not show: {counts['does not show']}. Contradicted here:"
        f" {counts['contradicted here']}.",
    )
    yield from _degrees(studies, claims)
    for study in studies:
        yield from ("", f"## {TITLES[study.name]}", "", f"{study.study.about} [All numbers]({study.name}.md).", "")
        yield from ("| claim | difference | verdict |", "| --- | --- | --- |")
        for one in claims[study.name]:
            difference = signed(one.difference.difference, one.difference.unit)
            yield f"| {one.claim.says} | {difference} {one.claim.measure} | **{one.verdict}** |"
    yield from (
        "",
        "## The measures",
        "",
        "[Measures](../../guide/evaluation/choosing-measures.md) defines them. More is better with each; `t2i` says"
        " that a text asks for pictures.",
        "",
        "| measure | what it tells |",
        "| --- | --- |",
        *(f"| `{name}` | {told} |" for name, told in MEASURES.items()),
        "",
        "## How a verdict is made",
        "",
        "The measure of each claim was written into the file of the study before anything was tested. A claim *holds*"
        " where the 95 % interval of the difference lies above 0 over pictures (bootstrap) and over seeds (Student's t"
        " of paired differences), and both p-values, with Holm's correction for all claims of a study, are below .05."
        " It is *contradicted here* where both lie below 0. Else it *does not show*, which is no proof that there is"
        " nothing. All other numbers are descriptive.",
        "",
        "`python docs/figures/studies.py` makes this page and those of the studies from the files in `studies/`;"
        " nothing is trained for it.",
        "",
        "## What it took",
        "",
        "On two cores with a training on each, and at times other work beside them:",
        "",
        "| study | systems | trainings | hours of a core | machine of the systems |",
        "| --- | ---: | ---: | ---: | --- |",
    )
    for measured in studies:
        trials = sum(len(search.trials) for search in measured.record.searches.values())
        cells = (
            f"`{measured.name}`",
            _counted(measured),
            f"{trials + sum(map(len, measured.runs.values()))}, {trials} of them trials",
            f"{measured.seconds() / 3600:.1f}",
            "; ".join(measured.machines()),
        )
        yield f"| {' | '.join(cells)} |"


def _degrees(studies: Sequence[Measured], claims: Mapping[str, Sequence[JudgedClaim]]) -> Iterator[str]:
    """Where degrees help: verdicts by study, and what they change in the recipe."""
    yield from (
        "",
        "## Do degrees help?",
        "",
        "These studies were built to find out. A claim of theirs says that a way to use degrees helps, beside one right"
        " answer and the same setting of everything else.",
        "",
        "| where | claims | help | not shown | harm |",
        "| --- | ---: | ---: | ---: | ---: |",
    )
    for study in studies:
        if study.name.startswith(DEGREES):
            found = Counter(one.verdict for one in claims[study.name])
            cells = (len(claims[study.name]), *(found[one] for one in ("holds", "does not show", "contradicted here")))
            yield f"| [{TITLES[study.name]}]({study.name}.md) | {' | '.join(map(str, cells))} |"
    yield from ("", _in_the_recipe(next(one for one in studies if one.name == RECIPE)))


def _in_the_recipe(recipe: Measured) -> str:
    """What degrees change in the recipe, by every measure of claims."""
    having, lacking = recipe.results["best"], recipe.results["without-degrees"]
    claimed = ", ".join(COLUMNS[one.measure] for one in recipe.study.claims if one.than == "without-degrees")
    changes = ", ".join(
        f"{head} {signed(mean(_values(having, name)) - mean(_values(lacking, name)), _unit(having, name))}"
        for name, head in COLUMNS.items()
        if name in MEASURES
    )
    return (
        f"In [the recipe]({recipe.name}.md), a loss that follows degrees changes, beside one right answer: {changes}."
        f" Of these, {claimed} is a claim; the others are descriptive. The degrees of the measures come from scene"
        " graphs of the captions, but for those of people."
    )


def _study(measured: Measured, claims: Sequence[JudgedClaim]) -> Iterator[str]:
    study = measured.study
    yield from (
        f"# {TITLES[measured.name]}",
        "",
        f"{study.about} [What holds up]({SUMMARY}.md) says how a verdict is made.",
        "",
        "<!-- not run: a long training -->",
        "```",
        f"cd studies; rungwise study {measured.name}.yaml --jobs 2",
        "```",
        "",
        f"{_counted(measured)} systems with {len(study.seeds)} seeds each. A point is a training, a bar the mean of its"
        " seeds:",
        "",
        f"![{study.about.rstrip('.')}: every training of every system](../../images/held-{measured.name}.svg)",
    )
    if measured.name in ELSEWHERE:
        yield from ("", ELSEWHERE[measured.name])
    if measured.name != RECIPE:
        yield from _leaders(measured)
    elif any(one.claim.better == "best" for one in claims):
        yield from _aim(claims)
    yield from ("", "## The claims")
    judged = {one.claim.name for one in claims}
    if waiting := [one.name for one in study.claims if one.name not in judged]:
        yield from ("", f"Not measured yet: {'; '.join(waiting)}.")
    for one in claims:
        yield from _claim(one)
    yield from ("", "## All systems", "", "Mean and standard deviation over seeds, test split:", "")
    yield from _systems(measured)
    if measured.name == RECIPE:
        yield from _beside(measured.results["best"], json.loads(BESIDE.read_text(encoding="utf-8")))
        yield from _chosen_from(list(map(Measured.read, SEARCHES)))
    if measured.record.searches:
        yield from ("", "## What was searched", "", "| system | trials | chosen on validation |")
        yield "| --- | ---: | --- |"
    for name, search in measured.record.searches.items():
        chosen = ", ".join(f"`{setting}: {value}`" for setting, value in search.values.items())
        yield f"| {name} | {len(search.trials)} | {chosen} |"


def _counted(measured: Measured) -> str:
    done, every = len(measured.runs), len(measured.study.systems())
    return f"{done}" if done == every else f"{done} of {every}"


def _claim(one: JudgedClaim) -> Iterator[str]:
    claim, difference = one.claim, one.difference
    first, second = (number_text(value, difference.unit) for value in (difference.first, difference.second))
    yield from ("", f"### {claim.name[:1].upper()}{claim.name[1:]}: {one.verdict}", "", claim.says, "")
    yield from ("| | |", "| --- | --- |", f"| claimed by | {claim.source} |")
    if claim.claimed:
        yield f"| claimed | {claim.claimed} |"
    told = f"`{claim.than}` {first}, `{claim.better}` {second}: {signed(difference.difference, difference.unit)}"
    yield f"| measured, {claim.measure} | {told} |"
    for test in difference.tests:
        low, high = bounds_texts(test.interval, difference.unit)
        yield f"| over {test.count:,} {test.over} | {low} .. {high}, p {test.p_text()} |"
    if claim.explains:
        yield f"| what could explain a difference | {claim.explains} |"


def _leaders(measured: Measured) -> Iterator[str]:
    """For each point of the grid: the highest mean of each drawn number, and the systems not told apart from it."""
    yield from (
        "",
        "## What led",
        "",
        "The system with the highest mean, and those that the rule of a verdict does not tell apart from it. A leader"
        " is named after its numbers were seen, which flatters it.",
        "",
        "| among | by | highest mean | not told apart from it |",
        "| --- | --- | --- | --- |",
    )
    results = measured.results
    for point in dict.fromkeys(name.partition("/")[2] for name in results):
        own = {name: runs for name, runs in results.items() if name.partition("/")[2] == point}
        for number in measured.drawn:
            means = {name: mean(_values(runs, number)) for name, runs in own.items()}
            leader = max(means, key=means.__getitem__)
            against = [StudyClaim(one, "", leader, one, number) for one in own if one != leader]
            alike = [f"`{one.claim.than}`" for one in judged_claims(against, own) if one.verdict == "does not show"]
            value = number_text(means[leader], _unit(own[leader], number))
            yield f"| {point or 'all'} | {COLUMNS[number]} | `{leader}` {value} | {', '.join(alike) or 'none'} |"


def _aim(claims: Sequence[JudgedClaim]) -> Iterator[str]:
    """Each part of the aim, whether it was reached, and what bounds those that were not."""
    yield from ("", "## The aim", "", "| aim | measured | reached |", "| --- | --- | --- |")
    missed = []
    for one in claims:
        claim, difference = one.claim, one.difference
        if claim.better != "best" or claim.than not in ("vsepp", "quick"):
            continue
        least = AIM if claim.than == "vsepp" else 0.0
        reached = one.verdict == "holds" and difference.difference >= least
        above = f"at least {least:.0f} above" if least else "above"
        told = signed(difference.difference, difference.unit)
        yield f"| {COLUMNS[claim.measure]} {above} `{claim.than}` | {told} | {'yes' if reached else 'no'} |"
        missed += [] if reached else [claim.measure]
    for measure in missed:
        yield from ("", BOUNDS[measure])


def _beside(recipe: Sequence[Sequence[Result]], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What takes more work for a query than the recipe; and, apart, what sees the other queries of the test."""
    columns = {name: head for name, head in COLUMNS.items() if all(name in row["numbers"] for row in rows)}
    alone = {name: mean(_values(recipe, name)) for name in columns}
    yield from (
        "",
        "## More work for a query",
        "",
        "What stands here is no part of the recipe, nor of its aim. `studies/beside_recipe.py` measures it with the"
        " five models; a row is their mean, but for the average, which is one ranking. `sam-cvse` is the preset"
        " `sam-cvse/flickr8k`, which has the highest rsum of the"
        " [models of regions](../../guide/models/region-results.md).",
    )
    for sees, told in (
        (False, "Each query is answered alone:"),
        (
            True,
            "The inverted softmax (Smith et al. 2017) lowers a candidate that is near to many of the test queries. No"
            " search has all its queries at hand, so that these numbers compare with no others:",
        ),
    ):
        yield from ("", told, "", f"| | {' | '.join(columns.values())} |", f"| --- |{' ---: |' * len(columns)}")
        of_kind = [(row["name"], row["numbers"]) for row in rows if row["sees other queries"] == sees]
        for name, numbers in [("the recipe alone", alone), *of_kind]:
            yield f"| {name} | {' | '.join(number_text(numbers[one], _unit(recipe, one)) for one in columns)} |"


def _chosen_from(searches: Sequence[Measured]) -> Iterator[str]:
    """The trainings that the recipe was chosen from."""
    hours = sum(one.seconds() for one in searches) / 3600
    yield from (
        "",
        "## How it was chosen",
        "",
        f"By the validation split, with one training each: {sum(len(one.runs) for one in searches)} trainings,"
        f" {hours:.1f} hours of a core. Taken was the highest rsum of those in the second table that lie above"
        " `quick` in every column by more than seeds differ.",
    )
    for one in searches:
        yield from ("", f"{one.study.about} `{one.name}.yaml` has the settings.", "")
        yield from _systems(one)


def _systems(measured: Measured) -> Iterator[str]:
    results = measured.results
    columns = {name: head for name, head in COLUMNS.items() if all(_values(own, name) for own in results.values())}
    yield f"| system | {' | '.join(columns.values())} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    for system, own in results.items():
        cells = []
        for name in columns:
            values, unit = _values(own, name), _unit(own, name)
            spread = f" ± {number_text(stdev(values), unit)}" if len(values) > 1 else ""
            cells.append(f"{number_text(mean(values), unit)}{spread}")
        yield f"| `{system}` | {' | '.join(cells)} |"


def _values(runs: Sequence[Sequence[Result]], name: str) -> list[float]:
    """A number of each run; empty where one lacks it."""
    found = [next((result[name] for result in run if name in result), None) for run in runs]
    return [] if None in found else [one for one in found if one is not None]


def _unit(runs: Sequence[Sequence[Result]], name: str) -> str:
    return next(result.units[name] for result in runs[0] if name in result)


def figure(measured: Measured) -> Figure:
    """The drawn numbers of every training: a row for each arm, a colour for each point of the grid."""
    results, names = measured.results, measured.drawn
    arms = list(dict.fromkeys(name.partition("/")[0] for name in results))
    points = list(dict.fromkeys(name.partition("/")[2] for name in results))
    drawn = Figure(figsize=(9.6, 1.0 + 0.3 * len(arms)), layout="constrained")
    panels = drawn.subplots(1, len(names), sharey=True)
    for panel, name in zip(panels, names, strict=True):
        panel.set_title(COLUMNS[name], fontsize=10)
        panel.grid(axis="x", alpha=0.3)
        panel.tick_params(labelsize=8)
        for system, runs in results.items():
            arm, _, point = system.partition("/")
            colour, place = COLOURS[points.index(point) % len(COLOURS)], arms.index(arm)
            values = _values(runs, name)
            panel.plot(values, [place] * len(values), "o", markersize=4, alpha=0.5, color=colour, markeredgewidth=0)
            panel.plot([mean(values)], [place], "|", markersize=12, color=colour, label=point)
    panels[0].set_yticks(range(len(arms)), arms, fontsize=9)
    panels[0].invert_yaxis()
    if points[1:]:
        handles, labels = panels[0].get_legend_handles_labels()
        of_labels = dict(zip(labels, handles, strict=True))
        drawn.legend(
            of_labels.values(), of_labels, loc="outside lower center", ncols=len(points), fontsize=9, frameon=False
        )
    return drawn


def main() -> None:
    """Write the pages and draw their figures."""
    mpl.rcParams.update({"svg.hashsalt": "rungwise", "svg.fonttype": "none", "font.family": "sans-serif"})
    studies = list(map(Measured.read, TITLES))
    for name, text in pages(studies).items():
        (PAGES / name).write_text(text, encoding="utf-8")
        print(f"written: {(PAGES / name).relative_to(ROOT)}", file=sys.stderr)
    for one in studies:
        figure(one).savefig(IMAGES / f"held-{one.name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
