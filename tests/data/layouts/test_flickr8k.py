from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import Issue, read


def published(root: Path) -> Path:
    """The published layout in small: four pictures, one of them without captions and on no list."""
    texts, pictures = root / "Flickr8k_text", root / "Flicker8k_Dataset"
    texts.mkdir()
    pictures.mkdir()
    for name in ("1_a.jpg", "2_b.jpg", "3_c.jpg", "4_d.jpg"):
        (pictures / name).touch()
    lines = ["1_a.jpg#0\tA dog .", "1_a.jpg#3\tA pet .", "2_b.jpg#0\tA cat\u2028runs .", "3_c.jpg#0\tA cow .", ""]
    (texts / "Flickr8k.token.txt").write_text("\n".join(lines), encoding="utf-8")
    (texts / "Flickr8k.lemma.txt").write_text("1_a.jpg#0\ta dog be .\n")
    (texts / "CrowdFlowerAnnotations.txt").write_text("1_a.jpg\t2_b.jpg#0\t1\t3\t0\n")
    for split, name in (("train", "1_a.jpg"), ("dev", "2_b.jpg"), ("test", "3_c.jpg")):
        (texts / f"Flickr_8k.{split}Images.txt").write_text(f"{name}\n")
    return root


def test_the_published_layout(tmp_path: Path) -> None:
    data = read(published(tmp_path))
    assert data.layout == "flickr8k"
    assert data.image_ids == ("1_a.jpg", "2_b.jpg", "3_c.jpg", "4_d.jpg")
    assert data.splits == ("train", "val", "test", "none")
    assert data.captions == ("A dog .", "A pet .", "A cat\u2028runs .", "A cow .")
    assert data.caption_ids == ("1_a.jpg#0", "1_a.jpg#3", "2_b.jpg#0", "3_c.jpg#0")
    assert data.image_of_caption.tolist() == [0, 0, 1, 2]
    assert [path.name for path in data.paths] == list(data.image_ids)


def test_a_caption_of_a_picture_that_does_not_exist_is_kept_account_of(tmp_path: Path) -> None:
    root = published(tmp_path)
    token = next(root.rglob("*.token.txt"))
    token.write_text(token.read_text(encoding="utf-8") + "9_z.jpg.1#0\tA ghost .\n", encoding="utf-8")
    data = read(root)
    assert data.issues == (
        Issue("missing picture", f"{token}, line 5", "no picture named '9_z.jpg.1'; left out: 'A ghost .'"),
    )
    assert len(data.captions) == 4


def test_captions_alone(tmp_path: Path) -> None:
    token = next(published(tmp_path).rglob("*.token.txt"))
    data = read(token, captions_only=True)
    assert data.paths == ()
    assert data.image_ids == ("1_a.jpg", "2_b.jpg", "3_c.jpg")
    with pytest.raises(UserError, match=r"line 1: no picture named '1_a.jpg', nor any other .* give the folder"):
        read(token)


def test_a_picture_on_two_lists_stays_in_the_first_split(tmp_path: Path) -> None:
    root = published(tmp_path)
    path = next(root.rglob("*trainImages.txt"))
    path.write_text("1_a.jpg\n3_c.jpg\n")
    data = read(root)
    assert data.splits[2] == "test"
    assert [issue.kind for issue in data.issues] == ["conflicting splits"]
    assert data.issues[0].where == f"{path}, line 2"


def test_a_line_of_another_form_is_listed(tmp_path: Path) -> None:
    root = published(tmp_path)
    token = next(root.rglob("*.token.txt"))
    token.write_text("1_a.jpg#0\tA dog .\n1_a.jpg A pet .\n")
    data = read(root)
    assert data.captions == ("A dog .",)
    (issue,) = data.issues
    assert (issue.kind, issue.where) == ("malformed row", f"{token}, line 2")
    assert issue.detail == "not '<picture>#<number>', tab, caption; left out: '1_a.jpg A pet .'"


def test_an_id_given_twice_is_listed_and_both_captions_stay(tmp_path: Path) -> None:
    root = published(tmp_path)
    next(root.rglob("*.token.txt")).write_text("1_a.jpg#0\tA dog .\n1_a.jpg#0\tA pet .\n1_a.jpg#1\tA pup .\n")
    data = read(root)
    assert dict(zip(data.caption_ids, data.captions, strict=True)) == {
        "1_a.jpg#0": "A dog .", "1_a.jpg#2": "A pet .", "1_a.jpg#1": "A pup .",
    }  # fmt: skip
    assert [issue.kind for issue in data.issues] == ["repeated caption id"]


def test_of_several_token_files_the_one_of_the_shortest_name_is_read(tmp_path: Path) -> None:
    root = published(tmp_path)
    (root / "Flickr8k_text" / "Flickr8k.lemma.token.txt").write_text("1_a.jpg#0\ta dog be .\n")
    data = read(root)
    assert (data.layout, data.captions[0]) == ("flickr8k", "A dog .")
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("captions left out", "Flickr8k_text/Flickr8k.lemma.token.txt")
    ]
    assert "Flickr8k_text/Flickr8k.token.txt is read; to read it in place of that: --captions" in data.issues[0].detail


def test_flickr30k_as_published(tmp_path: Path) -> None:
    (tmp_path / "flickr30k_images").mkdir()
    (tmp_path / "flickr30k_images" / "1000092795.jpg").touch()
    lines = [f'1000092795.jpg#{number}\tTwo "young guys" {number} .' for number in range(5)]
    (tmp_path / "results_20130124.token").write_text("\n".join(lines))
    for data in (read(tmp_path), read(tmp_path / "results_20130124.token")):
        assert (data.image_ids, len(data.captions), data.issues) == (("1000092795.jpg",), 5, ())
        assert data.captions[3] == 'Two "young guys" 3 .'


@pytest.mark.parametrize("content", ["", "nothing of this kind\n", "b.jpg#0\tA dog .\n", "\xff"])
def test_a_token_file_beside_other_pictures_ends_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "x.token").write_text(content, encoding="latin-1")
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("folder", ("a.jpg",))
    assert [(issue.kind, issue.where) for issue in data.issues] == [("captions left out", "x.token")]


@pytest.mark.real_data
def test_the_real_collection(real_data: Path) -> None:
    data = read(real_data / "flickr8k")
    assert data.layout == "flickr8k"
    assert (len(data), len(data.captions)) == (8091, 40455)
    assert Counter(data.splits) == {"train": 6000, "val": 1000, "test": 1000, "none": 91}
    assert (np.bincount(data.image_of_caption) == 5).all()
    assert all(path.stem in image_id for path, image_id in zip(data.paths, data.image_ids, strict=True))
    assert data.issues == ()


def test_an_empty_list_of_a_split_is_no_fault_of_the_captions(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    (tmp_path / "Flickr8k.token.txt").write_text("a.jpg#0\tA dog .\nb.jpg#0\tA cat .\n")
    (tmp_path / "Flickr_8k.trainImages.txt").write_text("a.jpg\n")
    (tmp_path / "Flickr_8k.devImages.txt").touch()
    data = read(tmp_path)
    assert (data.captions, data.splits) == (("A dog .", "A cat ."), ("train", "none"))
    assert [issue.kind for issue in data.issues] == ["list of a split left out"]
