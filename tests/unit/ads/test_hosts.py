"""A site's host, and whether a page's is the same."""

import pytest

from node.ads.hosts import host_of_url, same_host, site_host
from node.core.errors import BadInput


@pytest.mark.parametrize("host", ["news.example", "WWW.News.example", "localhost:8080", "127.0.0.1", "a_b.example"])
def test_hosts_are_kept_in_lower_case(host: str) -> None:
    assert site_host(f" {host} ") == host.lower()


@pytest.mark.parametrize(
    "host", ["", " ", "http://x/y", "x/y", "x y", "-x.example", "x..y", "x:port", "a" * 400, "x:123456"]
)
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(BadInput) as caught:
        site_host(host)
    assert caught.value.field == "host"


@pytest.mark.parametrize(
    ("url", "host", "same"),
    [
        ("https://www.example.com/a", "example.com", True),
        ("https://blog.example.com/a", "example.com", False),
        ("https://example.com:8888/a", "example.com", False),
        ("http://localhost:8888/a", "localhost", True),
        ("http://user@example.com/a", "example.com", True),
    ],
)
def test_v26_a_page_belongs_to_its_host(url: str, host: str, same: bool) -> None:
    assert same_host(host_of_url(url), host) is same
