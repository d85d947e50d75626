"""W22: pages from addresses that lead elsewhere, nowhere or on and on: refused, in time and in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from promovolvectl.cli import page_text
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus


class Site(BaseHTTPRequestHandler):
    """Each path is one way of being no page."""

    asked: ClassVar[list[str]] = []
    stop = threading.Event()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path in ("/file", "/loop", "/page"):
            self.send_response(302)
            to = {"/file": "file:///etc/hostname", "/loop": "/loop", "/page": "/text"}
            self.send_header("location", to[self.path])
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        if self.path == "/cut":
            self.send_header("content-length", "99")
        self.end_headers()
        if self.path == "/text":
            self.wfile.write(b"Trains to Vienna")
        while self.path in ("/endless", "/large") and not self.stop.is_set():
            try:
                self.wfile.write(b"x" * (1 << 16) if self.path == "/large" else b"x")
                self.wfile.flush()
            except OSError:
                return
            self.stop.wait(0.0 if self.path == "/large" else 0.01)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    Site.asked, Site.stop = [], threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        Site.stop.set()
        server.shutdown()


def refused(url: str) -> CommandFailed:
    with pytest.raises(CommandFailed) as caught:
        page_text.read(url)
    return caught.value


def test_a_redirect_to_another_page_is_followed(site: str) -> None:
    assert page_text.read(f"{site}/page").data == b"Trains to Vienna"


def test_w22_a_redirect_to_a_file_is_refused(site: str) -> None:
    failure = refused(f"{site}/file")
    assert failure.status is ExitStatus.LOCAL_FILE
    assert "file:///etc/hostname" in failure.message


def test_w22_a_redirect_loop_ends(site: str) -> None:
    assert refused(f"{site}/loop").status is ExitStatus.LOCAL_FILE
    assert 2 <= len(Site.asked) <= 20


def test_w22_a_page_that_never_ends_is_not_waited_for(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_text, "_FETCH_S", 0.2)
    assert "had not ended" in refused(f"{site}/endless").message


def test_w22_a_page_larger_than_memory_is_cut_off(site: str) -> None:
    assert "larger than" in refused(f"{site}/large").message


def test_a_page_that_breaks_off_is_refused(site: str) -> None:
    assert refused(f"{site}/cut").status is ExitStatus.LOCAL_FILE
