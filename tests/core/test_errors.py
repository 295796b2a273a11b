from pathlib import Path

import pytest

from rungwise.core import UserError, with_slashes


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{Path('s3://bucket/pets')}: gone", "s3://bucket/pets: gone"),
        (f"3 rows: {Path('milvus://[::1]:19530/pets')}", "3 rows: milvus://[::1]:19530/pets"),
        ("(gs:/a/b, abfss:/c/d)", "(gs://a/b, abfss://c/d)"),
        ("s3://bucket and file:/x and C:/pets and hf:/models", "s3://bucket and file:/x and C:/pets and hf:/models"),
        ("pics3:/x, a column s3:/ and s3: /x", "pics3:/x, a column s3:/ and s3: /x"),
    ],
)
def test_addresses_have_both_slashes(line: str, said: str) -> None:
    assert with_slashes(line) == said == with_slashes(said)
    assert str(UserError(line)) == said
