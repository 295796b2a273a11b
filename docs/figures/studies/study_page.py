"""The page of a study: what led, its claims, all its systems, what was searched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from measured import COLUMNS, RECIPE, STUDIES, SUMMARY, TITLES, Measured, counted, systems_table, unit_of, values_of
from recipe import BESIDE, SEARCHES, aim, beside, chosen_from

from rungwise.evaluation.comparison import bounds_texts, signed
from rungwise.evaluation.statistics import number_text
from rungwise.runs.study import JudgedClaim, StudyClaim, judged_claims

SHUFFLED = "degrees-shuffled"
TOLD_APART = STUDIES / "told-apart.json"
"""How well degrees tell right captions from wrong ones, by told_apart.py."""

NOTES = {
    "losses-flickr8k": (
        "With `share=0.1` a tenth of the training pictures is used.",
        "Of `max`, `contrastive-max` and `sam`, the lowest margin tried was the best; lower ones were not tried. With"
        " `max` and `contrastive-max`, all others gave one and the same number: the hardest negative of such a batch is"
        " within each of these margins.",
    ),
    "claims-flickr8k": (
        "The image features are those of MobileNetV2, not of VGG19, and there are five epochs. VSE++ with fifteen"
        " epochs stands in [the recipe](recipe-flickr8k.md). Chance has a rsum of 3: where both systems of a claim have"
        " a low one, neither learned much, and the verdict says little.",
        "SCAN, CVSE and other models of regions, with and without SAM, were measured elsewhere:"
        " [their results](../../guide/models/region-results.md).",
    ),
    "degrees-one-caption": (
        "`masked` leaves captions that are alike out of the negatives. `soft-tfidf` and `soft-fitted` have targets that"
        " follow degrees, by tf-idf or by three sources weighed as people judge. `weighted` adds one right answer and"
        " targets by tf-idf.",
    ),
    SHUFFLED: (
        "The captions of training pictures alone are shuffled: those of validation and test stand beside their own"
        " pictures. Degrees come from the other captions of a picture, from those of the twenty pictures that look most"
        " alike, or from both. No caption vouches for itself: its degree to its own picture is what the others say. So"
        " the targets of a query follow the degrees alone, and the picture that it stands beside need not lead them.",
        "Of the target temperatures tried, the lowest is the best for all three. A lower one would change little:"
        " there, a target is nearly the one candidate that has the highest degree. `studies/README.md` says what a"
        " first search tried.",
    ),
    "degrees-scenes": (
        "The training pictures come in groups of 1, 5 or 25 that show the same things, and the test pictures in none."
        " `right-and-wrong` has one right answer. `exact` has the degrees that the scenes were made with, `noisy` these"
        " with noise of deviation 0.2, `words` those of tf-idf.",
        "The exact degrees also judge all systems, so that `exact` is trained on what it is measured by.",
    ),
}
"""What a page says of its study before its numbers."""


def study_page(measured: Measured, claims: Sequence[JudgedClaim]) -> Iterator[str]:
    """The lines of the page of a study."""
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
        f"{counted(measured)} systems with {len(study.seeds)} seeds each. A point is a training, a bar the mean of its"
        " seeds:",
        "",
        f"![{study.about.rstrip('.')}: every training of every system](../../images/held-{measured.name}.svg)",
    )
    for note in NOTES.get(measured.name, ()):
        yield from ("", note)
    if measured.name == SHUFFLED:
        yield from _told_apart(json.loads(TOLD_APART.read_text(encoding="utf-8")))
    if measured.name != RECIPE:
        yield from _leaders(measured)
    elif any(one.claim.better == "best" for one in claims):
        yield from aim(claims)
    yield from ("", "## The claims")
    judged = {one.claim.name for one in claims}
    if waiting := [one.name for one in study.claims if one.name not in judged]:
        yield from ("", f"Not measured yet: {'; '.join(waiting)}.")
    for one in claims:
        yield from _claim(one)
    yield from (
        "",
        "## All systems",
        "",
        "Mean and standard deviation over seeds, test split. NCS@10 (N) leaves the annotated answers out; of ECE, less"
        " is better:",
        "",
    )
    yield from systems_table(measured)
    if measured.name == RECIPE:
        yield from beside(measured.results["best"], **json.loads(BESIDE.read_text(encoding="utf-8")))
        yield from chosen_from(list(map(Measured.read, SEARCHES)))
    if measured.record.searches:
        yield from _searched(measured)


def _told_apart(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How well degrees tell right captions from wrong ones, before anything is trained."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    yield from (
        "",
        "## What degrees can tell",
        "",
        "`studies/told_apart.py` asks, without a training, how often a right caption has a higher degree to its picture"
        " than a wrong one has to the picture that it stands beside, in percent; 50 is a guess:",
        "",
        f"| captions that are wrong | {' | '.join(f'`{arm}`' for arm in arms)} |",
        f"| --- |{' ---: |' * len(arms)}",
    )
    for wrong in dict.fromkeys(row["wrong"] for row in rows):
        areas = [f"{row['AUC']:.1f}" for row in rows if row["wrong"] == wrong]
        yield f"| {wrong:.0f} % | {' | '.join(areas)} |"


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
            means = {name: mean(values_of(runs, number)) for name, runs in own.items()}
            leader = max(means, key=means.__getitem__)
            against = [StudyClaim(one, "", leader, one, number) for one in own if one != leader]
            alike = [one.claim.than for one in judged_claims(against, own) if one.verdict == "does not show"]
            first, *others = (f"`{name.partition('/')[0]}`" for name in [leader, *alike])
            value = number_text(means[leader], unit_of(own[leader], number))
            yield f"| {point or 'all'} | {COLUMNS[number]} | {first} {value} | {', '.join(others) or 'none'} |"


def _searched(measured: Measured) -> Iterator[str]:
    """What the trials of each search gave, and what was chosen."""
    search = measured.study.search
    assert search is not None
    fixed = ", ".join(f"`{setting}: {value}`" for setting, value in search.fixed.items())
    yield from (
        "",
        "## What was searched",
        "",
        f"On validation, by {search.measure}{f', with {fixed}' if fixed else ''}. Trials draw their settings, and may"
        " draw one twice:",
        "",
        f"| system | trials | different settings | {search.measure} of the trials | chosen |",
        "| --- | ---: | ---: | ---: | --- |",
    )
    for name, found in measured.record.searches.items():
        values = [trial.value for trial in found.trials]
        cells = (
            name,
            len(values),
            len({str(trial.values) for trial in found.trials}),
            f"{min(values):.1f} .. {max(values):.1f}",
            ", ".join(f"`{setting}: {value}`" for setting, value in found.values.items()),
        )
        yield f"| {' | '.join(map(str, cells))} |"
