"""Whether a page's host is the one that a site was verified for (reference 3.4, step 2)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from node.core.errors import BadInput
from node.core.limits import host_chars_max

_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*(:[0-9]{1,5})?")


def normalise_host(host: str) -> str:
    """Lower case, without scheme, path and one leading `www.`; the port stays."""
    text = host.strip().lower()
    text = text.partition("://")[2] or text
    text = text.partition("/")[0]
    return text.removeprefix("www.")


def site_host(text: str) -> str:
    """A site's host as it is kept: a name with an optional port, in lower case. Raises BadInput naming `host`."""
    host = text.strip().lower()
    if len(host) > host_chars_max or not _HOST.fullmatch(host):
        raise BadInput("host", f"{text[:60]!r} is not a host name such as news.example or localhost:8080")
    return host


def same_host(host: str, verified: str) -> bool:
    """Equal after normalisation. Of private hosts the ports need only agree where both name one."""
    if host == verified:
        return True
    left, right = normalise_host(host), normalise_host(verified)
    if left == right:
        return True
    left_name, _, left_port = left.partition(":")
    right_name, _, right_port = right.partition(":")
    return left_name == right_name and _private(left_name) and not (left_port and right_port)


def host_of_url(url: str) -> str:
    """The host, with port, that a page's URL names; empty when it has none."""
    return normalise_host(urlsplit(url).netloc.rpartition("@")[2])


def under_domain(host: str, domains: Collection[str]) -> bool:
    """Whether the host is one of these domains, or a name below one; ports are ignored, `domains` are lower-case."""
    name = host.lower().partition(":")[0]
    while name:
        if name in domains:
            return True
        name = name.partition(".")[2]
    return False


def domain_name(text: str) -> str:
    """A domain as it is kept: lower-case, without a port or a leading `www.`. Raises BadInput naming `domain`."""
    name = normalise_host(text)
    if len(name) > host_chars_max or ":" in name or not _HOST.fullmatch(name):
        raise BadInput("domain", f"{text[:60]!r} is not a domain such as shop.example")
    return name


def _private(name: str) -> bool:
    return name == "localhost" or name.startswith(("127.", "10.", "192.168.")) or name.endswith(".local")
