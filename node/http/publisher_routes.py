"""Administration of publishers: what holds on all of their sites."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import publishers
from node.http import admin_bodies as b
from node.http.guarded_route import guarded
from node.http.route import DELETE, GET, POST

_PUBLISHER: Final = "/v1/publishers/{publisher}"
_BLOCKLIST: Final = f"{_PUBLISHER}/blocklist"

PUBLISHERS: Final = (
    guarded(
        *(GET, _PUBLISHER, "showPublisher", "A publisher, its sites and what holds on all of them", "sites:read"),
        answer=publishers.PublisherShow,
        order=lambda at, _, __: publishers.GetPublisher(publisher=at["publisher"]),
    ),
    guarded(
        *(POST, _BLOCKLIST, "blockEverywhere", "Block domains on all of a publisher's sites", "sites:write"),
        body=b.Domains,
        answer=publishers.PublisherShow,
        order=lambda at, _, body: publishers.UpdatePublisher(publisher=at["publisher"], block_domains=body.domains),
    ),
    guarded(
        *(DELETE, _BLOCKLIST, "unblockEverywhere", "Take domains from those that a publisher blocks", "sites:write"),
        body=b.Domains,
        answer=publishers.PublisherShow,
        order=lambda at, _, body: publishers.UpdatePublisher(publisher=at["publisher"], unblock_domains=body.domains),
    ),
)
