"""Addresses of databases that cannot be used, each in its own words; several hosts (SPEC DB-1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.config.load import load
from goclaw_py.core.errors import SettingError, StoreError, StoreUnavailable
from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.address import check_address
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

_HERE = "postgresql://me:s3cret@127.0.0.1:1/db"


_MALFORMED = [
    ("postgresql://me:s3cret@127.0.0.1:99999/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@127.0.0.1:0/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@127.0.0.1:x/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@127.0.0.1: 1/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@one:1,two:70000/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@[::1]:x/db", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@/db?host=one,two&port=1,x", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@/db?host=one:0", "a port is a number from 1 to 65535"),
    ("postgresql://me:s3cret@/db?host=one,two&port=1,", "a port is missing between the commas"),
    ("postgresql://me:s3cret@one,two/db?port=1,2", "each port stands behind its host"),
    ("postgresql://me:s3cret@one/db?host=two", "not in both"),
    ("postgresql://me:s3cret@one,/db", "a host is missing between the commas"),
    ("postgresql://me:s3cret@,one/db", "a host is missing between the commas"),
    ("postgresql://me:s3cret@/db?host=one,,two", "a host is missing between the commas"),
    ("postgresql://me:s3cret@::1/db", "an IPv6 address is written in brackets"),
    ("postgresql://me:s3cret@one:1,::1/db", "an IPv6 address is written in brackets"),
    ("postgresql://me:s3cret@[::1/db", "an IPv6 address is written in brackets"),
    ("postgresql://me:s3cret@[one]:1/db", "an IPv6 address is written in brackets"),
    ("postgresql://me:s3cret@/db?host=::1&port=1", "an IPv6 address is written in brackets"),
    ("postgresql://me:s3cret@my host/db", "neither blanks nor /"),
    ("postgresql://me:s3cret@/db?host=run/postgresql", "a socket folder begins with /"),
    ("postgresql://me:s3cret@one..two/db", "each part of a host has 1 to 63 characters"),
    (f"postgresql://me:s3cret@{'a' * 64}.net/db", "each part of a host has 1 to 63 characters"),
    ("postgresql://me:s3cret/x@127.0.0.1/db", "in a user or password must be percent-encoded"),
    ("postgresql://me:s3cret?x@127.0.0.1/db", "in a user or password must be percent-encoded"),
    ("postgresql://me:s3cret#x@127.0.0.1/db", "in a user or password must be percent-encoded"),
    ("postgresql://me:s3cret@x@127.0.0.1/db", "in a user or password must be percent-encoded"),
    ("postgresql://me:s3[cret@127.0.0.1/db", "in a user or password must be percent-encoded"),
    ("postgresql://me:s3cret%zz@127.0.0.1/db", "% itself is written %25"),
    ("postgresql://me:s3cret%@127.0.0.1/db", "% itself is written %25"),
    ("postgresql://me:s3cret%ff@127.0.0.1/db", "must be UTF-8"),
    ("postgresql://me:s3cret%00@127.0.0.1/db", "%00 is not allowed"),
    (f"{_HERE}?sslmode", "sslmode=require, joined by &"),
    (f"{_HERE}?sslmode=require&", "sslmode=require, joined by &"),
    (f"{_HERE} ", "a blank before or behind it"),
]
_REFUSED = [
    (f"{_HERE}?sslmode=verify-full", "root certificate file .*root.crt.* does not exist"),
    (f"{_HERE}?sslmode=verify-ca", "root certificate file .*root.crt.* does not exist"),
    (f"{_HERE}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "no file /nowhere/ca.pem"),
    (f"{_HERE}?sslmode=verify-full&sslrootcert=system", "name the file with its certificates"),
    (f"{_HERE}?sslmode=verify-full&sslrootcert={{file}}", "certificate or key .* cannot be read"),
    (f"{_HERE}?sslmode=require&sslcert={{file}}", "certificate or key .* cannot be read"),
    (f"{_HERE}?sslmode=require&sslcrl={{file}}", "certificate or key .* cannot be read"),
    (f"{_HERE}?sslcert=/nowhere/me.crt&sslmode=require", "no file /nowhere/me.crt"),
    (f"{_HERE}?sslmode=sometimes", "`sslmode` parameter must be one of"),
    (f"{_HERE}?sslmode=require&ssl_min_protocol_version=TLSv9", "No such TLS version: TLSv9"),
    (f"{_HERE}?sslnegotiation=direct", "direct TLS requires sslmode=require"),
    (f"{_HERE}?target_session_attrs=best", "must be one of: any, primary, .*prefer-standby$"),
    ("postgresql://me@/db?host=one,two&port=1,2,3", "could not match 3 port numbers to 2 hosts"),
    ("postgresql://me@127.0.0.1:1/db?passfile=/nowhere/pass", "no file /nowhere/pass"),
    ("postgresql://me@127.0.0.1:1/db?passfile={file}", "passfile .* chmod 600"),
    ("postgresql:///?service=prod", r"service .* no file .*/\.pg_service\.conf"),
    (f"postgresql:///db?host=/{'x' * 120}", "longer than 107 bytes"),
]
_AWAY = [
    (
        "postgresql://me:s3cret@nowhere.invalid/db",
        r"a host of database.url cannot be found \(nowhere.invalid\): ",
    ),
    ("postgresql:///db?host=/nowhere", "there is no socket /nowhere/.s.PGSQL.5432"),
    ("postgresql://me@%2Fnowhere:77/db", "there is no socket /nowhere/.s.PGSQL.77"),
    ("postgresql:///db?host={file}", "there is no socket .*/file/.s.PGSQL.5432"),
    ("postgresql://me@127.0.0.1:1,[::1]:2/db", "the database does not answer: "),
    ("postgresql://me@[::1]:1,127.0.0.1:2/db", "the database does not answer: "),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a text file that others may read, in a home folder without certificates."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "file"
    path.write_text("no certificate")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize(("address", "words"), _MALFORMED + _REFUSED)
async def test_an_address_that_cannot_be_used_is_refused_in_words_of_its_own(
    address: str, words: str, file: Path
) -> None:
    used = Address(address.replace("{file}", str(file)))
    with pytest.raises(StoreError, match=words) as caught:
        async with connection(used):
            pass
    assert not isinstance(caught.value, StoreUnavailable)
    assert "s3" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError) as read:
        check_address(used)
    assert str(read.value) == str(caught.value)


@pytest.mark.parametrize(("url", "words"), _MALFORMED)
def test_settings_refuse_a_malformed_address_in_the_same_words(
    url: str, words: str, tmp_path: Path
) -> None:
    env = {"HOME": str(tmp_path), "GOCLAW_HOME": str(tmp_path), "GOCLAW_DATABASE_URL": url}
    with pytest.raises(SettingError, match=words) as caught:
        load(None, env)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize(("address", "words"), _AWAY)
async def test_a_server_that_cannot_be_reached_has_words_of_its_own(
    address: str, words: str, file: Path
) -> None:
    used = Address(address.replace("{file}", str(file)))
    check_address(used)
    with pytest.raises(StoreUnavailable, match=words):
        async with connection(used):
            pass


@pytest.mark.parametrize(
    ("text", "words"), [("[test]\nhost=one\n", r"no section \[prod\]"), ("?", "cannot be read")]
)
def test_a_service_that_its_file_does_not_have_is_refused(
    text: str, words: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    file.write_text(text)
    with pytest.raises(StoreError, match=words):
        check_address(Address("postgresql:///?service=prod"))


@pytest.mark.parametrize(
    "address",
    [
        _HERE,
        f"{_HERE}?sslmode=require",
        "postgresql:///db?host=/x",
        "postgresql://me@one:1,[::1]:2,[fe80::1%25eth0]/db?target_session_attrs=read-write",
        "postgresql://me:a%25b%C3%A9%40@one./db?user=you@net",
        "postgresql://",
    ],
)
def test_an_address_that_can_be_used_is_read_without_connecting(address: str) -> None:
    check_address(Address(address))


async def test_the_first_of_several_hosts_that_answers_is_used(postgres_database: Database) -> None:
    here = postgres_database.address
    hosts = f"host=/nowhere,{here.host}&target_session_attrs=read-write"
    async with connection(Address(f"postgresql://{here.user}@/{here.database}?{hosts}")) as opened:
        assert await opened.fetch("select 1")


async def test_several_hosts_of_which_none_answers_are_an_unavailable_database() -> None:
    with pytest.raises(StoreUnavailable):
        async with connection(Address("postgresql://me@127.0.0.1:1,127.0.0.1:2/db")):
            pass
