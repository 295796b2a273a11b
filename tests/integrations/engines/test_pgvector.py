"""Tests with a real PostgreSQL, which pgserver starts; it takes seconds."""

import getpass

import pytest

from rungwise.core import UserError
from rungwise.integrations.engines import PgvectorEngine, open_engine

pytestmark = pytest.mark.slow

pgserver = pytest.importorskip("pgserver")


@pytest.fixture(scope="module")
def uri(held, tmp_path_factory):
    import psycopg

    # A short path: the name of its socket may have about a hundred characters.
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE TABLE photos (file text, clip vector(8))")
        with connection.cursor() as cursor:
            for one, row in zip(held.ids, held.vectors, strict=True):
                cursor.execute("INSERT INTO photos VALUES (%s, %s::vector)", (one, str(row.tolist())))
            cursor.execute("INSERT INTO photos VALUES ('without', NULL)")
    yield server.get_uri()
    server.cleanup()


@pytest.mark.parametrize("metric", ["cosine", "inner", "l2"])
def test_it_finds_what_one_product_at_a_time_finds(held, uri, metric):
    engine = PgvectorEngine(uri, "photos", vector="clip", id="file", metric=metric)
    held.check(engine, metric, "root" if metric == "l2" else "")
    sign = "&" if "?" in uri else "?"
    address = f"{uri}{sign}table=public.photos&vector=clip&id=file&metric={metric}"
    held.check(open_engine(address), metric, "root" if metric == "l2" else "")


def test_nothing_can_be_written_and_names_are_no_commands(uri):
    engine = PgvectorEngine(uri, "photos", vector="clip", id="file")
    with pytest.raises(Exception, match="read-only"):
        engine._connection.execute("DELETE FROM photos")
    with pytest.raises(UserError, match="cannot be asked"):
        PgvectorEngine(uri, "photos; DROP TABLE photos", vector="clip", id="file")
    assert engine.count() == 60


def test_mistakes_are_told_in_one_line(uri, tmp_path):
    with pytest.raises(UserError, match=r"pgvector, films: cannot be asked \(relation"):
        PgvectorEngine(uri, "films", vector="clip", id="file")
    with pytest.raises(UserError, match="cannot be asked"):
        open_engine(f"postgresql://{getpass.getuser()}@/db?host={tmp_path}&table=photos")
