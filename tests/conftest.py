"""A PostgreSQL server for whoever asks: one for the session, and one of its own for a test that ends or freezes it.

PROMOVOLVE_TEST_SCALE makes tests longer, each in its own way, and so the time that they get.
"""

from __future__ import annotations

import os
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    scale = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
    if scale > 1:
        scaled = pytest.mark.timeout(scale * float(config.getini("timeout")))
        for item in items:
            item.add_marker(scaled)
