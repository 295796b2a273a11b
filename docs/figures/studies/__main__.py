"""Writes the pages of docs/explanation/held/ from the files of studies that lie in studies/; nothing is trained.

what-holds-up.md says of every claim whether it holds; a page for each study shows its numbers.

Run it after a study was run or changed: python docs/figures/studies
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import matplotlib as mpl
from drawn import figure
from measured import ROOT, SUMMARY, TITLES, Measured
from study_page import study_page
from summary import summary

PAGES = ROOT / "docs" / "explanation" / "held"
IMAGES = ROOT / "docs" / "images"


def pages(studies: Sequence[Measured]) -> dict[str, str]:
    """The pages as Markdown: the summary, and one for each study, by the names of their files."""
    claims = {study.name: study.claims() for study in studies}
    made = {SUMMARY: summary(studies, claims), **{one.name: study_page(one, claims[one.name]) for one in studies}}
    return {f"{name}.md": "\n".join(lines) + "\n" for name, lines in made.items()}


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
