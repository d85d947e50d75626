"""Publishers: what holds on all of their sites; and a site's end."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.publisher_get")
class GetPublisher(msgspec.Struct, frozen=True, kw_only=True):
    publisher: str


@wire_type("admin.publisher_site")
class PublisherSite(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    host: str


@wire_type("admin.publisher")
class PublisherShow(msgspec.Struct, frozen=True, kw_only=True):
    """`untold`: sites that have not confirmed yet that they know what was ordered last; they are told again."""

    publisher: str
    suspended: bool
    sites: tuple[PublisherSite, ...]
    blocked_domains: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    changed: bool = True


@wire_type("admin.publisher_update")
class UpdatePublisher(msgspec.Struct, frozen=True, kw_only=True):
    """What holds on all of a publisher's sites, on top of each one's own. What is None or empty stays as it is."""

    publisher: str
    suspended: bool | None = None
    block_domains: tuple[str, ...] = ()
    unblock_domains: tuple[str, ...] = ()
    reason: str = ""
    request_id: str = ""


@wire_type("admin.site_delete")
class DeleteSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site, its pages, approvals and pools, for ever. Answered by the site as it was left."""

    site: str
    reason: str = ""
    request_id: str = ""
