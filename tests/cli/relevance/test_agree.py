import json

import numpy as np
import pytest
import scipy.io

from rungwise.cli import main
from rungwise.relevance import TfIdf
from rungwise.relevance.agreement import agree
from rungwise.relevance.human import read_judged
from tests.relevance.human.test_files import JUDGED, NAMED, pascal

TEXTS = (
    "A black dog runs.",
    "A dog is running.",
    "A black cat sleeps.",
    "A sleeping cat.",
    "A man rides.",
    "A bicycle.",
)
OWNERS = (0, 0, 1, 1, 2, 2)


@pytest.fixture
def data(tmp_path):
    rows = [
        f"{'abc'[owner]}.jpg#{at % 2}\t{text}\n" for at, (owner, text) in enumerate(zip(OWNERS, TEXTS, strict=True))
    ]
    (tmp_path / "captions.token.txt").write_text("".join(rows))
    return tmp_path / "captions.token.txt"


@pytest.fixture
def experts(tmp_path):
    lines = [
        f"{image}.jpg\t{other}.jpg#{number}\t{grade}\t{grade}\t{max(1, grade - 1)}\n"
        for image, other, number, grade in (("a", "a", 0, 4), ("a", "b", 0, 2), ("b", "a", 0, 2), ("c", "a", 1, 1))
    ]
    (tmp_path / "experts.txt").write_text("".join(lines))
    return tmp_path / "experts.txt"


def run(*arguments):
    return main(["relevance", "agree", *map(str, arguments)])


def test_numbers_are_printed_and_written(data, experts, tmp_path, capsys):
    assert run("tfidf", experts, "--data", data, "--json", tmp_path / "numbers.json") == 0
    said = capsys.readouterr().out
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert numbers["source"] == "tfidf"
    assert {name: part["items"] for name, part in numbers["parts"].items()} == {"all": 4, "others": 3, "apart": 4}
    assert "4 image-caption pairs" in said
    assert f"{numbers['parts']['all']['Spearman'][0]:.3f}" in said
    assert "Krippendorff's alpha" in said
    assert "Flickr8K-Expert" in said
    assert all(len(line) <= 80 for line in said.splitlines() if str(tmp_path) not in line)


def test_saved_degrees_and_options_in_braces_say_the_same(data, experts, tmp_path, capsys):
    TfIdf(TEXTS, OWNERS, reference="mean").save(tmp_path / "degrees")
    for at, source in enumerate(("{kind: tfidf, reference: mean}", tmp_path / "degrees")):
        assert run(source, experts, "--data", data, "--json", tmp_path / f"{at}.json") == 0
    built, saved = (json.loads((tmp_path / f"{at}.json").read_text())["parts"] for at in (0, 1))
    assert built["all"] == saved["all"]
    assert set(built) - set(saved) == {"apart"}


def test_a_dash_is_explained(data, tmp_path, capsys):
    grades = tmp_path / "grades.csv"
    grades.write_text("image,caption,grade\n" + "".join(f"{one}.jpg,{one}.jpg#0,3\n" for one in "abc"))
    assert run("tfidf", grades, "--data", data) == 0
    assert "-: all degrees or all grades are the same there" in capsys.readouterr().out
    assert run("tfidf", grades, "--data", data, "--json", tmp_path / "numbers.json") == 0
    assert json.loads((tmp_path / "numbers.json").read_text())["parts"]["all"]["Pearson"] == [None, None, None]


def test_draws_and_seed_reach_the_intervals(data, tmp_path):
    grades = tmp_path / "grades.csv"
    pairs = [(image, f"{other}.jpg#{number}") for image in "abc" for other in "abc" for number in (0, 1)]
    rows = [f"{image}.jpg,{caption},{at * 7 % 5}\n" for at, (image, caption) in enumerate(pairs)]
    grades.write_text("image,caption,grade\n" + "".join(rows))

    def low(*options):
        assert run("tfidf", grades, "--data", data, "--json", tmp_path / "a.json", *options) == 0
        return json.loads((tmp_path / "a.json").read_text())["parts"]["all"]["Pearson"][1]

    assert low("--draws", 0) is None
    assert low("--draws", 30, "--seed", 1) == low("--draws", 30, "--seed", 1) != low("--draws", 30, "--seed", 2)


def test_pascal_50s_needs_no_collection(tmp_path, capsys):
    files = pascal(tmp_path, JUDGED, NAMED, [2, 4])
    assert run("{kind: tfidf, frequencies: collection}", *files, "--references", 2, "--json", tmp_path / "a.json") == 0
    numbers = json.loads((tmp_path / "a.json").read_text())
    wanted = agree("{kind: tfidf, frequencies: collection}", read_judged(files), references=2).as_plain()
    assert numbers["parts"] == json.loads(json.dumps(wanted))["parts"]
    assert list(numbers["parts"]) == ["HI", "MM", "mean"]
    assert "category" in capsys.readouterr().out


def test_vatex_eval_style(tmp_path, capsys):
    rows = [
        {"video": name, "candidate": candidate, "references": [reference], "scores": scores}
        for name, candidate, reference, scores in (
            ("v", "a dog runs", "a dog", [5, 4, 5]),
            ("w", "a cow", "a cat sleeps", [1, 1, 2]),
            ("x", "men", "men", [4, 5, 4]),
        )
    ]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("cider-d", tmp_path / "rated.jsonl", "--draws", 20) == 0
    said = capsys.readouterr().out
    assert "3 candidate captions" in said
    assert "tau-b, each rater" in said
    assert "counted among the references alone" in said
    assert "training pictures" not in said


def test_a_source_of_pictures_reads_the_features_of_the_collection(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    np.save(tmp_path / "data" / "features.npy", vectors)
    rows = "".join(f"{name},{text}\n" for name, text in zip("abc", TEXTS[::2], strict=True))
    (tmp_path / "data" / "captions.csv").write_text("image,caption\n" + rows)
    pairs = tmp_path / "sis.csv"
    pairs.write_text("image1,image2,agg_score,sampling_method\na,b,4,i2i\na,c,0,i2i\nb,c,3,i2i\n")
    data = ("--data", tmp_path / "data", "--draws", 0)
    assert run("visual", pairs, *data, "--with-pictures", "--json", tmp_path / "a.json") == 0
    wanted = np.corrcoef([0.8, 0.0, 0.6], [4, 0, 3])[0, 1]
    assert json.loads((tmp_path / "a.json").read_text())["parts"]["all"]["Pearson"][0] == pytest.approx(wanted)
    assert run("visual", pairs, *data) == 2
    assert "needs vectors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tfidf", "{}/experts.txt"), "give the collection with --data"),
        (("bleu", "{}/experts.txt", "--data", "{}/captions.token.txt"), "'bleu' is neither a folder of saved"),
        (("tfidf", "{}/nowhere.csv"), "nowhere.csv: no such file"),
        (("tfidf", "{}/captions.token.txt"), "are those of no judgements"),
        (("tfidf", "{}/others.csv", "--data", "{}/captions.token.txt"), "none of its 1 judgements is of"),
        (("{}/degrees", "{}/pairs.csv"), "saved degrees know no new texts"),
        (
            ("tfidf", "{}/experts.txt", "--data", "{}/captions.token.txt", "--references", "2"),
            "--references changes nothing for judgements of pairs, which bring no texts of their own; leave it out",
        ),
        (("tfidf", "{}/pairs.csv", "--references", "0"), "--references must be at least 1, got 0"),
        (("tfidf", "{}/experts.txt", "--draws", "-1"), "--draws must be 0 to"),
        (("tfidf", "{}/experts.txt", "--seed", "-1"), "--seed must be 0 or more"),
        (("tfidf", "{}/experts.txt", "--json", "{}"), "a folder stands here; name a file"),
        (("tfidf", "{}/scores.npy"), "could run a program and is never read"),
        (("tfidf",), "no file of judgements is given"),
        (("tfidf", "{}/pairs.csv", "--layout", "table"), "--layout changes nothing without --data"),
        (("tfidf", "{}/pairs.csv", "--key", "stem"), "--key changes nothing without --data"),
        (("tfidf", "{}/experts.txt", "--data", "{}", "--layout", "coco"), "holds nothing to be read as COCO's"),
    ],
    ids=[
        "no data", "source", "no file", "captions", "other data", "saved", "references", "none", "draws", "seed",
        "folder", "pickle", "nothing", "layout alone", "key alone", "layout",
    ],
)  # fmt: skip
def test_mistakes_get_one_line(data, experts, tmp_path, capsys, arguments, said):
    TfIdf(TEXTS, OWNERS).save(tmp_path / "degrees")
    (tmp_path / "others.csv").write_text("image,caption,grade\nz.jpg,z.jpg#0,3\n")
    (tmp_path / "pairs.csv").write_text("image,first,second,votes_first,votes_second,reference\ni,a,b,1,2,c\n")
    np.save(tmp_path / "scores.npy", np.array([None]), allow_pickle=True)
    assert run(*(one.replace("{}", str(tmp_path)) for one in arguments)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert said in lines[0]


def test_a_mat_file_of_something_else_is_refused(tmp_path, capsys):
    scipy.io.savemat(tmp_path / "features.mat", {"x": np.ones(3)})
    assert run("tfidf", tmp_path / "features.mat") == 2
    assert "holds neither triplets nor new_input with category" in capsys.readouterr().err
