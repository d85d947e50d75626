"""A PostgreSQL server for whoever asks: one for the session, and one of its own for a test that ends or freezes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts.postgres_server import PostgresServer


def _running(*, tcp: bool = False) -> Iterator[PostgresServer]:
    server = PostgresServer(tcp=tcp)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Shared: use a schema of your own in it."""
    yield from _running()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """One that may be stopped, frozen and started."""
    yield from _running()
