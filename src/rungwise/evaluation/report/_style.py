"""Style sheet of a report, added to that of every page."""

from __future__ import annotations

from rungwise.evaluation.report._plots import mark_style

RUNG_COLOURS = ("#0f766e", "#2fa36b", "#d9a300", "#d9722e", "#8b8f98")
"""From the most relevant rung to the least; legible on light and on dark pages."""

STYLE = (
    mark_style()
    + "".join(f".r{number} {{ --rung: {colour} }}" for number, colour in enumerate(RUNG_COLOURS))
    + """ .r-none { --rung: var(--line) }
.legend { color: var(--soft); font-size: .85rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th { font-weight: 600; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1.2rem; }
.plots > *, .pair-card > div { min-width: 0; } p { overflow-wrap: anywhere; }
figure { margin: 0; } figcaption { font-weight: 600; } figure svg { width: 100%; max-width: 34rem; height: auto; }
.legend span { margin-right: 1rem; display: inline-block; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em;
  background: var(--soft); }
.key.none { background: none; border: 1px solid var(--line); }
.key.annotated { background: none; outline: 2px solid var(--a); }
.key.own { background: color-mix(in srgb, var(--a) 50%, var(--page)); outline: 1px solid var(--a); }
.key.other { background: color-mix(in srgb, var(--b) 50%, var(--page)); }
.key.best { background: none; border: 2px dashed var(--ink); border-radius: 0; } .key.faded { background: #8b8b8b; }
figure .swatch { width: 22px; height: 10px; margin-right: .35em; display: inline-block; }
.save { font-size: .8rem; margin: .15rem 0; } .save a { color: var(--a); margin-right: .8rem; }
.facts { display: grid; grid-template-columns: minmax(7rem, max-content) minmax(0, 1fr); gap: .2rem 1rem;
  margin: .5rem 0; }
.facts dt { font-weight: 600; max-width: 15rem; overflow-wrap: anywhere; }
.facts dd { margin: 0; overflow-wrap: anywhere; } .facts code, pre { font-size: .85em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); padding: .7rem; border-radius: 6px; }
@media (max-width: 35rem) {
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; } .facts dd { margin-bottom: .4rem; }
}
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1rem; }
.query, .pair-card { display: flex; gap: .7rem; align-items: flex-start; } .query > div { min-width: 0; }
.query img, .pair-card img { max-width: 5.5rem; }
article ol { margin: .4rem 0 0; padding: 0; list-style: none; }
article li { display: flex; gap: .6rem; align-items: center; justify-content: space-between; padding: .2rem 0;
  border-top: 1px solid var(--line); }
article li img { max-width: 3.5rem; } article li span:first-child { min-width: 0; overflow-wrap: anywhere; }
li small { text-align: right; white-space: nowrap; }
.right { color: var(--a); }
.rung { border-left: .7em solid var(--rung); padding-left: .35em; }
.key.rung { border: 0; padding: 0; background: var(--rung); }
.pair { margin: 1rem 0; } .model { font-weight: 600; margin-top: .5rem; }
.strip { display: grid; grid-template-columns: repeat(auto-fill, minmax(2.3rem, 1fr)); gap: 3px; padding: 0; margin: 0;
  list-style: none; }
.strip li { border-top: 6px solid var(--rung); min-width: 0; } .strip img { border-radius: 0; width: 100%; }
.strip span { display: block; text-align: center; font-size: .8rem; background: var(--card); padding: .2rem 0; }
.strip .annotated { outline: 2px solid var(--a); }
section > h3 { margin-top: 1.2rem; } .tall { max-height: min(40rem, 85vh); overflow: auto; }
.tall thead th { position: sticky; top: 0; background: var(--page); }
.heat { border-collapse: separate; border-spacing: 0; font-size: .85rem; margin: .5rem 0; }
.heat th, .heat td { padding: .2rem .35rem; border: 0; background: var(--page); }
.heat thead th { position: sticky; top: 0; vertical-align: bottom; z-index: 1; }
.heat thead th span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 9rem; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; text-align: left; }
.heat th:first-child { position: sticky; left: 0; max-width: min(11rem, 30vw); overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; }
.heat thead th:first-child { z-index: 2; }
.heat td { min-width: 2.1rem; text-align: center; border: 1px solid var(--page);
  background: color-mix(in srgb, var(--b) calc(var(--p, 0) * .5%), var(--page)); }
.heat .own { background: color-mix(in srgb, var(--a) calc(var(--p, 0) * .5%), var(--page));
  border-color: var(--a); font-weight: 600; }
.heat .count, .heat tfoot td, .heat tfoot th { color: var(--soft); }
.heat tfoot td, .heat tfoot th { border-top: 1px solid var(--line); }
.confusion { display: flex; flex-wrap: wrap; gap: .5rem 2rem; align-items: flex-start; }
.confusion > div { max-width: 100%; min-width: 0; } .confusion > :last-child { flex: 1 1 22rem; min-width: 0; }
.reasons { display: grid; gap: 1rem; }
.words-found { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 11rem), 1fr)); gap: .8rem;
  margin-top: .5rem; }
.words-found > ul, .words-found > .note { grid-column: 1 / -1; margin: 0; padding-left: 1.2rem; }
.words-found li { display: list-item; border: 0; } .words-found li small { text-align: left; white-space: normal; }
.seen { position: relative; overflow: hidden; } .seen img { width: 100%; border-radius: 0; }
figure .seen .veil { position: absolute; inset: 0; max-width: none;
  width: calc(100% + 1px); height: calc(100% + 1px); } /* no bright edge where a pixel is rounded */
figcaption small { font-weight: 400; }
/* Grey, since white skies and black coats are to be told from what fades. */
.veil rect, .veil path { fill: #8b8b8b; shape-rendering: crispEdges; }
.veil .best { fill: none; stroke: #000; stroke-width: 3; vector-effect: non-scaling-stroke; stroke-dasharray: 4 3; }
.words { columns: 22rem; column-gap: 2rem; padding-left: 1.2rem; margin: .3rem 0 1rem; }
.words li { break-inside: avoid; overflow-wrap: anywhere; }
"""
)
"""A candidate's rung is its class ``r0``, ``r1``, ... or ``r-none``."""
