"""The reverse proxy: Caddy takes its file, and passes on what it should (SPEC OPS-7)."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.places import CADDYFILE, ROOT, program, run

EVENT = b"data: " + b"x" * 2000 + b"\n\n"
"""Longer than what Caddy begins to compress."""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Caddy writes folders: not into the home of whoever runs the tests."""
    return {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


def test_caddy_takes_the_file(places: dict[str, str]) -> None:
    command = ("validate", "--adapter", "caddyfile", "--config", CADDYFILE)
    code, output = run(program("caddy"), *command, env=places)
    assert code == 0, output
    # It would be told how the file is to be laid out.
    assert '"level":"warn"' not in output


class Upstream(ThreadingHTTPServer):
    """A gateway that says which path it was asked for; its events never end by themselves."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.go_on = threading.Event()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_GET(self) -> None:
        is_stream, is_page = self.path == "/api/events", self.path == "/page"
        kind = "text/event-stream" if is_stream else "text/html; charset=utf-8"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        said = f"{self.headers['Host']}{self.path}".encode() + b" " * (2000 if is_page else 0)
        self._chunk(EVENT if is_stream else said)
        if is_stream:
            self.server.go_on.wait(30)
        self._chunk(b"")

    def _chunk(self, text: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield server
        server.go_on.set()
        server.shutdown()
        serving.join()


@pytest.fixture
def proxy(places: dict[str, str], upstream: Upstream, tmp_path: Path) -> Iterator[int]:
    """Caddy with our file, without TLS; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    env = {
        **os.environ,
        **places,
        "GOCLAW_SITE": f"http://127.0.0.1:{port}",
        "GOCLAW_UPSTREAM": f"127.0.0.1:{upstream.server_port}",
    }
    adapted = subprocess.run(
        [program("caddy"), "adapt", "--adapter", "caddyfile", "--config", CADDYFILE],
        cwd=ROOT, env=env, capture_output=True, timeout=30, check=True,
    )  # fmt: skip
    # Its port for administrators is the same for all Caddys of a machine.
    whole = json.loads(adapted.stdout) | {"admin": {"disabled": True}}
    config = tmp_path / "caddy.json"
    config.write_text(json.dumps(whole))
    command = [str(program("caddy")), "run", "--config", str(config)]
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as caddy:
        try:
            _wait_for(port)
            yield port
        finally:
            caddy.kill()


def _wait_for(port: int) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, "Caddy does not listen"
            time.sleep(0.02)
        else:
            return


@contextmanager
def asked(proxy: int, path: str, takes: str = "identity") -> Iterator[http.client.HTTPResponse]:
    caller = http.client.HTTPConnection("127.0.0.1", proxy, timeout=20)
    try:
        caller.request("GET", path, headers={"Accept-Encoding": takes})
        yield caller.getresponse()
    finally:
        caller.close()


@pytest.mark.parametrize("takes", ["identity", "gzip, deflate, br, zstd"])
def test_events_pass_the_proxy_as_they_come(proxy: int, takes: str) -> None:
    """Browsers always take compressed answers, and compressing waits for more."""
    # The stream has not ended, so nothing may wait for its end.
    with asked(proxy, "/api/events", takes) as answer:
        assert answer.read(len(EVENT)) == EVENT


def test_the_proxy_passes_on_what_is_for_people(proxy: int) -> None:
    for path in ("/", "/telegram", "/api/runs"):
        with asked(proxy, path) as answer:
            # The gateway compares Host with its own names.
            assert (answer.status, answer.read()) == (200, f"127.0.0.1:{proxy}{path}".encode())
    for path in ("/metrics", "/readyz"):
        with asked(proxy, path) as answer:
            assert (answer.status, answer.read()) == (404, b"")
    with asked(proxy, "/") as answer:
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    with asked(proxy, "/page", "gzip") as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(answer.read()).endswith(b"/page" + b" " * 2000)


class Authelia(ThreadingHTTPServer):
    """Knows one person, who has no groups, by a cookie."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Judgement)


class _Judgement(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_ann = self.headers.get("Cookie") == "who=ann"
        self.send_response(200 if is_ann else 401)
        if is_ann:
            self.send_header("Remote-User", "ann")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Names(ThreadingHTTPServer):
    """A gateway that says what it is told of a person."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Name)


class _Name(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        names = ("Remote-User", "Remote-Groups", "X-Forwarded-For")
        said = json.dumps([self.headers.get_all(name) for name in names]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[int]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_behind_the_guide_s_proxy_nobody_chooses_a_name(
    places: dict[str, str], tmp_path: Path
) -> None:
    """SPEC SEC-10: what a browser says of itself is gone, whatever Authelia leaves open."""
    guide = (ROOT / "docs/guide/sign-in.md").read_text()
    (block,) = [one for one in guide.split("```") if "forward_auth authelia" in one]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    with serving(Authelia()) as authelia, serving(Names()) as names:
        block = block.replace("authelia:9091", f"127.0.0.1:{authelia}")
        block = block.replace("127.0.0.1:8420", f"127.0.0.1:{names}")
        file = tmp_path / "Caddyfile"
        file.write_text(f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{block}\n}}\n")
        command = [str(program("caddy")), "run", "--adapter", "caddyfile", "--config", str(file)]
        env = {**os.environ, **places}
        with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as caddy:
            try:
                _wait_for(port)
                found = [
                    _say(port, {**said, "Cookie": cookie})
                    for cookie in ("who=ann", "")
                    for said in (
                        {},
                        {"Remote-User": "root", "Remote-Groups": "ops"},
                        {"remote-groups": "ops", "X-Forwarded-For": "192.0.2.1"},
                    )
                ]
            finally:
                caddy.kill()
    assert [status for status, _ in found] == [200] * 3 + [401] * 3
    for _, said in found[:3]:
        # Of a header that is not there Caddy may pass on its own name for it.
        user, groups, address = said
        assert (user, address) == (["ann"], ["127.0.0.1"])
        assert "ops" not in str(groups)


def _say(port: int, headers: dict[str, str]) -> tuple[int, Any]:
    caller = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        caller.request("GET", "/jobs", headers=headers)
        answer = caller.getresponse()
        body = answer.read()
        return answer.status, json.loads(body) if body else None
    finally:
        caller.close()
