import faiss
import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.integrations.engines import FaissEngine


def test_the_inner_product_of_unit_vectors_is_the_cosine(held):
    index = faiss.IndexFlatIP(8)
    index.add(held.vectors / np.linalg.norm(held.vectors, axis=1, keepdims=True))
    engine = FaissEngine(index, held.ids)
    query = held.vectors[3] / np.linalg.norm(held.vectors[3])
    ids, scores = held.expected(query, 5)
    assert list(engine.search(query, 5)[0]) == ids
    np.testing.assert_allclose(engine.search(query, 5)[1], scores, rtol=1e-5)


def test_distances_are_negated_and_rows_are_numbers_without_ids(held, tmp_path):
    index = faiss.IndexFlatL2(8)
    index.add(held.vectors)
    faiss.write_index(index, str(tmp_path / "photos.faiss"))
    held.check(FaissEngine(tmp_path / "photos.faiss", held.ids), "l2")
    assert FaissEngine(index).search(held.vectors[7], 1)[0] == ("7",)


def test_fewer_rows_than_are_asked_for(held):
    index = faiss.IndexFlatIP(8)
    index.add(held.vectors[:3])
    ids, scores = FaissEngine(index).search(held.vectors[0], 10)
    assert len(ids) == len(scores) == 3


def test_mistakes_are_told_in_one_line(held, tmp_path):
    index = faiss.IndexFlatIP(8)
    index.add(held.vectors)
    with pytest.raises(UserError, match="60 rows, but 2 ids"):
        FaissEngine(index, ["a", "b"])
    with pytest.raises(UserError, match=r"nowhere\.faiss: no such file"):
        FaissEngine(tmp_path / "nowhere.faiss")
    with pytest.raises(UserError, match="vectors of 8 numbers, the query has 3"):
        FaissEngine(index).search(held.vectors[0][:3], 1)
    (tmp_path / "text.faiss").write_text("no index of faiss at all")
    with pytest.raises(UserError, match=r"text\.faiss: cannot be asked"):
        FaissEngine(tmp_path / "text.faiss")
