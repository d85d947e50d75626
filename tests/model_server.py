"""A server of ours that stands in for a service which judges pages: real sockets, a script of answers, and a memory.

It speaks one service's format (`model_formats`) and refuses what that service would. Each request takes the next answer
of the script, the last one for ever.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from model_formats import Format


@dataclass(frozen=True)
class Answer:
    """`cut`: so many bytes of the body are missing when the connection ends. `held`: nothing comes until the server is
    closed. `raw`: the body, in place of the document."""

    document: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    held: bool = False
    raw: bytes | None = None

    @property
    def body(self) -> bytes:
        return json.dumps(self.document).encode() if self.raw is None else self.raw


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class ModelServer:
    """`with ModelServer(FORMATS["openai"]) as server`: it listens until the block ends."""

    def __init__(self, spoken: Format) -> None:
        self.spoken = spoken
        self.script: list[Answer] = []
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.arrived = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}{self.spoken.base}"

    def says(self, text: str, **more: Any) -> Answer:
        """The model answers with a text, in the service's format."""
        return Answer(self.spoken.answer(text), **more)

    def fails(self, status: int, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(self.spoken.error(status, "try again later"), status, named)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _next(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            self.arrived.set()
            answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if asked.path != self.spoken.path:
            return Answer(self.spoken.error(404, "no such path"), 404)
        refused = self.spoken.refused(asked.headers, asked.body)
        if refused:
            status = self.spoken.wrong_key if "key" in refused.lower() else 400
            return Answer(self.spoken.error(status, refused), status)
        return answer

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = server._next(Asked(self.path, headers, body))
                if answer.held:
                    server._closing.wait()
                    self.close_connection = True
                    return
                whole = answer.body
                self.send_response(answer.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(whole)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(whole[: len(whole) - answer.cut])
                self.close_connection = bool(answer.cut)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler
