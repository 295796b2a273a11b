"""Configurations of sources, in all modules of the package.

Also tests rungwise.relevance.config._base, rungwise.relevance.config._given, rungwise.relevance.config._models,
rungwise.relevance.config._sources, rungwise.relevance.config._words.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from rungwise.core import STRICT, UserError, dump_yaml, from_plain, load_yaml, to_plain
from rungwise.data import ImageCaptions
from rungwise.language.tokenisers import unicode_words
from rungwise.relevance import CIDErD, DocumentFrequencies, Labels, TfIdf
from rungwise.relevance.config import (
    KINDS,
    AnySourceOrNone,
    Building,
    CombineConfig,
    TfIdfConfig,
    degrees_of,
    source_config,
)

TEXTS = (
    "A black dog runs on grass.",
    "A dog is running.",
    "A black cat sleeps on a mat.",
    "A sleeping cat.",
    "A man rides a red bicycle.",
    "A man runs on grass.",
)
OWNERS = np.array([0, 0, 1, 1, 2, 3])
DATA = ImageCaptions(
    tuple("abcd"), TEXTS, OWNERS, labels=(("pets",), ("pets",), ("sport",), ("sport",)), name="these data"
)
SPLIT = ImageCaptions(tuple("abcd"), TEXTS, OWNERS, splits=("train", "test", "train", "val"), name="these data")


def test_every_kind_is_known_by_its_name():
    assert list(KINDS) == [
        "cider-d", "cider", "tfidf", "cbow", "spice", "bi-encoder", "cross-encoder", "cascade", "labels", "human",
        "visual", "combine",
    ]  # fmt: skip
    for kind in KINDS:
        assert source_config(kind) == source_config({"kind": kind}) == source_config(f"{{kind: {kind}}}")
        assert source_config(kind).kind == kind


@dataclass(frozen=True)
class Settings:
    __pydantic_config__ = STRICT
    relevance: AnySourceOrNone = None


@pytest.mark.parametrize(
    "value",
    [
        None,
        "bi-encoder",
        {"kind": "tfidf", "tokenizer": "unicode", "orders": 2},
        {"kind": "cascade", "model": "x", "scale": [0, 5], "coarse": {"kind": "cbow", "vectors": "glove.txt"}},
        {"kind": "combine", "of": ["folder", {"kind": "cider", "leave_one_out": True}], "weights": [1, 0.5]},
    ],
)
def test_a_source_stands_in_yaml_and_comes_back(tmp_path, value):
    settings = from_plain(Settings, {"relevance": value}, "here")
    assert (settings.relevance is None) == (value is None)
    (tmp_path / "settings.yaml").write_text(dump_yaml(settings))
    assert load_yaml(Settings, tmp_path / "settings.yaml") == settings
    if isinstance(value, dict):
        assert to_plain(settings)["relevance"]["kind"] == value["kind"]


def test_options_of_parts_are_kept():
    config = source_config({"kind": "combine", "of": ["a b/folder", {"kind": "tfidf", "tokenizer": "unicode"}]})
    assert isinstance(config, CombineConfig)
    assert config.of[0] == "a b/folder"
    assert source_config(config.of[1]) == TfIdfConfig(tokenizer="unicode")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("sentences", "relevance: there is no source 'sentences'; there are cider-d, cider, tfidf, cbow, spice"),
        ({"tokenizer": "ptb"}, "relevance: the mapping has no kind; there are cider-d"),
        ({"kind": "tfidf", "vectors": "x"}, "relevance: vectors: "),
        ({"kind": "tfidf", "tokenizer": "english"}, "relevance: tokenizer: must be 'ptb'"),
        (["tfidf"], "relevance: give the name of a source or a mapping with its kind, got list"),
        ("{kind: tfidf", "relevance: '{kind: tfidf' is not YAML"),
        ("{1, 2}", "relevance: the mapping has no kind"),
    ],
)
def test_a_mistake_gets_one_line(value, said):
    for read in (source_config, lambda value: from_plain(Settings, {"relevance": value}, "here")):
        with pytest.raises(UserError) as caught:
            read(value)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_builds_what_the_constructor_builds():
    for config, wanted in (
        ("cider-d", CIDErD(TEXTS, OWNERS)),
        ({"kind": "tfidf", "tokenizer": "unicode", "orders": 2, "reference": "mean", "leave_one_out": True},
         TfIdf(TEXTS, OWNERS, tokenizer=unicode_words, orders=2, reference="mean", leave_one_out=True)),
        ({"kind": "labels", "degree": "jaccard"}, Labels(DATA.labels, OWNERS, degree="jaccard")),
    ):  # fmt: skip
        assert source_config(config).build(DATA).content_hash() == wanted.content_hash()


@pytest.mark.parametrize("kind", ["cider-d", "cider", "tfidf"])
def test_frequencies_are_those_of_the_training_split_where_there_are_others(kind):
    train = SPLIT.split("train")
    said = []
    built = source_config(kind).build(SPLIT, building=Building(say=said.append))
    orders = 1 if kind == "tfidf" else 4
    of_train = DocumentFrequencies.of(train.captions, train.image_of_caption, orders=orders)
    whole = type(built)(TEXTS, OWNERS)
    wanted = type(built)(TEXTS, OWNERS, document_frequencies=of_train)
    np.testing.assert_array_equal(built.dense(), wanted.dense())
    assert not np.array_equal(built.dense(), whole.dense()), "the two differ on these data"
    assert said == [f"{kind}: document frequencies of the 2 training pictures alone, of 4"]
    assert built.frequencies_from == "train"
    counted = source_config({"kind": kind, "frequencies": "collection"}).build(SPLIT)
    assert counted.content_hash() == whole.content_hash() != built.content_hash()


def test_the_training_split_alone_knows_nothing_of_the_others():
    train = SPLIT.split("train")
    alone = source_config("cider-d").build(train)
    np.testing.assert_array_equal(source_config("cider-d").build(SPLIT).block([0, 2], [0, 1, 4]), alone.dense())
    assert alone.content_hash() == CIDErD(train.captions, train.image_of_caption).content_hash()
    assert alone.content_hash() == source_config("cider-d").build(train, building=Building(train=("x",))).content_hash()


def test_frequencies_of_training_splits_of_other_names():
    built = source_config("tfidf").build(SPLIT, building=Building(train=("val", "test")))
    part = SPLIT.split("val", "test")
    wanted = DocumentFrequencies.of(part.captions, part.image_of_caption, orders=1)
    assert built.options()["document_frequencies"] == wanted.content_hash()
    with pytest.raises(UserError, match="no picture is in split 'learn'; it has train, test, val"):
        source_config({"kind": "tfidf", "frequencies": "train"}).build(SPLIT, building=Building(train=("learn",)))


def test_frequencies_of_the_split_that_training_would_draw():
    ids = tuple(f"{n}.jpg" for n in range(30))
    data = ImageCaptions(ids, tuple(f"number {n}" for n in range(30)), np.arange(30))
    assert source_config("tfidf").build(data).frequencies_from == "collection"
    said = []
    source_config({"kind": "tfidf", "frequencies": "train"}).build(data, building=Building(say=said.append))
    (line,) = said
    assert 0 < int(line.split("of the ")[1].split()[0]) < 30


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("cbow", "relevance: cbow needs vectors: a file of word vectors"),
        ("cross-encoder", "relevance: cross-encoder needs model: "),
        ({"kind": "cascade", "model": "x"}, "relevance: cascade needs scale: "),
        ({"kind": "cross-encoder", "model": "x", "scale": "loud"}, "scale must be raw, sigmoid"),
        ("human", "relevance: human needs judgements: "),
        ({"kind": "human", "judgements": ["a", "b", "c"]}, "3 files under judgements"),
        ("combine", "relevance: combine needs of: "),
        ({"kind": "combine", "of": ["tfidf"], "weights": [1, 2]}, "2 weights for 1 sources"),
        (
            {"kind": "combine", "of": ["tfidf"], "weights": [1], "how": "max"},
            "weights changes nothing with how mean or max",
        ),
        ({"kind": "combine", "of": ["nosuch"]}, "of: 'nosuch' is neither a folder of saved degrees nor a source"),
        ({"kind": "tfidf", "orders": 0}, "orders must be at least 1"),
        ({"kind": "cascade", "model": "x", "scale": "raw", "coarse": "cider-d"}, "cider-d cannot choose pairs"),
        ({"kind": "cascade", "model": "x", "scale": "raw", "coarse": "glove"}, "coarse: there is no source 'glove'"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(value, said):
    with pytest.raises(UserError) as caught:
        source_config(value).build(DATA)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_captions_and_no_labels():
    with pytest.raises(UserError, match="there are no captions"):
        source_config("tfidf").build(ImageCaptions(("a",), (), np.array([])))
    with pytest.raises(UserError, match="has no class labels"):
        source_config("labels").build(SPLIT)


def test_combines_folders_and_sources(tmp_path):
    CIDErD(TEXTS, OWNERS).save(tmp_path / "folder")
    of = [str(tmp_path / "folder"), "tfidf"]
    cider, tfidf = CIDErD(TEXTS, OWNERS).dense(), TfIdf(TEXTS, OWNERS).dense()
    for options, wanted in (
        ({"weights": [0.5, 2]}, 0.5 * cider + 2 * tfidf),
        ({}, cider + tfidf),
        ({"how": "mean"}, (cider + tfidf) / 2),
        ({"how": "max"}, np.maximum(cider, tfidf)),
        ({"how": "mean", "unit_interval": True}, (cider / cider.max() + tfidf / tfidf.max()) / 2),
    ):
        built = degrees_of({"kind": "combine", "of": of, **options}, DATA)
        np.testing.assert_allclose(built.dense(), wanted, rtol=1e-5)


def test_the_scale_of_parts_is_that_of_the_training_split(tmp_path):
    config = source_config({"kind": "combine", "of": ["labels", "cider"], "unit_interval": True, "how": "max"})
    data = ImageCaptions(tuple("abcd"), TEXTS, OWNERS, splits=SPLIT.splits, labels=DATA.labels)
    said = []
    built = config.build(data, building=Building(say=said.append))
    cider = source_config("cider").build(data)
    top = cider.block([0, 2], [0, 1, 4]).max()
    assert top < cider.dense().max(), "the two differ on these data"
    assert said[-1] == f"combine: cider: 0 becomes 0, {top:.4g} becomes 1"
    assert built.dense().max() == 1


def test_a_folder_of_other_data_is_refused(tmp_path):
    CIDErD(TEXTS[:5], OWNERS[:5]).save(tmp_path / "captions")
    Labels(["x", "y"], [0, 1]).save(tmp_path / "labels")
    Labels(["x", "y", "x", "x"], OWNERS[::-1]).save(tmp_path / "turned")
    for name in ("captions", "labels", "turned"):
        with pytest.raises(UserError, match="but these data has 4 and 6"):
            degrees_of(str(tmp_path / name), DATA)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"kind": "tfidf", "orders": 10**18},
            "tfidf: orders must be at most 100, got 10+$",
        ),
        ({"kind": "tfidf", "orders": 0}, "tfidf: orders must be at least 1, got 0"),
        ({"kind": "bi-encoder", "batch_size": -1}, r"relevance: batch_size: must be at least 1 \(got -1\)"),
        ({"kind": "bi-encoder", "batch_size": 10**18}, "relevance: batch_size: must be at most 1048576"),
        (
            {"kind": "cross-encoder", "model": "./m", "scale": "raw", "batch_size": 0},
            "relevance: batch_size: must be at least 1",
        ),
        (
            {"kind": "cascade", "model": "./m", "scale": "raw", "batch_size": 0},
            "relevance: batch_size: must be at least 1",
        ),
    ],
)
def test_sizes_that_nobody_means_are_refused_before_a_model_is_loaded(given, message):
    data = ImageCaptions(("a",), ("a dog",), np.array([0]))
    with pytest.raises(UserError, match=message):
        source_config(given).build(data)
