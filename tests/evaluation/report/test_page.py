"""Also tests rungwise.evaluation.report._style and rungwise.evaluation.report._parts."""

import base64
import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import (
    Provenance,
    RankedLists,
    diagnose,
    evaluate,
    find_false_negatives,
    published_beside,
    report_page,
)
from rungwise.evaluation.analysis import _diagnostics as diagnostics
from rungwise.evaluation.report import _plots as plots
from rungwise.scenes import SceneConfig, SceneRelevance, generate


class Strict(HTMLParser):
    """Every tag is closed in order, and nothing refers to another file."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        for name, value in attributes:
            assert name not in ("srcset", "data", "action"), (tag, name)
            if name == "href":
                assert tag == "a"
                assert dict(attributes)["download"]
                assert value.startswith(("data:image/svg+xml;base64,", "data:text/csv;charset=utf-8;base64,")), value[
                    :80
                ]
            assert name != "src" or value.startswith("data:image/jpeg;base64,"), value[:80]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(page):
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    assert "script" not in parser.seen
    assert "url(" not in page
    assert "@import" not in page
    return parser


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    data = generate(folder, SceneConfig(pictures=40, captions_per_picture=2, side=32))
    return data, SceneRelevance.load(folder, data)


def report(data, relevance, scores, **more):
    result = evaluate(**scores, image_of_caption=data.image_of_caption, relevance=relevance, measures=["R@1", "CS@10"])
    found = diagnose(scores, data, relevance=relevance)
    wrong = [one for lists in found.lists.values() for one in find_false_negatives(lists)]
    return report_page(result, found, false_negatives=wrong, **more), found, wrong


def noisy(relevance, seed=0):
    matrix = relevance.dense()
    return {"similarity": matrix + np.random.default_rng(seed).standard_normal(matrix.shape) / 5}


def test_a_full_report_stands_alone_and_shows_everything(scenes):
    data, relevance = scenes
    other = diagnose(noisy(relevance, 1), data, relevance=relevance)
    page, _found, wrong = report(data, relevance, noisy(relevance), beside=other, names=("mine", "theirs"))
    parser = checked(page)
    assert len(wrong) > 0
    for heading in ("Numbers", "Plots", "By rung", "Two models side by side", "Best queries", "Worst queries"):
        assert f"<h2>{heading}</h2>" in page
    assert "<h2>Most disputed queries</h2>" in page
    assert "<h2>False negatives of the annotation</h2>" in page
    assert page.count("<figure>") == page.count('role="img"') == 7  # the modality gap needs embeddings
    strips = re.findall(r"<ol class=strip>(.*?)</ol>", page)
    assert len(strips) == 6
    assert all(strip.count("<li") == 30 for strip in strips)
    assert {"mine", "theirs"} <= set(re.findall(r"<p class=model>(.*?)</p>", page))
    assert parser.seen.count("img") > 50


def test_the_strip_marks_candidates_by_their_rung(scenes):
    data, relevance = scenes
    page, found, _ = report(
        data, relevance, noisy(relevance), beside=diagnose(noisy(relevance, 1), data, relevance=relevance)
    )
    first, *_ = re.findall(r"<ol class=strip>(.*?)</ol>", page)
    cells = re.findall(r'<li class="(r\d)[^"]*" title="(\d+)\. [^"]*, degree ([\d.]+)"', first)
    assert [int(place) for _, place, _ in cells] == list(range(1, 31))
    for colour, _, degree in cells:
        rung = sum(float(degree) < cut - 1e-3 for cut in found.thresholds)
        assert colour == ("r4" if rung == len(found.thresholds) else f"r{rung}")


def test_markup_in_captions_ids_and_names_is_text():
    nasty = '"><script>alert(1)</script>'
    data = ImageCaptions(("a" + nasty, "b"), (nasty, "dog"), np.array([0, 1]), name=nasty)
    relevance = np.array([[1.0, 0.5], [0.7, 1.0]])
    scores = {"similarity": np.array([[0.1, 0.9], [0.8, 0.2]])}
    result = evaluate(**scores, image_of_caption=[0, 1], provenance=Provenance(data_name=nasty))
    found = diagnose(scores, data, relevance=relevance)
    page = report_page(result, found, beside=found, names=(nasty, nasty))
    checked(page)
    assert "&lt;script&gt;" in page


def test_a_picture_that_cannot_be_read_is_said_in_its_place(tmp_path):
    data = ImageCaptions(
        ("a", "b"), ("a dog", "a cat"), np.array([0, 1]), paths=(tmp_path / "a.jpg", Path(tmp_path / "b.jpg"))
    )
    scores = {"similarity": np.eye(2)}
    page = report_page(evaluate(**scores, image_of_caption=[0, 1]), diagnose(scores, data))
    assert "class=missing" in page
    assert "a.jpg" in page


def test_every_kind_of_input_makes_a_page(scenes):
    data, relevance = scenes
    generator = np.random.default_rng(0)
    vectors = {
        "image_embeddings": generator.standard_normal((40, 5)),
        "text_embeddings": generator.standard_normal((80, 5)),
    }
    checked(report(data, relevance, vectors)[0])
    bare = ImageCaptions(("a", "b"), ("c0", "c1"), np.array([0, 1]))
    for scores in (
        {"similarity": np.eye(2)},
        {"similarity": np.zeros((2, 2))},
        {"image_embeddings": np.ones((2, 1)), "text_embeddings": np.ones((2, 1))},
        {"similarity": RankedLists({"i2t": [[0], [1]]}, (2, 2))},
        {"similarity": RankedLists({"t2i": [[0, 1], [1, 0]]}, (2, 2))},
    ):
        result = evaluate(**scores, image_of_caption=[0, 1], measures=["R@1"])
        checked(report_page(result, diagnose(scores, bare), has_texts=False))


def test_a_page_of_short_lists_says_nothing_of_what_they_do_not_name():
    owners = np.arange(60).repeat(2)
    texts = tuple("x" * (1 + n % 9) for n in range(120))
    data = ImageCaptions(tuple(map(str, range(60))), texts, owners, tuple(map(str, range(120))))
    generator = np.random.default_rng(0)
    lists = {"i2t": [generator.permutation(120)[:5] for _ in range(60)]}
    lists["t2i"] = [generator.permutation(60)[:5] for _ in range(120)]
    scores = {"similarity": RankedLists(lists, (60, 120))}
    result = evaluate(**scores, image_of_caption=owners, measures=["R@5"])
    found = diagnose(scores, data, relevance=generator.random((60, 120)))
    wrong = [one for lists in found.lists.values() for one in find_false_negatives(lists, right_from=0.5)]
    page = report_page(result, found, false_negatives=wrong, beside=found)
    checked(page)
    assert "no right candidate among the 5 that are listed" in page
    assert "not listed: " in page
    assert all(int(rank) <= 5 for rank in re.findall(r"rank (\d+)", page))
    assert not re.search(r"\bS -?\d|nan|inf\b", page)
    assert "R@1 by caption length" in page
    assert "R@10" not in page
    assert "<h2>By rung</h2>" not in page
    assert all(strip.count("<li") == 5 for strip in re.findall(r"<ol class=strip>(.*?)</ol>", page))
    curve = re.search(r"<figcaption>Recall curve.*?</figure>", page, re.DOTALL)[0].partition('role="img"')[2]
    shown = re.findall(r'<polyline class="s\d" points="([^"]*)"', curve)
    ends = [float(points.split()[-1].split(",")[1]) for points in shown]
    bottom, top = plots.HEIGHT - plots.BOTTOM, plots.TOP
    wanted = [bottom - result[f"{way}/R@5"] / 100 * (bottom - top) for way in ("i2t", "t2i")]
    assert ends == pytest.approx(wanted, abs=0.06)


def test_published_rows_stand_beside_with_their_source():
    owners = np.arange(1000).repeat(5)
    data = ImageCaptions(tuple(map(str, range(1000))), ("c",) * 5000, owners, tuple(map(str, range(5000))))
    scores = {"similarity": np.eye(1000, dtype=np.float32)[:, owners]}
    result = evaluate(**scores, image_of_caption=owners, protocol="flickr30k-1k")
    page = report_page(result, diagnose(scores, data), published=published_beside(result, "vsepp"))
    checked(page)
    assert "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives" in page


def test_two_models_must_rank_the_same_queries(scenes):
    data, relevance = scenes
    part = data.select(range(20))
    other = diagnose({"similarity": np.eye(20).repeat(2, axis=1)}, part)
    with pytest.raises(UserError, match="rank 80 and 40 queries; give the same data to both"):
        report(data, relevance, noisy(relevance), beside=other)


def files_of(page, kind):
    """Title and content of each file that a page lets people save."""
    links = re.findall(rf'<a download="([^"]*)" href="data:{kind};base64,([^"]*)" aria-label="([^"]*)"', page)
    return [(name, base64.b64decode(data).decode(), label) for name, data, label in links]


def test_each_figure_is_saved_as_svg_and_each_table_as_csv(scenes):
    data, relevance = scenes
    page, *_ = report(data, relevance, noisy(relevance))
    figures = files_of(page, r"image/svg\+xml")
    titles = re.findall(r"<figcaption>([^<]*)</figcaption>", page)
    assert [label for _, _, label in figures] == [f"{title} as SVG" for title in titles]
    for name, content, _ in figures:
        assert re.fullmatch(r"[a-z0-9-]+\.svg", name)
        ElementTree.fromstring(content)
    assert len({name for name, *_ in figures}) == len(figures)
    tables = [
        [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", one)]
        for one in re.findall(r"<table>.*?</table>", page)
    ]
    saved = [list(csv.reader(io.StringIO(content))) for _, content, _ in files_of(page, "text/csv;charset=utf-8")]
    assert len(tables) == 2
    assert saved == [[[cell.replace("\u00a0", " ") for cell in row] for row in one] for one in tables]


COLOURED = {"s0", "s1", "band", "chance", "ideal", "bar", "box", "median", "whisker", "dots", "right", "annotated"}
COLOURED |= {"own", "best", "r-none", *(f"r{number}" for number in range(5))}


@pytest.mark.parametrize("thresholds", [(), (0.9,)])
def test_every_class_with_a_colour_is_in_a_legend_of_its_section(scenes, thresholds):
    data, relevance = scenes
    scores = noisy(relevance)
    gaps = relevance.dense()
    gaps[::3, ::4] = np.nan
    other = diagnose(noisy(relevance, 1), data, relevance=gaps, thresholds=thresholds)
    found = diagnose(scores, data, relevance=gaps, thresholds=thresholds)
    result = evaluate(**scores, image_of_caption=data.image_of_caption, measures=["R@1"])
    pages = [report_page(result, found, beside=other), report(data, relevance, scores)[0]]
    seen = set()
    for page in pages:
        for part in re.findall(r"<section>.*?</section>", page, re.DOTALL):
            legends = "".join(re.findall(r"<p class=legend>.*?</p>", part))
            rest = re.sub(r"<p class=legend>.*?</p>", "", part)
            for mark in classes_of(rest) & COLOURED:
                assert mark in classes_of(legends), (mark, part[:80])
                seen.add(mark)
    assert {"s0", "s1", "band", "chance", "ideal", "r0", "r-none", "annotated", "right"} <= seen


def classes_of(html):
    """Names of all classes in some HTML."""
    found = re.findall(r"class=(?:\"([^\"]*)\"|'([^']*)'|([\w-]+))", html)
    return {one for several in found for classes in several for one in classes.split()}


def test_only_the_measures_that_were_asked_for_are_in_the_table(scenes):
    data, relevance = scenes
    scores = noisy(relevance)
    result = evaluate(**scores, image_of_caption=data.image_of_caption, measures=["R@1"])
    page = report_page(result, diagnose(scores, data, relevance=relevance))
    table = re.search(r"<h2>Numbers</h2>.*?</table>", page, re.DOTALL)[0]
    assert re.findall(r"<tr><td[^>]*>([^<]*)", table) == ["R@1"]


def test_a_sample_is_called_one_with_its_size(scenes, monkeypatch):
    data, relevance = scenes
    assert page_of_rungs(data, relevance).count("All 3,200 pairs of an image and a caption.") == 2
    monkeypatch.setattr(diagnostics, "_SAMPLE", 30)
    said = "A sample: 2,400 of 3,200 pairs of an image and a caption, those of 30 of 40 images, which are taken at even"
    assert page_of_rungs(data, relevance).count(said) == 2


def page_of_rungs(data, relevance):
    return report(data, relevance, noisy(relevance))[0]


def test_recall_begins_at_the_measure_and_has_a_band_and_chance(scenes):
    data, relevance = scenes
    page, *_ = report(data, relevance, noisy(relevance))
    figure = re.search(r"<figcaption>Recall curve.*?</figure>", page, re.DOTALL)[0].partition('role="img"')[2]
    assert len(re.findall(r'polygon class="band s\d"', figure)) == 2
    dashed = re.findall(r'polyline class="chance s\d" points="[^,]*,([\d.]+)', figure)
    bottom, room = plots.HEIGHT - plots.BOTTOM, plots.HEIGHT - plots.BOTTOM - plots.TOP
    wanted = [bottom - room * (1 - 78 / 80), bottom - room / 40]  # 2 of 80 captions are right, and 1 of 40 images
    assert list(map(float, dashed)) == pytest.approx(wanted, abs=0.06)
