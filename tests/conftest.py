"""What all tests share: a PostgreSQL server for the session, one for a test that ends or freezes it, and a quiet end.

PROMOVOLVE_TEST_SCALE makes tests longer, each in its own way, and so the time that they get.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Generator, Iterator

import pytest
from canary import RECENTLY_MADE, fail_if_told

from scripts.postgres_server import PostgresServer

# Set in many an image. Tests start hundreds of nodes and commands, and each would spend more on compiling the sources
# again than on the rest of its start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
RECENTLY_MADE.listen()  # before a module of tests is imported, which may make keys
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts tests in the background has them ignore Ctrl-C, and so would every program that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """No key that this process has made stands in what a test has printed, logged or failed with."""
    report = yield
    fail_if_told(report)
    return report


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


def pytest_collection_finish() -> None:
    """Each run of the simulator begins with a search for garbage: through what it may have left, not through all that
    was imported and collected, which takes longer than most runs."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def levels_of_logging_stay() -> Iterator[None]:
    """A program or a command that a test runs in this process may silence the nodes' log for good; tests after it
    listen to it."""
    kept = _levels()
    yield
    for log, level in _levels().items():
        if level != kept.get(log, logging.NOTSET):
            log.setLevel(kept.get(log, logging.NOTSET))


def _levels() -> dict[logging.Logger, int]:
    known = logging.root.manager.loggerDict
    found = [log for name, log in list(known.items()) if name.partition(".")[0] == "node"]
    return {log: log.level for log in found if isinstance(log, logging.Logger)}
