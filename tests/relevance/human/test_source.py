import json

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text, sealed
from rungwise.data import ImageCaptions, read
from rungwise.relevance import Relevance
from rungwise.relevance.human import HumanJudgements, Judgement, add_judgement, now
from rungwise.relevance.precomputed import load

COCO = ImageCaptions(
    ("COCO_val2014_000000391895.jpg", "COCO_val2014_000000000009.jpg"),
    ("a", "b", "c"),
    np.array([0, 0, 1]),
    caption_ids=("770337", "771687", "5"),
)
NAN = float("nan")


def test_judgements_of_a_pair_are_averaged_and_the_rest_is_nan():
    human = HumanJudgements([1, 0, 1], [2, 0, 2], [1, 5, 4], (2, 3))
    np.testing.assert_array_equal(human.dense(), [[5, NAN, NAN], [NAN, NAN, 2.5]])
    np.testing.assert_array_equal(human.block([1, 0], [2, 2]), [[2.5, 2.5], [NAN, NAN]])
    assert human.pairs.tolist() == [[0, 0], [1, 2]]
    assert human.grades.tolist() == [5, 2.5]
    assert isinstance(human, Relevance)


def test_unjudged_pairs_come_last_in_topk():
    indices, values = HumanJudgements([0, 0], [1, 2], [-3, 2], (2, 3)).topk(3)
    assert indices.tolist() == [[2, 1, 0], [0, 1, 2]]
    np.testing.assert_array_equal(values, [[2, -3, NAN], [NAN] * 3])


def test_saved_judgements_keep_their_gaps(tmp_path):
    human = HumanJudgements([0, 1], [1, 2], [3, 4], (2, 3))
    human.save(tmp_path / "degrees")
    np.testing.assert_array_equal(load(tmp_path / "degrees", expected=human).dense(), human.dense())


def test_cxc_ids_are_found_by_their_last_part(tmp_path):
    file = tmp_path / "sits.csv"
    file.write_text(
        "caption,image,agg_score,sampling_method\n"
        "COCO_val2014:sentid:771687,COCO_val2014_000000000009.jpg,2.2,c2i_original\n"
        "COCO_val2014:sentid:99,COCO_val2014_000000000009.jpg,2.2,c2i_original\n"
        "COCO_val2014:sentid:5,elsewhere.jpg,1,c2i_original\n"
    )
    human = HumanJudgements.read(file, COCO)
    np.testing.assert_array_equal(human.dense(), np.float32([[NAN] * 3, [NAN, 2.2, NAN]]))
    assert [issue.kind for issue in human.issues] == [
        "judgement of an unknown caption",
        "judgement of an unknown image",
    ]
    assert "line 3" in human.issues[0].where


def test_eccv_counts_what_a_query_does_not_list_as_0(tmp_path):
    by_image, by_caption = tmp_path / "i2c.json", tmp_path / "c2i.json"
    by_image.write_text(json.dumps({"391895": [771687]}))
    by_caption.write_text(json.dumps({"5": [391895, 9], "123": [9]}))
    human = HumanJudgements.eccv(by_image, by_caption, COCO)
    np.testing.assert_array_equal(human.dense(), [[0, 1, 1], [NAN, NAN, 1]])
    assert len(human.issues) == 1


def test_flickr8k_crowd_and_experts(tmp_path):
    data = ImageCaptions(("a.jpg", "b.jpg"), ("x", "y"), np.array([0, 1]), caption_ids=("a.jpg#0", "b.jpg#0"))
    crowd, experts = tmp_path / "crowd.txt", tmp_path / "experts.txt"
    crowd.write_text("a.jpg\tb.jpg#0\t0.25\t1\t3\n")
    experts.write_text("b.jpg\tb.jpg#0\t4\t3\t4\n")
    np.testing.assert_array_equal(HumanJudgements.read(crowd, data).dense(), [[NAN, 0.25], [NAN, NAN]])
    np.testing.assert_allclose(HumanJudgements.read(experts, data).dense(), [[NAN, NAN], [NAN, 11 / 3]], rtol=1e-6)


FLICKR = ImageCaptions(("a.jpg", "b.jpg"), ("x", "y"), np.array([0, 1]), caption_ids=("a.jpg#0", "b.jpg#0"))


def test_crowd_judgements_without_votes_are_listed(tmp_path):
    crowd = tmp_path / "crowd.txt"
    crowd.write_text("a.jpg\tb.jpg#0\t0\t0\t0\nb.jpg\tb.jpg#0\t1\t3\t0\n")
    human = HumanJudgements.read(crowd, FLICKR)
    np.testing.assert_array_equal(human.dense(), [[NAN, NAN], [NAN, 1]])
    (issue,) = human.issues
    assert (issue.kind, issue.where) == ("judgement without votes", f"{crowd}, line 1")


def test_negative_votes_are_refused(tmp_path):
    crowd = tmp_path / "crowd.txt"
    crowd.write_text("a.jpg\tb.jpg#0\t0.25\t5\t-3\n")
    with pytest.raises(UserError, match="line 1: 5 yes and -3 no votes"):
        HumanJudgements.read(crowd, FLICKR)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("a.jpg\tb.jpg#0\t1\t3\t0\n", [[NAN, 1], [NAN, NAN]]),
        ("a.jpg\tb.jpg#0\t0\t0\t3\n", [[NAN, 0], [NAN, NAN]]),
        ("a.jpg\tb.jpg#0\t1\t2\t3\n", [[NAN, 2], [NAN, NAN]]),
        ("image,caption,grade\na.jpg,b.jpg#0,2\n", [[NAN, 2], [NAN, NAN]]),
        ("worker\tcity\timage\tcaption\tgrade\n1\tBonn\ta.jpg\tb.jpg#0\t2\n", [[NAN, 2], [NAN, NAN]]),
    ],
    ids=["crowd", "crowd that said no", "experts", "csv", "tsv of as many columns"],
)
def test_a_file_is_known_by_what_it_holds(tmp_path, content, wanted):
    for name in ("expert_grades.csv", "CrowdFlowerAnnotations.txt", "renamed"):
        (tmp_path / name).write_text(content)
        np.testing.assert_array_equal(HumanJudgements.read(tmp_path / name, FLICKR).dense(), wanted)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('image,caption,grade\na.jpg,5,1\na.jpg,"5,1\n', "line 3: unexpected end of data; correct the quotation marks"),
        ("image,caption,grade\na.jpg,5\n", "line 2: '' is no grade"),
        ("image,text,grade\n", "needs the columns image, caption and grade"),
        ("image,caption,grade\na.jpg,5,good\n", "line 2: 'good' is no grade"),
        ("image,caption,grade\na.jpg,5,nan\n", "line 2: 'nan' is no grade"),
        ("image,caption,grade\na.jpg,5,1\n", r"none of its 1 judgements .* such as 'a.jpg'"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_one_line(tmp_path, content, said):
    file = tmp_path / "grades.csv"
    file.write_text(content)
    with pytest.raises(UserError, match=said) as caught:
        HumanJudgements.read(file, COCO)
    assert "\n" not in str(caught.value)


def test_the_wrong_file_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_text("[1]")
    with pytest.raises(UserError, match="not an object of lists"):
        HumanJudgements.eccv(file, file, COCO)
    with pytest.raises(UserError, match="needs the columns image, caption and grade"):
        HumanJudgements.read(file, COCO)


@pytest.mark.slow
@pytest.mark.real_data
def test_real_judgements_are_all_found(real_data):
    coco = read(real_data / "coco5k" / "captions.tsv", captions_only=True)
    human = HumanJudgements.read(real_data / "coco5k" / "sits_test_half.csv", coco)
    assert (len(human.grades), len(human.issues)) == (22311, 0)
    positives = HumanJudgements.eccv(
        real_data / "coco5k" / "eccv_image_to_caption.json", real_data / "coco5k" / "eccv_caption_to_image.json", coco
    )
    assert len(positives.issues) == 2, "two of its captions are beyond the five of the Karpathy test set"
    text = real_data / "flickr8k" / "Flickr8k_text"
    flickr = read(text / "Flickr8k.token.txt", captions_only=True)
    crowd = HumanJudgements.read(text / "CrowdFlowerAnnotations.txt", flickr)
    assert len(crowd.grades) == 47830
    assert not crowd.issues


@pytest.mark.parametrize("grade", ["1e39", "-1e300", "9" * 5000])
def test_grades_beyond_the_range_of_degrees_are_no_grades(tmp_path, grade):
    file = tmp_path / "grades.csv"
    file.write_text(f"image,caption,grade\n391895,5,{grade}\n")
    with pytest.raises(UserError, match="line 2: .* is no grade"):
        HumanJudgements.read(file, COCO)
    with pytest.raises(UserError, match="grade 1 is no finite number of 32 bits"):
        HumanJudgements([0, 1], [0, 0], [1, 1e39], (2, 3))


def test_a_judgement_file_is_known_and_its_grades_are_means_over_graders(tmp_path):
    data = ImageCaptions(("a.jpg", "b.jpg"), ("a dog", "a cat"), np.array([0, 1]))
    file = tmp_path / "renamed.csv"
    for image, who, grade, text in (
        ("a.jpg", "Ada", 4, "a cat"),
        ("a.jpg", "Bo", 1, "a cat"),
        ("a.jpg", "Bo", 3, "a cat"),
        ("b.jpg", "Bo", 1, "a kitten"),
    ):
        add_judgement(file, Judgement(image, "b.jpg#0", grade, who, now(), hash_of_text(text)))
    human = HumanJudgements.read(file, data)
    assert human.pairs.tolist() == [[0, 1]]
    assert human.grades.tolist() == [3.5]
    assert human.own.tolist() == [False]
    assert [issue.kind for issue in human.issues] == ["judgement of another caption"]
    other = ImageCaptions(("a.jpg", "b.jpg"), ("a dog", "a cow"), np.array([0, 1]))
    with pytest.raises(
        UserError, match=r"3 of its 3 judgements are of other captions, the first at line 1 \('b\.jpg#0'"
    ):
        HumanJudgements.read(file, other)


def test_the_grades_of_an_index_are_known(tmp_path):
    data = ImageCaptions(("a.jpg", "b.jpg"), ("a dog", "a cat"), np.array([0, 1]))
    for query, said in (("a cat", "close"), ("something else", "right")):
        plain = {"query": query, "id": "a.jpg", "grade": said, "when": now()}
        with (tmp_path / "grades.jsonl").open("ab") as file:
            file.write(sealed(plain))
    human = HumanJudgements.read(tmp_path / "grades.jsonl", data)
    assert human.dense().tolist()[0][1] == 0.5
    assert [issue.kind for issue in human.issues] == ["grade of a search that is no caption"]
