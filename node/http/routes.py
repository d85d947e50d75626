"""What the HTTP API takes and answers, as data: dispatch and `openapi.json` both come from this table."""

from __future__ import annotations

from typing import Final

import msgspec

from node.http import answers, bodies, probes
from node.http.admin_routes import ADMIN, WEBHOOK
from node.http.overload import Kind
from node.http.route import GET, POST, TEXT, Route


def _probe(path: str, summary: str, answer: type[msgspec.Struct]) -> Route:
    return Route(
        method=GET, path=path, name=f"probe{path.replace('/', '_')}", summary=summary, answer=answer, other=(503,)
    )


def _beacon(event: str, summary: str) -> Route:
    return Route(
        method=GET,
        path=f"/v1/{event}",
        name=event,
        summary=summary,
        query=bodies.BeaconQuery,
        status=204,
        problems=(400, 403, 404, 409, 429, 503),
        kind=Kind.EVENT,
    )


PUBLIC: Final = (
    Route(
        method=POST,
        path="/v1/serve/batch",
        name="serve",
        summary="A winner for each slot of a page that has one; 204 when the site is suspended",
        body=bodies.ServeBody,
        answer=answers.Served,
        problems=(400, 403, 404, 408, 413, 503),
        kind=Kind.SERVE,
    ),
    Route(
        method=POST,
        path="/v1/classify-page",
        name="classify",
        summary="Take a page's text; answered at once, judged later",
        body=bodies.ClassifyBody,
        answer=answers.Taken,
        status=202,
        problems=(400, 403, 404, 408, 413, 503),
        kind=Kind.CLASSIFY,
    ),
    _beacon("imp", "An ad was seen: a signed beacon, counted once"),
    _beacon("click", "An ad was clicked: a signed beacon, counted once"),
    _beacon("cta", "An ad's call to action was followed: a signed beacon, counted once"),
    Route(
        method=POST,
        path="/v1/beacon/mount",
        name="mount",
        summary="How far a page's tag came: counted, whatever it says",
        body=bodies.MountBody,
        status=204,
        problems=(400, 408, 413, 503),
        kind=Kind.EVENT,
    ),
    Route(
        method=POST,
        path="/v1/sites/{site}/token-check",
        name="checkToken",
        summary="Whether a tag carries its site's token",
        body=bodies.TokenBody,
        answer=answers.TokenChecked,
        problems=(400, 404, 408, 413, 429, 503),
        kind=Kind.EVENT,
    ),
    Route(
        method=POST,
        path="/v1/dogear-event",
        name="fold",
        summary="A reader folded the corner of an ad to keep it, or smoothed it again",
        body=bodies.FoldBody,
        status=204,
        problems=(400, 403, 404, 408, 409, 413, 429, 503),
        kind=Kind.EVENT,
    ),
    Route(method=GET, path="/openapi.json", name="openapi", summary="This document"),
    Route(method=GET, path="/metrics", name="metrics", summary="The node's counters, for Prometheus", media=TEXT),
    *(_probe(path, "Whether the process lives", answers.Alive) for path in probes.ALIVE),
    *(_probe(path, "Whether the node takes work", answers.Ready) for path in probes.READY),
    *(_probe(path, "Whether the node has started", answers.Startup) for path in probes.STARTUP),
)


# What a node with the api role answers.
EVERY: Final = (*PUBLIC, *ADMIN, WEBHOOK)
