import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, Provenance, evaluate, similarity_source


def test_a_chunk_holds_a_query():
    with pytest.raises(UserError, match="^chunk must be at least 1, got 0$"):
        EvaluationSettings(chunk=0)


def test_a_collection_names_its_data_and_its_queries():
    data = ImageCaptions(("one.jpg", "two.jpg"), ("a dog", "a cat"), np.array([0, 1]), name="pets")
    known = Provenance.of(data, split="val", model_hash="5eed", seed=3, relevance_name="by hand")
    result = evaluate(similarity=np.eye(2), image_of_caption=[0, 1], provenance=known)
    assert (result.data_name, result.data_hash, result.dataset) == ("pets", data.content_hash(), "")
    assert (result.split, result.model_hash, result.seed) == ("val", "5eed", 3)
    assert (result.query_ids("i2t"), result.query_ids("t2i")) == (data.image_ids, data.caption_ids)
    assert result.relevance == ""  # no measure read degrees
    graded = evaluate(
        similarity=np.eye(2), image_of_caption=[0, 1], relevance=np.eye(2), measures=["CS@2"], provenance=known
    )
    assert graded.relevance == "by hand"


def test_a_source_refuses_another_number_of_images():
    with pytest.raises(UserError, match="images=4 but 3 images were given"):
        similarity_source(image_embeddings=np.eye(3), text_embeddings=np.eye(3), image_of_caption=[0, 1, 2], images=4)
