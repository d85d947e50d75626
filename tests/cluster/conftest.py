"""One demonstration cluster for all tests here: four processes, whole again before each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from canary import Sampler
from cluster_world import Cluster
from overheard import EVERYBODY


@pytest.fixture(scope="session", autouse=True)
def nobody_tells_a_secret() -> Iterator[None]:
    """No byte of a key or token of any cluster stands in arguments, answers, errors, logs, reports, bundles, audit or
    stores where it may not: everything was kept, and is judged when all are over."""
    sampler = Sampler()
    sampler.start()
    yield
    sampler.stop()
    told = [f"arguments of a process: {name}" for line in sampler.seen for name in EVERYBODY.arguments.found(line)]
    assert EVERYBODY.findings + told == []


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.up("--demo")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


@pytest.fixture
def cluster(_shared: Cluster) -> Cluster:
    """All nodes up, replicas equal, all slots filled."""
    _shared.restore("--demo")
    return _shared


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure here is read with what the nodes said."""
    report = yield
    found = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(found, Cluster):
        report.sections.append(("nodes' logs", "\n".join(found.logs())))
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder starts processes, also what forgets to say so."""
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.cluster)
