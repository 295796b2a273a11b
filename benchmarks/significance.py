"""How often the tests of ``rungwise compare`` err, and how often they find a difference that there is.

Results are simulated, so that the difference is known. A query of a system is right where the sum of these is above 0:
the system's ability, how easy the picture is (the same for all systems), how well the picture suits the system (the
same for all its seeds), what the seed gave (the same for all pictures), and noise. Every simulation draws new pictures
and new seeds, and is compared by the program itself.

    python benchmarks/significance.py --simulations 2000

Printed are, for each number of seeds, the percentages of simulations in which a difference is shown: by pictures alone,
by seeds alone, and by both, which is what the program calls better or worse. Where there is no difference, at most 5
are wanted.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from rungwise.evaluation import Comparison, Provenance, Result, System, compare, evaluate
from rungwise.evaluation.statistics import interval_of, wilson

NAME = "t2i/R@1"


@dataclass(frozen=True)
class World:
    """Sizes of what differs between results, in units of the noise of a query.

    Attributes:
        name: What is simulated, for the table.
        points: Difference of R@1 in percentage points between the last system and all others, which are equal.
        suits: Deviation of how well a picture suits a system.
        seeds: Deviation of what a seed gives.
    """

    name: str
    points: float
    suits: float
    seeds: float


WORLDS = (
    World("no difference, seeds alike", 0, 0.5, 0.0),
    World("no difference, pictures alike", 0, 0.0, 0.06),
    World("no difference, both vary", 0, 0.5, 0.06),
    World("2 points, both vary", 2, 0.5, 0.06),
    World("4 points, both vary", 4, 0.5, 0.06),
    World("8 points, both vary", 8, 0.5, 0.06),
)


def systems(template: Result, world: World, count: int, seeds: int, generator: np.random.Generator) -> list[System]:
    """Simulated systems, of which the last differs from all others."""
    pictures = len(template.per_query(NAME))
    spread = np.sqrt(1 + 1 + world.suits**2 + world.seeds**2)  # noise, picture, suits, seed
    ability = stats.norm.ppf([0.4, 0.4 + world.points / 100]) * spread
    easy = generator.normal(size=pictures)
    found = []
    for number in range(count):
        suits = world.suits * generator.normal(size=pictures)
        own = ability[int(number == count - 1)]
        results = []
        for seed in range(seeds):
            score = own + easy + suits + world.seeds * generator.normal() + generator.normal(size=pictures)
            values = 100.0 * (score > 0)
            results.append(
                replace(template, numbers={NAME: float(values.mean())}, seed=seed, _per_query={NAME: values})
            )
        found.append(System(chr(ord("a") + number), tuple(results)))
    return found


def shown(found: Comparison) -> dict[str, list[bool]]:
    """For each difference whether each test shows it alone, without Holm's correction, and what the program says."""
    rows: dict[str, list[bool]] = {"pictures": [], "seeds": [], "verdict": []}
    for one in found.differences:
        for test in one.tests:
            rows[test.over].append(replace(test, p_holm=test.p).shows(found.level))
        rows["verdict"].append(one.verdict != "no difference shown")
    return rows


def two_systems(template: Result, asked: argparse.Namespace) -> None:
    """Print how often a difference of two systems is shown."""
    print(f"{'two systems':<32}{'seeds':>6}{'pictures':>10}{'seeds':>8}{'both':>8}")
    for world in WORLDS:
        for seeds in (1, 3, 5, 10):
            rates: dict[str, list[bool]] = {"pictures": [], "seeds": [], "verdict": []}
            for number in range(asked.simulations):
                given = systems(template, world, 2, seeds, np.random.default_rng([number, seeds]))
                for name, values in shown(compare(given, [NAME], draws=asked.draws, seed=number)).items():
                    rates[name] += values
            cells = [f"{100 * np.mean(own):.1f}" if own else "-" for own in rates.values()]
            print(f"{world.name:<32}{seeds:>6}{cells[0]:>10}{cells[1]:>8}{cells[2]:>8}", flush=True)


def several_systems(template: Result, asked: argparse.Namespace) -> None:
    """Print how often any difference of equal systems is shown, without and with Holm's correction."""
    pairs = asked.systems * (asked.systems - 1) // 2
    print(f"\n{asked.systems} equal systems, any of their {pairs} differences shown:")
    print(f"{'':<32}{'seeds':>6}{'without Holm':>14}{'as said':>10}")
    for seeds in (1, 3, 5, 10):
        without, said = [], []
        for number in range(asked.simulations):
            given = systems(template, WORLDS[0], asked.systems, seeds, np.random.default_rng([number, seeds, 7]))
            found = compare(given, [NAME], pairs="all", draws=max(asked.draws, 80 * pairs), seed=number)
            without.append(
                any(
                    all(replace(test, p_holm=test.p).shows(found.level) for test in one.tests)
                    for one in found.differences
                )
            )
            said.append(any(shown(found)["verdict"]))
        rates = f"{100 * np.mean(without):>14.1f}{100 * np.mean(said):>10.1f}"
        print(f"{WORLDS[0].name:<32}{seeds:>6}{rates}", flush=True)


def shares(template: Result, asked: argparse.Namespace) -> None:
    """Print how often intervals of small shares hold the true one."""
    print("\nintervals of a share of 100 pictures that hold the true share, percent:")
    for share in (0.002, 0.01, 0.05):
        generator = np.random.default_rng(0)
        inside = []
        for _ in range(asked.simulations):
            right = 100.0 * (generator.random(100) < share)
            percentile = interval_of(right[generator.integers(0, 100, (asked.draws, 100))].mean(axis=1))
            same = right.min() == right.max()
            ours = [100 * bound for bound in wilson(right.mean() / 100, 100)] if same else percentile
            inside.append([low <= 100 * share <= high for low, high in (percentile, ours)])
        before, now = 100 * np.mean(inside, axis=0)
        print(f"  true share {100 * share:.1f} %: bootstrap alone {before:.1f}, with Wilson's at 0 and 100 {now:.1f}")


PARTS = {"two": two_systems, "several": several_systems, "shares": shares}


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--pictures", type=int, default=300)
    parser.add_argument("--draws", type=int, default=200, help="Of the bootstrap in each comparison.")
    parser.add_argument("--systems", type=int, default=4, help="For the correction over several systems.")
    asked = parser.parse_args()
    ids = [str(number) for number in range(asked.pictures)]
    template = evaluate(
        similarity=np.eye(asked.pictures),
        image_of_caption=range(asked.pictures),
        measures=["R@1"],
        provenance=Provenance(data_hash="simulated", image_ids=ids, caption_ids=ids),
    )
    begun = time.perf_counter()
    print(f"{asked.simulations} simulations, {asked.pictures} pictures, {asked.draws} draws; percent shown at 95 %")
    for part in asked.parts:
        PARTS[part](template, asked)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
