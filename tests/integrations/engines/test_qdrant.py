import pytest
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from rungwise.core import UserError
from rungwise.integrations.engines import QdrantEngine, open_engine

DISTANCES = {"cosine": Distance.COSINE, "inner": Distance.DOT, "l2": Distance.EUCLID}


def fill(client: QdrantClient, held, distance: Distance, *, name: str = "") -> None:
    params = VectorParams(size=8, distance=distance)
    client.create_collection("photos", vectors_config={name: params} if name else params)
    points = [
        PointStruct(id=number, vector={name: row.tolist()} if name else row.tolist(), payload={"file": one})
        for number, (one, row) in enumerate(zip(held.ids, held.vectors, strict=True))
    ]
    client.upsert("photos", points)


@pytest.mark.parametrize("metric", ["cosine", "inner", "l2"])
def test_it_finds_what_one_product_at_a_time_finds(held, metric):
    client = QdrantClient(":memory:")
    fill(client, held, DISTANCES[metric])
    held.check(QdrantEngine(client, "photos", id="file"), metric, "root" if metric == "l2" else "")
    own = QdrantEngine(client, "photos").search(held.vectors[5], 1)[0]
    assert own == (str(held.ids.index(held.expected(held.vectors[5], 1, metric)[0][0])),)


def test_named_vectors_in_a_folder_by_their_address(held, tmp_path):
    client = QdrantClient(path=str(tmp_path / "local"))
    fill(client, held, Distance.COSINE, name="clip")
    client.close()
    held.check(open_engine(f"qdrant:{tmp_path}/local/photos?vector=clip&id=file"))


def test_mistakes_are_told_in_one_line(held, tmp_path):
    client = QdrantClient(":memory:")
    fill(client, held, Distance.COSINE)
    with pytest.raises(UserError, match="Qdrant, films: cannot be asked"):
        QdrantEngine(client, "films")
    with pytest.raises(UserError, match="no id in the field of the ids"):
        QdrantEngine(client, "photos", id="name").search(held.vectors[0], 1)
    with pytest.raises(UserError, match="no such folder"):
        open_engine(f"qdrant:{tmp_path}/nowhere/photos")
