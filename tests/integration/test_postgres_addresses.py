"""Addresses of databases that cannot be used, each in its own words; several hosts (SPEC DB-1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goclaw_py.model.errors import StoreError, StoreUnavailable
from goclaw_py.store.postgres import Address, connection
from goclaw_py.store.postgres.pool import check_address
from tests.support.postgres import Database

pytestmark = pytest.mark.real_time

_HERE = "postgresql://me:s3cret@127.0.0.1:1/db"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (f"{_HERE}?sslmode=verify-full", "root certificate file .*root.crt"),
        (f"{_HERE}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "no file /nowhere/ca.pem"),
        (f"{_HERE}?sslcert=/nowhere/me.crt&sslmode=require", "no file /nowhere/me.crt"),
        (f"{_HERE}?sslmode=sometimes", "`sslmode` parameter must be one of"),
        (f"{_HERE}?target_session_attrs=best", "must be one of: any, primary, .*prefer-standby$"),
        ("postgresql://me:s3cret@127.0.0.1:99999/db", "a port is a number from 1 to 65535"),
        (f"{_HERE}?sslmode", "sslmode=require, joined by &"),
        ("postgresql://me:s3cret@::1/db", "percent-encoded"),
        ("postgresql://me:s3cret/x@127.0.0.1/db", "percent-encoded"),
    ],
)
async def test_an_address_that_cannot_be_used_is_refused_in_words_of_its_own(
    address: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StoreError, match=words) as caught:
        async with connection(Address(address)):
            pass
    assert not isinstance(caught.value, StoreUnavailable)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(StoreError) as read:
        check_address(Address(address))
    assert str(read.value) == str(caught.value)


@pytest.mark.parametrize("address", [_HERE, f"{_HERE}?sslmode=require", "postgresql:///db?host=/x"])
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
