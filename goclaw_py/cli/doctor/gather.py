"""Collects the state of machine, database, gateway and channels, with a timeout for each."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import resource
import sys
import zoneinfo
from collections.abc import Coroutine, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from goclaw_py.app.progress import ProgressStep
from goclaw_py.cli import composition
from goclaw_py.cli.context import connected
from goclaw_py.cli.doctor.finding import NOT_CREATED, DatabaseFacts, DoctorFacts, MachineFacts
from goclaw_py.cli.doctor.sign_in import probe_openid
from goclaw_py.cli.progress import report
from goclaw_py.config import Settings
from goclaw_py.core.errors import ChannelError, GoclawError, MigrationError, NoDatabase, StoreError
from goclaw_py.core.targets import Maker
from goclaw_py.operations.jobs.models import Requester
from goclaw_py.records import DeadLetterQuery, JobQuery, OutboxQuery, OutboxState
from goclaw_py.scheduler.views import GatewayStatus
from goclaw_py.web.sockets import is_answered, socket_path

if TYPE_CHECKING:
    from goclaw_py.operations.control import Control
    from goclaw_py.store.postgres.checkup import Checkup

T = TypeVar("T")

LIMIT_S = 4.0
"""Timeout of each of two rounds of requests. Starting an embedded server has no timeout."""

_MOST = 1000


def this_machine() -> MachineFacts:
    """Return the state of this machine."""
    return MachineFacts(
        python=sys.version_info[:2],
        release=version("goclaw_py"),
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        memory=_memory(),
        zones=len(zoneinfo.available_timezones()),
        is_root=os.geteuid() == 0,
        in_container=_in_container(),
        has_uvloop=importlib.util.find_spec("uvloop") is not None,
    )


def _memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(one.split()[1]) * 1024 for one in lines if one.startswith("MemAvail")), None)


def _in_container() -> bool:
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(mark.exists() for mark in marks)


async def gather(settings: Settings, env: Mapping[str, str], machine: MachineFacts) -> DoctorFacts:
    """Collect all data. A timeout is stored as text and becomes a finding."""
    report(ProgressStep("checking the database, the gateway and the channels"))
    runs = await asyncio.to_thread(is_answered, socket_path(settings.state_folder))
    limit_s = LIMIT_S if settings.database.url is not None else None
    (database, cure), gateway, probes, openid = await asyncio.gather(
        _database(settings, limit_s),
        _gateway(settings) if runs else _nothing(),
        # A running gateway knows the state of its channels, and a bot allows only one client.
        _nothing() if runs else _probes(settings),
        _answer_or_error(probe_openid(settings, env)),
    )
    report(ProgressStep("reading jobs, chats, people and messages"))
    work = await _work(settings, database, gateway, limit_s)
    return DoctorFacts(
        settings=settings,
        env=env,
        machine=machine,
        database=database,
        database_cure=cure,
        gateway=gateway,
        probes=probes,
        openid=openid,
        work=work,
    )


async def _nothing() -> None:
    return None


async def _answer_or_error(
    question: Coroutine[Any, Any, T], limit_s: float | None = LIMIT_S
) -> T | str:
    """Return the answer, or the error as text."""
    try:
        async with asyncio.timeout(limit_s):
            return await question
    except TimeoutError:
        return f"no answer within {limit_s:.0f} s"
    except NoDatabase:
        return NOT_CREATED
    except GoclawError as error:
        return str(error)
    except Exception as error:
        # A boundary: a bug in the request becomes a finding, too.
        return f"{type(error).__name__}: {error}"


async def _database(settings: Settings, limit_s: float | None) -> tuple[Checkup | str, str]:
    """Return the state of the database, or what is wrong, and the cure if it is known.

    A server that is only slow must not be started again, nor one that refuses us.
    """
    cure = ""

    async def check() -> Checkup | str:
        nonlocal cure
        try:
            return await composition.check_up(settings)
        except asyncio.CancelledError:
            cure = "run goclaw doctor again when this machine, its network and the server are idle"
            raise
        except NoDatabase:
            raise
        except MigrationError as error:
            cure = error.cure or "use the release that this database belongs to, or a backup"
            return error.fact
        except StoreError as error:
            cure = error.cure
            return error.fact

    return await _answer_or_error(check(), limit_s), cure


async def _probes(settings: Settings) -> list[tuple[str, str | ChannelError]] | None:
    try:
        return await composition.probe_channels(settings, LIMIT_S)
    except GoclawError:
        return None  # the channel rejects its settings, which another check reports


async def _gateway(settings: Settings) -> GatewayStatus | str:
    async def ask() -> GatewayStatus:
        async with connected(settings) as control:
            return await control.lanes.status()

    return await _answer_or_error(ask())


async def _work(
    settings: Settings,
    database: Checkup | str,
    gateway: GatewayStatus | str | None,
    limit_s: float | None,
) -> DatabaseFacts | None:
    """Read jobs, chats, people and failed messages.

    Without a gateway only if the database needs no migration, because opening it would migrate it.
    """
    if gateway is None and (isinstance(database, str) or not database.is_current):
        return None
    if isinstance(gateway, str):
        return None

    async def ask() -> DatabaseFacts:
        async with connected(settings) as control:
            return await _looked_at(control)

    found = await _answer_or_error(ask(), limit_s)
    return None if isinstance(found, str) else found


async def _looked_at(control: Control) -> DatabaseFacts:
    page = await control.jobs.search(JobQuery(limit=_MOST), Requester(None, Maker.OPERATOR))
    return DatabaseFacts(
        jobs=page.jobs,
        chats=await control.people.chats(),
        people=await control.people.list(),
        asking=await control.people.requests(),
        dead=len(await control.deliveries.outbox(OutboxQuery(OutboxState.FAILED, limit=_MOST))),
        unanswered=len(await control.deliveries.dead_letters(DeadLetterQuery(limit=_MOST))),
    )
