"""Which store the settings open, and what its secret file must be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from postgres_clock import new_schema, run_sql

from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.core.settings import StoreSection
from node.store import port
from node.store.lanes import Lane
from node.store.opening import open_store, place, read_dsn
from scripts.postgres_server import PostgresServer

LEASE = port.AcquireLease("c", "n1@1", 1_000)


def test_lmdb_has_one_lane_in_its_folder(tmp_path: Path) -> None:
    section = StoreSection(kind="lmdb", path=tmp_path / "store")
    store, lane_of = open_store(section, "n1", SystemClock())
    assert lane_of(LEASE) is lane_of(port.ReadPlacement()) is Lane.WRITES
    store.close()
    assert (tmp_path / "store" / "data.mdb").exists()
    assert place(section) == str(tmp_path / "store")


def test_postgres_is_reached_by_a_private_file_and_leases_have_their_lane(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    secret = tmp_path / "dsn"
    secret.write_text(postgres.dsn + "\n")
    secret.chmod(0o600)
    schema = new_schema()
    section = StoreSection(kind="postgres", dsn_file=secret, schema_name=schema, pool_size=3, deadline_ms=9_000)
    store, lane_of = open_store(section, "n7", SystemClock())
    assert [lane_of(request) for request in (LEASE, port.ReadPlacement())] == [Lane.LEASES, Lane.READS]
    assert store.apply([port.NextIncarnation("n7")]) == [port.Incarnation(1)]
    names = run_sql(postgres.dsn, "SELECT DISTINCT application_name FROM pg_stat_activity")
    assert "promovolve-node n7" in {row[0] for row in names}
    store.close()
    assert run_sql(postgres.dsn, f"SELECT number FROM {schema}.incarnations")[0][0] == 1
    assert schema in place(section)


def test_without_a_file_the_environment_says_where_the_database_is(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PGHOST", str(postgres.root)), ("PGUSER", "postgres"), ("PGDATABASE", "postgres")):
        monkeypatch.setenv(name, value)
    store, _ = open_store(StoreSection(kind="postgres", schema_name=new_schema()), "n1", SystemClock())
    assert store.apply([port.NextIncarnation("n1")]) == [port.Incarnation(1)]
    store.close()


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [
        ("postgresql://u:hunter2@h/d", 0o640, "can be used by others (mode 0640)"),
        ("host=h password=hunter2", 0o600, "does not begin with postgresql://"),
        ("x" * 5_000, 0o600, "longer than"),
        (None, 0o600, "No such file"),
    ],
)
def test_a_connection_string_that_others_could_read_is_refused_and_never_quoted(
    tmp_path: Path, text: str | None, mode: int, said: str
) -> None:
    file = tmp_path / "dsn"
    if text is not None:
        file.write_text(text)
        os.chmod(file, mode)  # noqa: PTH101 - the mode is the point
    with pytest.raises(OperatingError) as caught:
        read_dsn(file)
    assert caught.value.code == "E-DSN-FILE"
    assert said in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint
