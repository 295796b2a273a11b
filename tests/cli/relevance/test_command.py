import re

import numpy as np
import pytest

from rungwise.cli import main
from rungwise.data import read
from rungwise.language import Stemmed
from rungwise.language.tokenisers import icu_words, ptb, unicode_words, whitespace
from rungwise.relevance import (
    CaptionPairSource,
    Cascade,
    CBoW,
    CIDEr,
    CIDErD,
    Combined,
    DocumentFrequencies,
    HumanJudgements,
    Labels,
    TfIdf,
    load,
)
from rungwise.relevance.combine import Maximum, WeightedSum, mean, read_fit, to_unit_interval
from rungwise.relevance.config import KINDS
from rungwise.relevance.description.describe import describe
from rungwise.relevance.embedding import VectorSource
from rungwise.similarity import unit_rows

CAPTIONS = [
    ("a.jpg", "A black dog runs on grass.", "pets"),
    ("a.jpg", "A dog is running.", "pets"),
    ("b.jpg", "A black cat sleeps on a mat.", "pets"),
    ("b.jpg", "A sleeping cat.", "pets"),
    ("c.jpg", "A man rides a red bicycle.", "sport"),
    ("d.jpg", "A man runs on grass.", "sport"),
]
TEXTS = [text for _, text, _ in CAPTIONS]
OWNERS = [0, 0, 1, 1, 2, 3]


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "captions.csv"
    rows = [",".join(row) for row in (("image", "caption", "label"), *CAPTIONS)]
    file.write_text("\n".join(rows))
    return file


PAIR_MODEL = ("--model", "letters", "--scale", "0,5")


def run(source, table, *arguments):
    return main(["relevance", source, str(table), "--captions-only", *map(str, arguments)])


def test_builds_describes_and_saves(table, tmp_path, capsys):
    assert run("cider-d", table, "--out", tmp_path / "degrees") == 0
    said = capsys.readouterr().out
    source = CIDErD(TEXTS, OWNERS)
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=source).dense(), source.dense())
    assert "cider-d: 24 pairs" in said
    assert source.content_hash() in said


def test_options_reach_the_source(table, tmp_path):
    options = ("--reference", "mean", "--leave-one-out", "--top", 2, "--direction", "t2i")
    assert run("tfidf", table, *options, "--out", tmp_path / "degrees") == 0
    source = TfIdf(TEXTS, OWNERS, reference="mean", leave_one_out=True)
    indices, values = load(tmp_path / "degrees", expected=source).topk(2, "t2i")
    np.testing.assert_array_equal(indices, source.topk(2, "t2i")[0])
    np.testing.assert_allclose(values, source.topk(2, "t2i")[1])


def test_labels_and_word_vectors(table, tmp_path, capsys):
    assert run("labels", table, "--out", tmp_path / "labels") == 0
    labels = Labels(["pets", "pets", "sport", "sport"], OWNERS)
    np.testing.assert_array_equal(load(tmp_path / "labels", expected=labels).dense(), labels.dense())
    (tmp_path / "vectors.txt").write_text("dog 1 0\ncat 0.9 0.1\nman 0 1\n")
    assert run("cbow", table, "--vectors", tmp_path / "vectors.txt") == 0
    assert "of the words have no vector, such as a" in capsys.readouterr().out


def test_rungs_are_shown_on_a_page_and_in_the_terminal(table, tmp_path, capsys):
    page = tmp_path / "new" / "rungs.html"
    assert run("cider-d", table, "--show-rungs", page, "--thresholds", 0.5, 0.1) == 0
    said = capsys.readouterr().out
    assert "rung 1: 0.5 and above" in said
    assert "rung 3: below 0.1" in said
    assert page.read_text().count("<section>") == 3


def test_thresholds_follow_from_shares_and_are_printed(table, tmp_path, capsys):
    assert run("cider-d", table, "--show-rungs", tmp_path / "rungs.html", "--shares", 0.2) == 0
    said = capsys.readouterr().out
    cut = float(next(line for line in said.splitlines() if line.startswith("thresholds: ")).split()[1])
    own = np.arange(4)[:, None] == np.array(OWNERS)[None, :]
    degrees = CIDErD(TEXTS, OWNERS).dense()[~own]
    reached = (degrees >= cut - 1e-3).mean()
    assert reached == pytest.approx(0.2, abs=0.06)
    assert f"shares: 20.000% asked; {reached:.3%} reached" in said


def test_people_s_judgements(table, tmp_path, capsys):
    (tmp_path / "grades.csv").write_text("image,caption,grade\na.jpg,a.jpg#0,4\na.jpg,d.jpg#0,2\nz.jpg,d.jpg#0,1\n")
    judged = ("--judgements", tmp_path / "grades.csv")
    assert run("human", table, *judged, "--out", tmp_path / "degrees") == 0
    said = capsys.readouterr().out
    assert "human: 2 pairs judged, 1 of them a picture with its own caption" in said
    assert "judgement of an unknown image" in said
    assert np.isnan(load(tmp_path / "degrees").dense()).sum() == 22


def test_other_tokenizers(table, tmp_path):
    for name, tokenizer in (("whitespace", whitespace), ("unicode", unicode_words)):
        assert run("cider", table, "--tokenizer", name, "--out", tmp_path / name) == 0
        source = CIDEr(TEXTS, OWNERS, tokenizer=tokenizer)
        np.testing.assert_array_equal(load(tmp_path / name, expected=source).dense(), source.dense())


@pytest.mark.parametrize("source", ["cider-d", "cider", "tfidf"])
@pytest.mark.parametrize("tokenizer", ["ptb", "whitespace", "unicode", "bigrams"])
def test_captions_without_blanks_between_words_get_the_option_that_finds_words(source, tokenizer, tmp_path, capsys):
    file = tmp_path / "captions.csv"
    file.write_text("image,caption\na.jpg,一只棕色的狗在草地上奔跑\na.jpg,一只狗在奔跑\nb.jpg,两个人在海边散步\n")
    assert run(source, file, "--tokenizer", tokenizer) == 0
    out = capsys.readouterr().out
    needed = tokenizer in ("ptb", "whitespace")
    said = f"{source}: these captions have no blanks between words; --tokenizer icu"
    assert out.splitlines().count(said) == needed
    assert ("% are 0" in out) != needed


def test_one_split(tmp_path):
    file = tmp_path / "captions.csv"
    rows = [f"{image},{text},{'test' if image in 'a.jpg b.jpg' else 'train'}" for image, text, _ in CAPTIONS]
    file.write_text("\n".join(["image,caption,split", *rows]))
    assert run("cider-d", file, "--split", "test", "--out", tmp_path / "degrees") == 0
    source = CIDErD(TEXTS[:4], OWNERS[:4])
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=source).dense(), source.dense())


def test_as_many_pairs_and_examples_as_asked_for(table, tmp_path, capsys):
    page = tmp_path / "rungs.html"
    assert run("cider-d", table, "--show-rungs", page, "--thresholds", 0.1, "--examples", 2) == 0
    assert page.read_text().count("<article>") == 4
    assert run("cider-d", table, "--pairs", 12) == 0
    looked = describe(CIDErD(TEXTS, OWNERS), pairs=12)
    assert looked.pairs < 24
    assert f"cider-d: {looked.pairs} pairs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "grades", "wanted"),
    [
        ("expert_grades.csv", "image,caption,grade\na.jpg,b.jpg#1,2\n", 2),
        ("grades.csv", "a.jpg\tb.jpg#1\t1\t2\t3\n", 2),
        ("ExpertAnnotations.txt", "a.jpg\tb.jpg#1\t0.25\t1\t3\n", 0.25),
    ],
    ids=["table", "experts", "crowd"],
)
def test_judgements_are_known_by_what_the_file_holds(table, tmp_path, name, grades, wanted):
    (tmp_path / name).write_text(grades)
    assert run("human", table, "--judgements", tmp_path / name, "--out", tmp_path / "degrees") == 0
    degrees = load(tmp_path / "degrees").dense()
    assert degrees[0, 3] == wanted
    assert np.isnan(degrees).sum() == 23


def test_judgements_of_two_files(table, tmp_path):
    by_image, by_caption = tmp_path / "i2c.json", tmp_path / "c2i.json"
    by_image.write_text('{"a.jpg": ["a.jpg#0", "d.jpg#0"]}')
    by_caption.write_text('{"b.jpg#0": ["b.jpg"]}')
    judged = ("--judgements", by_image, by_caption)
    assert run("human", table, *judged, "--out", tmp_path / "degrees") == 0
    nan = float("nan")
    np.testing.assert_array_equal(
        load(tmp_path / "degrees").dense(),
        [[1, 0, 0, 0, 0, 1], *([[nan, nan, one, nan, nan, nan] for one in (1, 0, 0)])],
    )


def test_degrees_are_written_before_they_are_looked_at(table, tmp_path, capsys):
    shown = ("--show-rungs", tmp_path / "rungs.html", "--shares", 0.0001, 0.0001)
    assert run("cider-d", table, *shown, "--out", tmp_path / "degrees") == 2
    error = capsys.readouterr().err
    assert "--shares 0.0001 0.0001: " in error
    assert "--thresholds" in error
    assert load(tmp_path / "degrees").shape == (4, 6)


def test_one_picture_has_nothing_to_look_at(tmp_path, capsys):
    file = tmp_path / "captions.csv"
    file.write_text("image,caption\na.jpg,A dog.\na.jpg,A black dog.\n")
    assert run("cider-d", file, "--out", tmp_path / "degrees") == 2
    assert f"{file}: all captions of its one picture" in capsys.readouterr().err
    assert load(tmp_path / "degrees").shape == (1, 2)


@pytest.mark.parametrize("place", ["--out", "--show-rungs", "--cache"])
def test_a_place_that_cannot_be_written_is_found_out_before_the_work(table, tmp_path, monkeypatch, capsys, place):
    monkeypatch.setattr("rungwise.data.read", lambda *_, **__: pytest.fail("began to work"))
    options = ("cascade", table, *PAIR_MODEL) if place == "--cache" else ("cider-d", table)
    assert run(*options, place, table / "below") == 2
    assert f"{table / 'below'}: a file stands where a folder is needed" in capsys.readouterr().err
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a stranger's").touch()
    assert run(*options, place, folder) == 2
    assert str(folder) in capsys.readouterr().err


def test_half_a_character_in_json_lines_is_listed(tmp_path, capsys):
    file = tmp_path / "captions.jsonl"
    captions = ("A dog \\ud83d\\ude00.", "A cat \\ud83d.", "A caf\\u00e9.")
    file.write_text("\n".join(f'{{"image": "{n}.jpg", "caption": "{text}"}}' for n, text in enumerate(captions)))
    page = tmp_path / "rungs.html"
    assert run("cider-d", file, "--show-rungs", page, "--thresholds", 0.5) == 0
    assert f"malformed text: {file}, line 2: an escape such as \\ud83d is half a character" in capsys.readouterr().out
    assert "A dog \U0001f600." in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "arguments", "said"),
    [
        ("cider-d", ("--top", "2"), "--top changes nothing without --out"),
        ("cider-d", ("--direction", "i2t", "--out", "x"), "--direction changes nothing without --top"),
        ("cider-d", ("--examples", "2"), "--examples changes nothing without --show-rungs"),
        ("cider-d", ("--shares", "0.1"), "--shares changes nothing without --show-rungs"),
        ("cider-d", ("--show-rungs", "x", "--shares", "0.1", "--thresholds", "1"), "--shares changes nothing beside"),
        ("cider-d", ("--show-rungs", "x", "--shares", "0.5", "0.6"), "--shares must be positive and add up to less"),
        ("cider-d", ("--show-rungs", "x", "--shares", "nan"), "--shares must be positive"),
        ("cider-d", ("--thresholds", "nan"), "--thresholds must be numbers that fall, got nan"),
        ("cider-d", ("--thresholds", "0.1", "0.5"), "--thresholds must be numbers that fall, got 0.1 0.5"),
        ("cider-d", ("--pairs", "-5"), "--pairs must be at least 1, got -5"),
        ("cider-d", ("--pairs", "0"), "--pairs must be at least 1, got 0"),
        ("cider-d", ("--show-rungs", "x", "--examples", "0"), "--examples must be at least 1, got 0"),
        ("cider-d", ("--show-rungs", "x", "--examples", "-1"), "--examples must be at least 1, got -1"),
        ("cider-d", ("--top", "0", "--out", "x"), "--top must be at least 1, got 0"),
        ("tfidf", ("--orders", "0"), "--orders must be at least 1, got 0"),
        ("cider", ("--stem", "klingon"), "stemming: no stemmer of 'klingon'; there are arabic"),
        ("cbow", (), "cbow needs --vectors: a file of word vectors"),
        ("cross-encoder", (), "cross-encoder needs --model: "),
        ("cascade", ("--model", "x"), "cascade needs --scale: "),
        ("cross-encoder", ("--model", "./x", "--scale", "loud"), "--scale must be"),
        (
            "cascade",
            ("--model", "./x", "--scale", "raw", "--coarse", "glove"),
            "cascade: --coarse: there is no source 'glove'",
        ),
        ("cascade", ("--model", "./x", "--scale", "raw", "--coarse", "cbow"), "cbow needs vectors: a file"),
        ("human", (), "human needs --judgements"),
        ("human", ("--judgements", "a", "b", "c"), "human: 3 files under --judgements"),
        ("combine", (), "combine needs --of: "),
        ("combine", ("--of", "tfidf", "--weights", "1", "2"), "combine: 2 weights for 1 sources"),
        (
            "combine",
            ("--of", "tfidf", "--weights", "1", "--how", "max"),
            "--weights changes nothing with --how mean or max",
        ),
        ("combine", ("--of", "tfidf", "--fit", "a", "--fitted", "b"), "--fit learns what --fitted gives"),
        ("combine", ("--of", "tfidf", "--fit", "a", "--how", "max"), "--how changes nothing beside --fit or --fitted"),
        ("combine", ("--of", "tfidf", "--keep-fit", "a"), "--keep-fit changes nothing without --fit"),
        (
            "combine",
            ("--of", "tfidf", "--fitted", "a", "--regression", "isotonic"),
            "--regression changes nothing without --fit",
        ),
        ("combine", ("--of", "tfidf", "--fit", "nosuch.csv"), "nosuch.csv: no such file"),
        ("combine", ("--of", "nosuch"), "of: 'nosuch' is neither a folder of saved degrees nor a source"),
        ("combine", ("--of", "cbow", "--fit", "nosuch.csv"), "nosuch.csv: no such file"),  # before cbow is asked
        ("combine", ("--of", "cbow", "--fitted", "nosuch.json"), "nosuch.json: no such file"),
        ("combine", ("--of", "tfidf", "--fit", "nosuch.csv", "--keep-fit", "."), ".: a folder stands here"),
        ("visual", (), "model-scores DATA --model MODEL --vectors FILE.npz' makes them"),
        ("degrees", (), "no source 'degrees'; the source comes first, one of cider-d, cider"),
        ("explane", (), "no source 'explane'; did you mean explain? the source comes first"),
        ("spise", (), "did you mean spice?"),
        ("tfidf", ("--split", "nosuch"), "no picture is in split 'nosuch'"),
    ],
)
def test_a_mistake_gets_one_line(table, tmp_path, monkeypatch, capsys, source, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert run(source, table, *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("rungwise relevance: ")
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("cider-d", "--vectors"),
        ("cider-d", "--reference"),
        ("bi-encoder", "--tokenizer"),
        ("bi-encoder", "--scale"),
        ("cascade", "--vectors"),
        ("tfidf", "--threshold"),
        ("labels", "--leave-one-out"),
        ("human", "--show-rungs"),
        ("human", "--pairs"),
        ("combine", "--device"),
    ],
)
def test_a_source_knows_its_own_options_only(table, capsys, source, option):
    assert run(source, table, option, "1") == 2
    assert f"there is no option {option};" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["relevance", source, "--help-all"])
    assert ended.value.code == 0
    assert f"{option} " not in capsys.readouterr().out


@pytest.mark.parametrize("asked", [False, True])
def test_the_sources_are_listed_on_a_line_each(capsys, asked):
    if asked:
        with pytest.raises(SystemExit) as ended:
            main(["relevance", "--help"])
        assert ended.value.code == 0
    else:
        assert main(["relevance"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for kind in KINDS:
        assert sum(line.split()[:1] == [kind] for line in lines) == 1


@pytest.fixture
def with_splits(tmp_path):
    file = tmp_path / "captions.csv"
    of = {"a.jpg": "train", "b.jpg": "test", "c.jpg": "train", "d.jpg": "val"}
    file.write_text("\n".join(["image,caption,split", *(f"{name},{text},{of[name]}" for name, text, _ in CAPTIONS)]))
    return file


def test_words_are_counted_in_the_training_split_unless_asked_otherwise(with_splits, tmp_path, capsys):
    assert run("cider-d", with_splits, "--out", tmp_path / "default") == 0
    assert "cider-d: document frequencies of the 2 training pictures alone, of 4" in capsys.readouterr().out
    train = [0, 1, 4]
    frequencies = DocumentFrequencies.of([TEXTS[c] for c in train], [0, 0, 1])
    wanted = CIDErD(TEXTS, OWNERS, document_frequencies=frequencies)
    stored = load(tmp_path / "default", expected=wanted)
    np.testing.assert_array_equal(stored.dense(), wanted.dense())
    assert stored.frequencies_from == "train"
    assert run("cider-d", with_splits, "--frequencies", "collection", "--out", tmp_path / "all") == 0
    assert load(tmp_path / "all", expected=CIDErD(TEXTS, OWNERS)).frequencies_from == "collection"
    part = ([TEXTS[c] for c in train], [0, 0, 1])
    assert run("cider-d", with_splits, "--split", "train", "--out", tmp_path / "train") == 0
    assert load(tmp_path / "train", expected=CIDErD(*part)).frequencies_from == "collection"


def test_a_split_is_scored_with_the_words_counted_in_another(with_splits, tmp_path, capsys):
    file = with_splits
    file.write_text(file.read_text().replace(",val", ",test"))
    assert run("tfidf", file, "--split", "test", "--frequencies", "train", "--out", tmp_path / "degrees") == 0
    frequencies = DocumentFrequencies.of([TEXTS[c] for c in (0, 1, 4)], [0, 0, 1], orders=1)
    wanted = TfIdf([TEXTS[c] for c in (2, 3, 5)], [0, 0, 1], document_frequencies=frequencies)
    assert load(tmp_path / "degrees", expected=wanted).frequencies_from == "train"
    file.write_text(file.read_text().replace(",train", ",learn"))
    assert run("tfidf", file, "--frequencies", "train") == 2
    assert "no picture is in split 'train'; it has learn, test; take --frequencies coll" in capsys.readouterr().err


def test_words_are_stemmed_and_parted_as_asked(table, tmp_path):
    assert run("cider", table, "--stem", "english", "--frequencies", "collection", "--out", tmp_path / "stems") == 0
    load(tmp_path / "stems", expected=CIDEr(TEXTS, OWNERS, stemming="english"))
    assert run("tfidf", table, "--tokenizer", "icu", "--stem", "english", "--out", tmp_path / "icu") == 0
    load(tmp_path / "icu", expected=TfIdf(TEXTS, OWNERS, tokenizer=icu_words, stemming="english"))
    file = tmp_path / "split.csv"
    lines = [f"{image},{text},{'train' if image < 'c' else 'test'}" for image, text, _ in CAPTIONS]
    file.write_text("\n".join(["image,caption,split", *lines]))
    assert run("cider-d", file, "--stem", "english", "--out", tmp_path / "split") == 0
    counted = DocumentFrequencies.of(TEXTS[:4], OWNERS[:4], tokenizer=Stemmed(ptb, "english"))
    wanted = CIDErD(TEXTS, OWNERS, stemming="english", document_frequencies=counted)
    np.testing.assert_array_equal(load(tmp_path / "split").dense(), wanted.dense())


def test_combines_folders_and_sources(table, tmp_path, capsys):
    assert run("cider-d", table, "--out", tmp_path / "cider") == 0
    assert run("tfidf", table, "--tokenizer", "unicode", "--out", tmp_path / "tfidf") == 0
    cider, tfidf = CIDErD(TEXTS, OWNERS), TfIdf(TEXTS, OWNERS, tokenizer=unicode_words)
    of = ("--of", tmp_path / "cider", "{kind: tfidf, tokenizer: unicode}")
    for number, (options, wanted) in enumerate(
        (
            (("--weights", 0.1, 0.5), WeightedSum([cider, tfidf], [0.1, 0.5])),
            (("--how", "max"), Maximum([cider, tfidf])),
            (("--how", "mean", "--unit-interval"), mean([to_unit_interval(cider), to_unit_interval(tfidf)])),
        )
    ):
        assert run("combine", table, *of, *options, "--out", tmp_path / f"{number}") == 0
        stored = load(tmp_path / f"{number}", expected=wanted)
        np.testing.assert_array_equal(stored.dense(), wanted.dense())
    assert "becomes 0" in capsys.readouterr().out
    other = tmp_path / "other.csv"
    other.write_text("image,caption\na.jpg,A fox.\nb.jpg,A dog.\n")
    assert run("combine", other, "--of", tmp_path / "cider") == 2
    assert "degrees of 4 images and 6 captions, but " in capsys.readouterr().err


def test_people_say_how_sources_are_combined(tmp_path, capsys):
    words = ("dog", "cat", "fox", "cow", "hen", "owl")
    texts = [f"{size} {animal}" for animal in words for size in ("big", "small")]
    table = tmp_path / "captions.csv"
    table.write_text("image,caption\n" + "".join(f"{n // 2}.jpg,{text}\n" for n, text in enumerate(texts)))
    data = read(table, captions_only=True)
    graded = [(image, caption, 5.0 * (image == caption // 2)) for image in range(6) for caption in range(12)]
    people = tmp_path / "people.csv"
    lines = [f"{data.image_ids[i]},{data.caption_ids[c]},{grade}\n" for i, c, grade in graded]
    people.write_text("image,caption,grade\n" + "".join(lines) + f"other.jpg,{data.caption_ids[0]},3\n")
    sources = ("--of", "tfidf", "{kind: tfidf, orders: 2}")
    file = tmp_path / "fit.json"
    options = ("--regression", "monotone", "--keep-fit", file, "--out", tmp_path / "learned")
    assert run("combine", table, *sources, "--fit", people, *options) == 0
    said = capsys.readouterr().out
    assert "combine: 1 judgements in" in said
    assert "monotone regression on 72 judged pairs" in said
    reaches = said.partition("reaches: ")[2].partition("; on")[0]
    assert re.fullmatch(r"[\d.e-]+ tfidf, [\d.e-]+ \{kind: tfidf, orders: 2\}", reaches), "sources as they were typed"
    assert "on pairs that were left out of the fit (5 folds): Pearson" in said
    of = [TfIdf(texts, data.image_of_caption, orders=orders) for orders in (1, 2)]
    wanted = Combined(of).fit(HumanJudgements.read(people, data), kind="monotone")
    np.testing.assert_array_equal(load(tmp_path / "learned", expected=wanted).dense(), wanted.dense())
    assert read_fit(file) == wanted.fitted
    assert run("combine", table, *sources, "--fitted", file, "--out", tmp_path / "again") == 0
    assert "on pairs that were left out of the fit (5 folds): Pearson" in capsys.readouterr().out
    assert load(tmp_path / "again").content_hash() == wanted.content_hash()
    assert run("combine", table, "--of", "tfidf", "tfidf", "--fitted", file) == 2
    assert "give the same sources with the same options" in capsys.readouterr().err


class Sentences(VectorSource):
    """Stands for sentence embeddings: which of four words a caption has, the last being the model's name."""

    vectors = fingerprint = None

    def __init__(self, captions, owners, model="mat", *, inference=None, **options):
        super().__init__(captions, owners, **options)
        words = ("dog", "cat", "man", model)
        found = np.array([[word in text for word in words] for text in self.captions], np.float32)
        self.vectors, self.fingerprint = unit_rows(found), model


class Pairs(CaptionPairSource):
    """Stands for a cross-encoder: the share of two captions' letters that both have, on the model's scale."""

    symmetric = False

    def __init__(self, captions, owners, model, *, scale, inference=None, symmetric=False, **options):
        super().__init__(captions, owners, **options)
        self.fingerprint, self.scale = f"{model} {scale}", scale

    def options(self):
        return {**super().options(), "model": self.fingerprint}

    def pair_scores(self, first, second):
        letters = [set(text) for text in self.captions]
        shared = [
            len(letters[a] & letters[b]) / len(letters[a] | letters[b]) for a, b in zip(first, second, strict=True)
        ]
        return np.array(shared, np.float32) / np.float32(self.scale[1])

    def pair_block(self, first, second):
        everything = np.repeat(first, len(second)), np.tile(second, len(first))
        return self.pair_scores(*everything).reshape(len(first), len(second))


@pytest.fixture
def _models(monkeypatch):
    monkeypatch.setattr("rungwise.relevance.embedding.bi_encoder.BiEncoder", Sentences)
    monkeypatch.setattr("rungwise.language.sentence_models.PACKAGED_MODEL", "mat")
    monkeypatch.setattr("rungwise.relevance.embedding.cross_encoder.CrossEncoder", Pairs)


def sentences(**options):
    return Sentences(TEXTS, OWNERS, **options)


def pairs(**options):
    return Pairs(TEXTS, OWNERS, "letters", scale=(0.0, 5.0), **options)


@pytest.mark.usefixtures("_models")
def test_sentences(table, tmp_path, capsys):
    options = ("--model", "grass", "--reference", "mean", "--device", "cpu", "--out", tmp_path / "degrees")
    assert run("bi-encoder", table, *options) == 0
    said = capsys.readouterr().out
    assert "bi-encoder: the model runs on cpu" in said
    assert "bi-encoder: 6 captions, vectors of 4" in said
    source = sentences(model="grass", reference="mean")
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=source).dense(), source.dense())


@pytest.mark.usefixtures("_models")
def test_cross_encoder(table, tmp_path):
    options = (*PAIR_MODEL, "--reference", "paired")
    assert run("cross-encoder", table, *options, "--out", tmp_path / "degrees") == 0
    source = pairs(reference="paired")
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=source).dense(), source.dense())


@pytest.mark.usefixtures("_models")
@pytest.mark.parametrize("coarse", ["bi-encoder", "tfidf", "cbow"])
def test_cascade(table, tmp_path, monkeypatch, capsys, coarse):
    monkeypatch.setenv("RUNGWISE_CACHE", str(tmp_path / "cache"))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dog 1 0\ncat 0.9 0.1\nman 0 1\n")
    cheap, options = {
        "bi-encoder": (sentences(), ()),
        "tfidf": (TfIdf(TEXTS, OWNERS, tokenizer=whitespace), ("--coarse", "{kind: tfidf, tokenizer: whitespace}")),
        "cbow": (CBoW(TEXTS, OWNERS, vectors), ("--coarse", f"{{kind: cbow, vectors: {vectors}}}")),
    }[coarse]
    options = (*options, *PAIR_MODEL, "--threshold", 0.3, "--below", "coarse")
    assert run("cascade", table, *options, "--out", tmp_path / "degrees") == 0
    said = capsys.readouterr().out
    assert f"cascade: scores of pairs are kept in {tmp_path / 'cache' / 'pair_scores'}" in said
    assert "pairs would take" in said
    wanted = Cascade(cheap, pairs(), threshold=0.3, below="coarse")
    np.testing.assert_allclose(load(tmp_path / "degrees", expected=wanted).dense(), wanted.dense(), rtol=1e-6)
    assert 0 < wanted.report.refined < wanted.report.considered
    assert run("cascade", table, *options) == 0
    assert "0 pairs scored of" in capsys.readouterr().out, "the default cache was read"


@pytest.mark.slow
def test_cascade_with_a_tiny_cross_encoder(table, tmp_path, capsys):
    pytest.importorskip("transformers")
    from tests.relevance.embedding.test_cross_encoder import tiny_model

    (tmp_path / "model").mkdir()
    tiny_model(tmp_path / "model", outputs=1)
    options = ("--coarse", "tfidf", "--threshold", 0.3, "--model")
    options = (*options, tmp_path / "model", "--scale", "sigmoid", "--cache", tmp_path / "scores")
    assert run("cascade", table, *options) == 0
    assert "pairs would take" in capsys.readouterr().out
    assert run("cascade", table, *options) == 0
    assert "0 pairs scored of" in capsys.readouterr().out
