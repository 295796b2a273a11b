import pytest

from rungwise.core import UserError
from rungwise.integrations.engines import ENGINES, open_engine


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("photos.index", "photos.index: no address of an engine; write faiss:FILE"),
        ("", "no address of an engine"),
        ("weaviate://localhost/photos", "no address of an engine"),
        ("qdrant://[::1/photos", "no address of an engine"),
        ("qdrant://localhost:port/photos", "no address of an engine"),
        ("qdrant://localhost/?id=file", "a part is missing; write qdrant://HOST"),
        ("lancedb:///photos", "a part is missing; write lancedb://FOLDER/TABLE"),
        ("postgresql://localhost/photos", "a part is missing; write postgresql://HOST/DATABASE?table=TABLE"),
        ("lancedb://folder/photos?metric=hamming", "metric=hamming is unknown; take cosine, l2 or inner"),
        ("elasticsearch+http://localhost/photos?ids=x", "unknown ids; write elasticsearch+https://"),
        (
            "elasticsearch+http://me:secret@localhost/photos?ids=x",
            "elasticsearch+http://localhost/photos?ids=x: unknown",
        ),
        ("faiss:nowhere.faiss", "nowhere.faiss: no such file"),
    ],
)
def test_a_wrong_address_is_told_in_one_line_without_a_password(address, line):
    with pytest.raises(UserError) as refused:
        open_engine(address)
    assert line in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_engine_has_a_form_that_begins_with_its_name():
    assert all(form.startswith(name) for name, form in ENGINES.items())
