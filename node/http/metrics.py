"""`/metrics` in Prometheus' text format: the node's own report, nothing kept twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest

from node.engine.index_messages import IndexStatus
from node.engine.nodeservice import NodeService
from node.gossip.latency import BOUNDS_MS, LatencyCounts

EDGE_GAUGES = {
    "limit": "Requests that the edge lets in at once now",
    "in_flight": "Requests that are inside now",
}
BREAKER = "classifier.breaker_open"  # counted by nodes that ask a service


class NodeCollector:
    """Reads the node's report at each scrape."""

    def __init__(self, service: NodeService) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        report = self._service.report(coverage=True)
        gauges = {
            "shards": ("Shards that run here", len(report.running)),
            "entities": ("Entities that live here", sum(report.entities_by_kind.values())),
            "replica_keys": ("Keys with a value in the ServeIndex replica", sum(m.keys for m in report.maps)),
            "replica_lag_ms": ("How long a peer has not acknowledged a write", max(report.lag_ms.values(), default=0)),
            "ready": ("1 when this node takes work", int(report.ready)),
            "coverage_expected": ("Slots here that should have a pool", sum(s.expected for s in report.sites)),
            "coverage_present": ("Slots here that have a pool", sum(s.present for s in report.sites)),
            "resident_bytes": ("Resident memory", report.rss_bytes),
            "faults": ("Faults that hold now", len(report.faults)),
        }
        for name, text in EDGE_GAUGES.items():
            if f"http.{name}" in report.counters:
                gauges[f"http_{name}"] = (text, report.counters[f"http.{name}"])
        if BREAKER in report.counters:
            text = "1 while the service that judges pages is left alone since it failed"
            gauges["classifier_breaker_open"] = (text, report.counters[BREAKER])
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(f"promovolve_{name}", text, value)
        yield CounterMetricFamily("promovolve_requests", "Serve requests of local sites", report.requests_count)
        yield CounterMetricFamily("promovolve_served", "Slots filled", report.served_count)
        yield from replica(self._service.index.status(), self._service.index.visible())
        events = CounterMetricFamily(
            "promovolve_events", "Counters of the machinery; whatever was not handled is among them", labels=["name"]
        )
        for name, count in sorted(report.counters.items()):
            events.add_metric([name], count)
        yield events


def replica(status: IndexStatus, visible: LatencyCounts) -> Iterator[Metric]:
    """The ServeIndex replica: how far others are behind, what moved, what waits."""
    gauges = {
        "uncommitted": ("Changes that are not on disk yet: the overlay", status.uncommitted),
        "tombstones": ("Removals that are remembered", sum(tombstones for _, _, tombstones in status.counts)),
        "pending_removals": ("Removals of this node that no majority has", status.pending_removals),
        "quarantined": ("Damaged entries that wait to be fetched again", status.damaged),
    }
    for name, (text, value) in gauges.items():
        yield GaugeMetricFamily(f"promovolve_replica_{name}", text, value)
    entries = GaugeMetricFamily("promovolve_replica_behind_entries", "Writes that a peer lacks", labels=["peer"])
    age = GaugeMetricFamily("promovolve_replica_behind_ms", "How long it has lacked the oldest", labels=["peer"])
    for row in status.lag:
        entries.add_metric([row.peer], row.entries)
        age.add_metric([row.peer], row.ms)
    yield entries
    yield age
    moved = CounterMetricFamily("promovolve_replica_sent_bytes", "Bytes of entries sent to peers", labels=["by"])
    moved.add_metric(["deltas"], status.counters.get("delta_bytes_sent", 0))
    moved.add_metric(["reconciliation"], status.counters.get("bytes_sent", 0))
    yield moved
    yield CounterMetricFamily("promovolve_replica_commits", "Commits to disk", status.counters.get("commits", 0))
    bounds = [f"{bound / 1_000:g}" for bound in BOUNDS_MS]
    buckets = list(zip((*bounds, "+Inf"), accumulate(visible.counts), strict=True))
    yield HistogramMetricFamily(
        "promovolve_replica_visible_seconds",
        "From a write until a peer acknowledged it, for each peer",
        buckets=buckets,
        sum_value=visible.sum_ms / 1_000,
    )


def exposition(service: NodeService) -> bytes:
    """The page that a scrape gets."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(service))
    return generate_latest(registry)
