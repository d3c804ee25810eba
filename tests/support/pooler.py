"""A real PgBouncer in front of the tests' server."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from goclaw_py.store.postgres import Address
from tests.support.process import wait_for
from tests.tools.debian_tools import path_of

PORT = 6432
START_S = 60.0


@contextmanager
def pooler(address: Address, mode: str, settings: Mapping[str, str]) -> Iterator[Address]:
    """How to reach a server through a pooler in a mode: ``session``, ``transaction``…"""
    with tempfile.TemporaryDirectory(prefix="goclaw-pgb-", dir="/tmp") as name:
        folder = Path(name)
        # It refuses to run as root, and root's folders are closed to everybody else.
        owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if owner is not None:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            assert address.host is not None
            for opened in (Path(address.host), Path(address.host).parent):
                opened.chmod(0o711)
        for program in ("pgbouncer", "libcares.so.2"):
            shutil.copy(path_of(program), folder / program)
        file = folder / "pgbouncer.ini"
        file.write_text(_ini(address, folder, mode, settings))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [folder / "pgbouncer", file],
                env={"LD_LIBRARY_PATH": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=None if owner is None else owner.pw_uid,
                group=None if owner is None else owner.pw_gid,
                extra_groups=None if owner is None else [],
            )
        try:
            wait_for(lambda: _answers(folder / f".s.PGSQL.{PORT}"), "the pooler", limit_s=START_S)
            user, database = address.user, address.database
            yield Address(f"postgresql://{user}@/{database}?host={folder}&port={PORT}")
        finally:
            process.terminate()
            process.wait(START_S)


def _answers(path: Path) -> bool:
    """Whether somebody listens there: the socket exists a moment earlier."""
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(path)) == 0


def _ini(address: Address, folder: Path, mode: str, settings: Mapping[str, str]) -> str:
    own = {
        "unix_socket_dir": str(folder),
        "unix_socket_mode": "0777",
        "listen_port": str(PORT),
        "auth_type": "any",
        "pool_mode": mode,
        **settings,
    }
    lines = "\n".join(f"{key} = {value}" for key, value in own.items())
    return f"[databases]\n* = host={address.host} user={address.user}\n[pgbouncer]\n{lines}\n"
