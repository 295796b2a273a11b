"""The frame and the looks of a report."""

from __future__ import annotations

RUNG_COLOURS = ("#0f766e", "#2fa36b", "#d9a300", "#d9722e", "#8b8f98")
"""From the most relevant rung to the least; legible on light and on dark pages."""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --page: #fff; --ink: #1d2129; --soft: #5b6270; --line: #d9dce2; --card: #f6f7f9; --a: #2563b0; --b: #c2571a; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #14171c; --ink: #e6e8ec; --soft: #a0a7b4; --line: #343a45; --card: #1d2229; --a: #6ea8ee;
    --b: #f0955a; }}
}}
{rungs} .r-none {{ --rung: var(--line) }}
* {{ box-sizing: border-box; }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 80rem; padding: 1rem; color: var(--ink);
  background: var(--page); }}
h1 {{ font-size: 1.4rem; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; }}
h3 {{ font-size: 1rem; margin: 0; overflow-wrap: anywhere; }}
p {{ margin: .2rem 0; }} .note, small, .legend {{ color: var(--soft); font-size: .85rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }}
th {{ font-weight: 600; }} th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
.plots {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: 1.2rem; }}
figure {{ margin: 0; }} figcaption {{ font-weight: 600; }} figure svg {{ width: 100%; max-width: 34rem; height: auto; }}
svg text {{ font-size: 11px; fill: var(--soft); }} svg .label {{ fill: var(--ink); }}
.grid {{ stroke: var(--line); stroke-width: 1; }} .axis {{ stroke: var(--soft); }}
.s0 {{ --ink-s: var(--a); }} .s1 {{ --ink-s: var(--b); }}
polyline {{ fill: none; stroke: var(--ink-s); stroke-width: 2; }} rect, circle {{ fill: var(--ink-s); }}
circle {{ opacity: .6; }} g.s0 line {{ stroke: var(--ink-s); }} g.s0 .median {{ stroke: var(--ink); stroke-width: 2; }}
.box {{ fill-opacity: .35; stroke: var(--ink-s); }}
.legend span {{ margin-right: 1rem; white-space: nowrap; }}
.key {{ display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em;
  background: var(--ink-s); }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1rem; }}
article {{ background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .7rem; min-width: 0; }}
.query, .pair-card {{ display: flex; gap: .7rem; align-items: flex-start; }} .query > div {{ min-width: 0; }}
img {{ display: block; max-width: 100%; border-radius: 4px; }} .query img, .pair-card img {{ max-width: 5.5rem; }}
article ol {{ margin: .4rem 0 0; padding: 0; list-style: none; }}
article li {{ display: flex; gap: .6rem; align-items: center; justify-content: space-between; padding: .2rem 0;
  border-top: 1px solid var(--line); }}
article li img {{ max-width: 3.5rem; }} article li span:first-child {{ min-width: 0; overflow-wrap: anywhere; }}
li small {{ text-align: right; white-space: nowrap; }}
.right {{ color: var(--a); }} .missing {{ color: var(--b); }}
.rung {{ border-left: .7em solid var(--rung); padding-left: .35em; }}
.key.rung {{ border: 0; padding: 0; background: var(--rung); }}
.pair {{ margin: 1rem 0; }} .model {{ font-weight: 600; margin-top: .5rem; }}
.strip {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(2.3rem, 1fr)); gap: 3px; padding: 0; margin: 0;
  list-style: none; }}
.strip li {{ border-top: 6px solid var(--rung); min-width: 0; }} .strip img {{ border-radius: 0; width: 100%; }}
.strip span {{ display: block; text-align: center; font-size: .8rem; background: var(--card); padding: .2rem 0; }}
.strip .annotated {{ outline: 2px solid var(--a); }}
</style></head><body>
<h1>{title}</h1>
{sections}
</body></html>
"""
