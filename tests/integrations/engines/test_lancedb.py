import lancedb
import pyarrow as pa
import pytest

from rungwise.core import UserError
from rungwise.integrations.engines import LanceDBEngine, open_engine


@pytest.fixture(scope="module")
def place(held, tmp_path_factory):
    folder = tmp_path_factory.mktemp("database")
    rows = pa.table(
        {
            "file": held.ids,
            "clip": pa.FixedSizeListArray.from_arrays(pa.array(held.vectors.ravel()), 8),
        }
    )
    lancedb.connect(str(folder)).create_table("photos", rows)
    return folder


@pytest.mark.parametrize("metric", ["cosine", "inner", "l2"])
def test_it_finds_what_one_product_at_a_time_finds(held, place, metric):
    held.check(LanceDBEngine(str(place), "photos", vector="clip", id="file", metric=metric), metric)
    held.check(open_engine(f"lancedb://{place}/photos?vector=clip&id=file&metric={metric}"), metric)


def test_mistakes_are_told_in_one_line(place):
    with pytest.raises(UserError, match="no column vector; it has file, clip"):
        LanceDBEngine(str(place), "photos", id="file")
    with pytest.raises(UserError, match="cannot be asked"):
        LanceDBEngine(str(place), "films", vector="clip", id="file")
