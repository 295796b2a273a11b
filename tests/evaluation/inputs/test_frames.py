import numpy as np
import pandas as pd
import pytest

from rungwise.core import UserError
from rungwise.evaluation.inputs import vectors_of_frame


def test_vectors_are_columns_or_stand_in_one_and_ids_stand_in_the_index():
    wide = pd.DataFrame(np.eye(2, dtype=np.float32), index=["b", "a"])
    for frame in (wide, pd.Series(list(np.eye(2)), index=["b", "a"])):
        vectors, ids = vectors_of_frame(frame, "image_embeddings")
        assert (vectors.tolist(), ids) == ([[1, 0], [0, 1]], ("b", "a"))
    assert vectors_of_frame(wide, "image_embeddings")[0].dtype == np.float32


@pytest.mark.parametrize("column", [["a", "b"], [[1.0], [1.0, 2.0]], [[1.0], None]])
def test_what_is_no_vector_is_refused(column):
    with pytest.raises(UserError, match="image_embeddings: the columns v are no vectors of one length"):
        vectors_of_frame(pd.DataFrame({"v": column}), "image_embeddings")
