"""PostgreSQL's protocol, as far as statements and their ends can be counted in it.

``Dialogue`` follows the bytes of one connection of the measured gateway. ``Server`` is a connection
of the measurement itself, which waits for its answers.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections import Counter, deque
from pathlib import Path

_HEADER = struct.Struct("!cI")
_STARTUP = struct.Struct("!II")
_PROTOCOL = 196_608
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"--[^\n]*")
END = b"(end)"
TRANSACTIONS = "transactions"
"""Counted among the statements: answers after which the connection is in no transaction."""


def plain(query: str) -> str:
    """Return a query without its comments and line breaks."""
    return _SPACE.sub(" ", _COMMENT.sub("", query)).strip().removesuffix(";")


def names(package: Path) -> dict[str, str]:
    """Return the name of each query in the product's files, such as ``runs.begin``, by its text."""
    found = {}
    for file in sorted(package.rglob("queries/*.sql")):
        _, *blocks = re.split(r"^-- (name|part): (\w+)$", file.read_text(), flags=re.MULTILINE)
        bodies = dict(zip(blocks[1::3], blocks[2::3], strict=True))
        for name, body in bodies.items():
            while "-- use: " in body:  # parts may use parts
                body = re.sub(r"-- use: (\w+)", lambda use, b=bodies: b[use[1]], body)  # noqa: PLW2901
            found[plain(body)] = f"{file.stem}.{name}"
    return found


class Dialogue:
    """One connection of the gateway: what it has asked, and what of that is not answered yet."""

    def __init__(self, names: dict[str, str], statements: Counter[str]) -> None:
        self._names = names
        self._statements = statements
        self._works = False
        self._prepared: dict[bytes, str] = {}
        self._sent = b""
        self._received = b""
        self._begun = False
        self.awaited: deque[bytes] = deque()
        """What ends each request: ``Z``, the end of a description, or that of the connection."""
        self.pid = 0
        self.listens = False

    def send(self, data: bytes) -> None:
        """Follow what the gateway sends."""
        self._sent += data
        if not self._begun and len(self._sent) >= _STARTUP.size:
            size, kind = _STARTUP.unpack_from(self._sent)
            self._sent, self._begun = self._sent[size:], True
            if kind == _PROTOCOL:
                self.awaited.append(b"Z")
        while len(self._sent) >= _HEADER.size:
            kind_of, size = _HEADER.unpack_from(self._sent)
            if len(self._sent) <= size:
                return
            body, self._sent = self._sent[5 : size + 1], self._sent[size + 1 :]
            self._asked(kind_of, body)

    def _asked(self, kind: bytes, body: bytes) -> None:
        match kind:
            case b"P":
                name, query = body.split(b"\0", 2)[:2]
                self._prepared[name] = self._name(query.decode())
                self.listens |= query.lower().startswith(b"listen ")
            case b"B":
                name = body.split(b"\0", 2)[1]
                self._count(self._prepared.get(name, "(not prepared)"))
            case b"Q":
                self._count(self._name(body[:-1].decode()))
                self.awaited.append(b"Z")
            case b"S":
                self.awaited.append(b"Z")
            case b"H":
                self.awaited.append(b"TnE")
            case b"X":
                self.awaited.append(END)
            case _:
                pass

    def _count(self, name: str) -> None:
        self._works = True
        self._statements[name] += 1

    def _name(self, query: str) -> str:
        text = plain(query)
        return self._names.get(text) or " ".join(text.split()[:2]).lower()[:40]

    def receive(self, data: bytes) -> None:
        """Follow what the server answers."""
        self._received += data
        while len(self._received) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._received)
            if len(self._received) <= size:
                return
            if kind == b"K":
                (self.pid,) = struct.unpack_from("!I", self._received, 5)
            if self.awaited and self.awaited[0] != END and kind in self.awaited[0]:
                self.awaited.popleft()
            if kind == b"Z" and self._works and self._received[5:6] == b"I":
                self._works = False
                self._statements[TRANSACTIONS] += 1
            self._received = self._received[size + 1 :]


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message of the protocol."""
    return kind + struct.pack("!I", len(body) + 4) + body


class Server:
    """A connection to the embedded server of a state folder, for looking at its counters."""

    def __init__(self, state: Path) -> None:
        lines = _server_facts(state)
        self._socket = socket.socket(socket.AF_UNIX)
        # The path may be longer than an address of a socket: so it is opened as a folder.
        folder = os.open(lines[4], os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._socket.connect(f"/proc/self/fd/{folder}/.s.PGSQL.{lines[3]}")
        finally:
            os.close(folder)
        given = b"user\0goclaw\0database\0goclaw\0application_name\0ledger\0\0"
        self._socket.sendall(struct.pack("!II", len(given) + 8, _PROTOCOL) + given)
        self._answers()

    def rows(self, query: str) -> list[list[str]]:
        """Run statements; return the rows as texts."""
        self._socket.sendall(message(b"Q", query.encode() + b"\0"))
        return self._answers()

    def _answers(self) -> list[list[str]]:
        rows: list[list[str]] = []
        for kind, body in answers(self._socket, bytearray()):
            if kind == b"D":
                rows.append(_values(body))
            elif kind == b"E":
                raise RuntimeError(body.decode(errors="replace"))
        return rows

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def socket_folder(state: Path) -> Path:
    """Return the folder of the socket of the embedded server of a state folder."""
    return Path(_server_facts(state)[4])


def _server_facts(state: Path) -> list[str]:
    (file,) = state.glob("postgres/data/postmaster.pid")
    return file.read_text().splitlines()


def answers(connection: socket.socket, read: bytearray) -> list[tuple[bytes, bytes]]:
    """Read all messages up to the end of an answer; ``read`` is what was read of them before."""
    found: list[tuple[bytes, bytes]] = []
    while not found or found[-1][0] != b"Z":
        kind, size = _HEADER.unpack(_exactly(connection, read, _HEADER.size))
        found.append((kind, _exactly(connection, read, size - 4)))
    return found


def _exactly(connection: socket.socket, read: bytearray, size: int) -> bytes:
    while len(read) < size:
        piece = socket.socket.recv(connection, 1 << 16)
        if not piece:
            raise ConnectionError("the database has closed the connection")
        read += piece
    data = bytes(read[:size])
    del read[:size]
    return data


def _values(body: bytes) -> list[str]:
    (count,) = struct.unpack_from("!H", body)
    values, at = [], 2
    for _ in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append("" if size < 0 else body[at : at + size].decode())
        at += max(size, 0)
    return values
