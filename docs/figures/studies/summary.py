"""The page that has all claims with their verdicts, and says where degrees help."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from measured import COLUMNS, MEASURES, RECIPE, TITLES, Measured, counted, unit_of, values_of

from rungwise.evaluation.comparison import signed
from rungwise.runs.study import JudgedClaim, StudyClaim, judged_claims

SCENES = "degrees-scenes"
"""The study of generated pictures; all others are of photos."""

DEGREES = {
    "losses-flickr8k": r"(ladder|sam|soft|weighted).*",
    "claims-flickr8k": r"(ladder|sam).*",
    "degrees-one-caption": r".*",
    "degrees-shuffled": r".*",
    SCENES: r".*",
    "recipe-flickr8k": r".* than without-degrees",
}
"""Claims about degrees: what matches the system said to be better, the word `than`, and the other system."""

VERDICTS = ("holds", "does not show", "contradicted here")
"""Verdicts, in the order in which they are counted."""


def summary(studies: Sequence[Measured], claims: Mapping[str, Sequence[JudgedClaim]]) -> Iterator[str]:
    """The lines of the summary."""
    every = [one for own in claims.values() for one in own]
    waiting = sum(len(one.study.claims) for one in studies) - len(every)
    told = f"{len(every)} of {len(every) + waiting} claims are measured so far" if waiting else f"{len(every)} claims"
    of_all = Counter[str](one.verdict for one in every)
    of_papers = Counter[str](one.verdict for one in every if not one.claim.source.startswith("rungwise"))
    yield from (
        "# What holds up",
        "",
        "This page says which claims about losses and degrees of relevance hold on the same photos, captions and seeds,"
        " and which do not. All else is the same, too, unless a page says so.",
        "",
        f"{told}: {_told_verdicts(of_all)}",
        "",
        f"Of these, {of_papers.total()} test what a paper says: {_told_verdicts(of_papers)} The others are our own.",
    )
    yield from _degrees(studies)
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
        "The measure of each claim was written into the file of the study before its systems were tested. The recipe"
        " was tested twice: [how](recipe-flickr8k.md#how-it-was-chosen). A claim *holds* where the 95 %"
        " interval of the difference lies above 0 over pictures (bootstrap) and over seeds (Student's t"
        " of paired differences), and both p-values, with Holm's correction for all claims of a study, are below .05."
        " It is *contradicted here* where both lie below 0. Else it *does not show*, which is no proof that there is"
        " nothing. A p-value on a page is corrected, its interval is not; `≤` says that the number of draws bounds it."
        " All other numbers are descriptive.",
        "",
        "`python docs/figures/studies` makes this page and those of the studies from the files in `studies/`;"
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
            counted(measured),
            f"{trials + sum(map(len, measured.runs.values()))}, {trials} of them trials",
            f"{measured.seconds() / 3600:.1f}",
            "; ".join(measured.machines()),
        )
        yield f"| {' | '.join(cells)} |"


def _told_verdicts(counts: Counter[str]) -> str:
    hold, unclear, turned = (counts[word] for word in VERDICTS)
    return f"{hold} hold, {unclear} do not show, {turned} are contradicted here."


def _degrees(studies: Sequence[Measured]) -> Iterator[str]:
    """Where degrees help: verdicts by study and by measure, and what they change in the recipe."""
    asked = {one.name: [claim for claim in one.study.claims if _is_of_degrees(one.name, claim)] for one in studies}
    found = {(one.name, name): _verdicts_by(name, asked[one.name], one) for one in studies for name in MEASURES}
    photos = [name for name in asked if name != SCENES]
    told = []
    for measure in MEASURES:
        together = sum((found[name, measure] for name in photos), Counter[str]())
        told.append(f"by {COLUMNS[measure]} in {together['holds']} and harm in {together['contradicted here']}")
    yield from (
        "",
        "## Do degrees help?",
        "",
        "Each comparison is of a training that uses degrees of relevance and one that has one right answer alone. Of"
        f" {sum(len(asked[name]) for name in photos)} comparisons with photos, degrees help {'; '.join(told)}.",
        "",
        "A cell counts the comparisons where degrees help, are not shown to change anything, and harm, by the measure"
        " of its column and the rule below:",
        "",
        f"| where | of | {' | '.join(COLUMNS[name] for name in MEASURES)} |",
        f"| --- | ---: |{' --- |' * len(MEASURES)}",
    )
    for name, claims in asked.items():
        counts = [found[name, measure] for measure in MEASURES]
        cells = ["/".join(str(own[word]) for word in VERDICTS) if own else "-" for own in counts]
        yield f"| [{TITLES[name]}]({name}.md) | {len(claims)} | {' | '.join(cells)} |"
    yield from (
        "",
        "Each comparison is a claim by one of these measures, which its page names; the other cells are descriptive."
        " The degrees of a measure come from scene graphs of the captions; those of people's AP from people; those of"
        " the generated scenes are exact.",
        "",
        _in_the_recipe(next(one for one in studies if one.name == RECIPE)),
    )


def _is_of_degrees(study: str, claim: StudyClaim) -> bool:
    return re.fullmatch(DEGREES[study], f"{claim.better} than {claim.than}") is not None


def _verdicts_by(measure: str, claims: Sequence[StudyClaim], study: Measured) -> Counter[str]:
    """How many of the claims hold, do not show and are contradicted by one measure."""
    return Counter(
        one.verdict for one in judged_claims([replace(one, measure=measure) for one in claims], study.results)
    )


def _in_the_recipe(recipe: Measured) -> str:
    """What degrees change in the recipe, by every measure of claims."""
    having, lacking = recipe.results["best"], recipe.results["without-degrees"]
    claimed = ", ".join(COLUMNS[one.measure] for one in recipe.study.claims if one.than == "without-degrees")
    changes = ", ".join(
        f"{head} {signed(mean(values_of(having, name)) - mean(values_of(lacking, name)), unit_of(having, name))}"
        for name, head in COLUMNS.items()
        if name in MEASURES
    )
    return (
        f"In [the recipe]({recipe.name}.md), a loss that follows degrees changes, beside one right answer: {changes}."
        f" Of these, {claimed} is a claim; the others are descriptive."
    )
