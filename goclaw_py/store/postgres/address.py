"""The address of the database, checked before it is used: what is wrong has words of its own."""

from __future__ import annotations

import configparser
import inspect
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import asyncpg

from goclaw_py.core.errors import StoreError, StoreUnavailable
from goclaw_py.core.net.database_url import parameters, split_hosts, url_problem

CONNECT_S: Final = 3.0
"""Seconds to get a connection, including the wait for a free one."""
COMMAND_S: Final = 10.0
"""Seconds for one statement."""
_ROLES: Final = ("any", "primary", "standby", "read-write", "read-only", "prefer-standby")
"""The values of ``target_session_attrs``; the driver's error does not list them."""
_PORT: Final = 5432
_LONGEST_SOCKET: Final = 107
"""Bytes of the path of a socket, a limit of the system."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the database: a DSN, or folder of a unix socket, user and database.

    A URI cannot contain every socket folder, so these are separate.
    """

    dsn: str | None = None
    host: str | None = None
    user: str | None = None
    database: str | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments for the driver."""
        dsn, hosts, ports = _with_hosts_apart(self.dsn)
        places = {"host": self.host} if hosts is None else {"host": hosts, "port": ports}
        return {
            **places,
            "dsn": dsn,
            "user": self.user,
            "database": self.database,
            "timeout": CONNECT_S,
            "command_timeout": COMMAND_S,
            # All else is set afterwards: a pooler refuses what it does not know.
            "server_settings": {"application_name": "goclaw"},
        }


def _with_hosts_apart(dsn: str | None) -> tuple[str | None, list[str] | None, list[int]]:
    """Return a URL without its hosts, and these, if an IPv6 address is one of several.

    Some releases of Python take a bracket that is not at the beginning for a mistake.
    """
    before, hosts, behind = split_hosts(dsn or "")
    if "[" not in hosts or "," not in hosts:
        return dsn, None, []
    found = [re.fullmatch(r"(\[[^]]*\]|[^:]*)(?::(\d+))?", each) for each in hosts.split(",")]
    names = [unquote(each[1]).strip("[]") for each in found if each]
    ports = [int(each[2] or _PORT) for each in found if each]
    return before + behind, names, ports


def check_address(address: Address) -> None:
    """Read an address as ``connect`` does, without connecting. Raises ``StoreError``."""
    _sockets(address)


def _sockets(address: Address) -> list[str]:
    """Return the paths of the sockets in an address. Raises ``StoreError`` if it is not valid.

    Afterwards an error of the driver is one of the connection.
    """
    if address.dsn is not None:
        _check_files(address.dsn)
    # The driver has no public function that only reads one.
    read = asyncpg.connect_utils._parse_connect_arguments  # noqa: SLF001
    options = inspect.signature(asyncpg.connect).parameters
    given = {name: option.default for name, option in options.items()} | address.arguments()
    try:
        places, *_ = read(**{name: given.get(name) for name in inspect.signature(read).parameters})
    except asyncpg.ClientConfigurationError as error:
        words = str(error).partition("\n")[0]
        if words.startswith("target_session_attrs"):
            words = f"target_session_attrs must be one of: {', '.join(_ROLES)}"
        raise StoreError(f"database.url: {words}") from None
    except OSError as error:  # includes those of TLS
        words = "a certificate or key that it names cannot be read"
        raise StoreError(f"database.url: {words}: {error.strerror or error}") from None
    except ValueError:
        # All of the URL was checked: these are in a service file or in the environment.
        words = "a value of its service file, or of a variable such as PGPORT, is not valid"
        raise StoreError(f"database.url: {words}") from None
    sockets = [place for place in places if isinstance(place, str)]
    if any(len(os.fsencode(each)) > _LONGEST_SOCKET for each in sockets):
        words = f"the path of its socket is longer than {_LONGEST_SOCKET} bytes"
        raise StoreError(f"database.url: {words}")
    return sockets


def _check_files(dsn: str) -> None:
    """Check what the driver ignores, or reports without the name of the file."""
    if (problem := url_problem(dsn)) is not None:
        raise StoreError(f"database.url: {problem}")
    given = dict(parameters(dsn))
    for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"):
        if (path := given.get(name)) is None or Path(path).is_file():
            continue
        cure = "; name the file with its certificates" if path == "system" else ""
        raise StoreError(f"{name} of database.url: there is no file {path}{cure}")
    if "passfile" in given and Path(given["passfile"]).stat().st_mode & 0o077:
        words = "others may read it, so it is not used; chmod 600 it"
        raise StoreError(f"passfile of database.url: {words}")
    if (service := given.get("service")) is not None:
        file = Path(os.environ.get("PGSERVICEFILE") or Path.home() / ".pg_service.conf")
        if not file.is_file():
            raise StoreError(f"service of database.url: there is no file {file}")
        found = configparser.ConfigParser()
        try:
            found.read(file)
        except (configparser.Error, ValueError):
            raise StoreError(f"service of database.url: {file} cannot be read") from None
        if not found.has_section(service):
            raise StoreError(f"service of database.url: {file} has no section [{service}]")


@contextmanager
def connecting(address: Address) -> Iterator[None]:
    """Check an address, and convert errors of a connection attempt that need it for their words."""
    sockets = _sockets(address)
    # Without a DSN it is the embedded server, which starts by itself.
    cure = "" if address.dsn is None else "start it, or correct database.url"
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        words = f"there is no socket {' or '.join(sockets)}"
        raise StoreUnavailable(f"the database does not answer: {words}", cure) from error
    except ConnectionRefusedError as error:
        place = re.search(r"\('([^']*)', (\d+)", str(error))
        where = f"nothing listens at {place[1]} port {place[2]}" if place else str(error)
        raise StoreUnavailable(f"the database does not answer: {where}", cure) from error
    except socket.gaierror as error:
        _, hosts, _ = split_hosts(address.dsn or "")
        words = f"a host of database.url cannot be found ({hosts}): {error.strerror}"
        raise StoreUnavailable(words, "correct it, or repair the name service") from error
    except UnicodeError:
        raise StoreError("database.url: a host is not a valid name") from None
