"""Whether a page's host is the one that a site was verified for (reference 3.4, step 2)."""

from __future__ import annotations

from urllib.parse import urlsplit


def normalise_host(host: str) -> str:
    """Lower case, without scheme, path and one leading `www.`; the port stays."""
    text = host.strip().lower()
    text = text.partition("://")[2] or text
    text = text.partition("/")[0]
    return text.removeprefix("www.")


def same_host(host: str, verified: str) -> bool:
    """Equal after normalisation. Of private hosts the ports need only agree where both name one."""
    left, right = normalise_host(host), normalise_host(verified)
    if left == right:
        return True
    left_name, _, left_port = left.partition(":")
    right_name, _, right_port = right.partition(":")
    return left_name == right_name and _private(left_name) and not (left_port and right_port)


def host_of_url(url: str) -> str:
    """The host, with port, that a page's URL names; empty when it has none."""
    return normalise_host(urlsplit(url).netloc.rpartition("@")[2])


def _private(name: str) -> bool:
    return name == "localhost" or name.startswith(("127.", "10.", "192.168.")) or name.endswith(".local")
