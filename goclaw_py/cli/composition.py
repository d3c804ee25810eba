"""Entry points to ``goclaw_py.app``, which import it only when a command needs it."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from goclaw_py.app.loop import run
from goclaw_py.app.progress import OnProgress
from goclaw_py.app.uncaught import log_the_uncaught
from goclaw_py.cli.progress import progress, report, say
from goclaw_py.config import Settings, web_token
from goclaw_py.core.concurrency import in_import_thread
from goclaw_py.core.errors import AgentError, ChannelError, NotSent, SettingError
from goclaw_py.core.ids import MAIN_AGENT, AgentName
from goclaw_py.core.time.clocks import SystemClock

if TYPE_CHECKING:
    from goclaw_py.app.backup.backup import Saved
    from goclaw_py.app.backup.restore import Backup, InTheWay, Restored
    from goclaw_py.app.backup.settings_use import SettingsUse
    from goclaw_py.app.service import Front
    from goclaw_py.chat.channel import Channel
    from goclaw_py.chat.terminals import Terminals
    from goclaw_py.operations.control import Control
    from goclaw_py.store.migrate import SchemaStatus
    from goclaw_py.store.postgres.checkup import Checkup
    from goclaw_py.store.postgres.pool import Connection


WEB_APPS: Final = "goclaw_py.web.apps"
"""What ``AppsOnDemand`` imports."""


def open_control(settings: Settings, *, create: bool) -> AbstractAsyncContextManager[Control]:
    """Open the database without a gateway.

    If there is none, ``create`` creates it; otherwise raises ``NoDatabase``.
    """
    from goclaw_py.app.control import open_control as opened  # noqa: PLC0415

    return opened(settings, create=create, on_progress=report)


def run_gateway(settings: Settings, *, front: Front | None, may_migrate: bool) -> int:
    """Run a gateway until it is asked to stop; return the exit code."""
    check_places(settings)
    # Where memory ends, libraries may crash without an exception: say where.
    faulthandler.enable(file=2)
    with ExitStack() as display:
        # Without a chat in front, log lines are written to the terminal.
        display.enter_context(progress("starting the gateway", lines=front is None))
        # Imports make no garbage, and would be scanned for it again and again: 8 % of the time.
        gc.disable()
        from goclaw_py.app.gateway import run_gateway as gateway  # noqa: PLC0415

        def greet(lines: Iterable[str]) -> None:
            display.close()
            for line in lines:
                say(line)

        async def chat(control: Control, terminals: Terminals) -> bool | None:
            assert front is not None
            has_waited = await front(control, terminals)
            waits = "waiting for runs in progress; Ctrl-C interrupts them"
            display.enter_context(progress(waits))
            return has_waited

        shown = None if front is None else chat
        work = gateway(
            settings, say=say, on_progress=report, greet=greet, front=shown, may_migrate=may_migrate
        )
        log_the_uncaught()
        return run(work)


def check_places(settings: Settings) -> None:
    """Raise ``SettingError`` if a file is where a folder must be, or the other way round."""
    folders = {"state.folder": settings.state_folder}
    folders |= {
        f"agents.{name}.workspace": settings.workspace(AgentName(name)) for name in settings.agents
    }
    with suppress(OSError):  # of a place that we may not look at
        for key, folder in folders.items():
            if folder.exists() and not folder.is_dir():
                allowed = "must be a folder; there is a file of this name"
                raise SettingError(key, str(folder), allowed)
        if settings.log.file is not None and settings.log.file.is_dir():
            allowed = "must be a file; there is a folder of this name"
            raise SettingError("log.file", str(settings.log.file), allowed)


async def check_parts(settings: Settings) -> None:
    """Build all that a gateway is made of, as ``goclaw run`` does, to validate the settings.

    Starts nothing and does not use the network. Raises ``SettingError`` for a setting that only a
    part can validate, ``StoreError`` for the address of the database, and ``HookConflict`` for
    webhooks that collide.
    """
    from goclaw_py.app.gateway_config import gateway_config  # noqa: PLC0415
    from goclaw_py.app.parts import build_parts  # noqa: PLC0415
    from goclaw_py.store.postgres.address import Address, check_address  # noqa: PLC0415

    web_token(settings, os.environ)
    if settings.database.url is not None:
        check_address(Address(settings.database.url.get_secret_value()))
    check_places(settings)
    parts = build_parts(settings)
    try:
        parts.hooks  # noqa: B018
        gateway_config(settings, parts, None, SystemClock())
    finally:
        for channel in parts.channels.values():
            await channel.close()
        for agent in parts.agents.values():
            await agent.close()


async def check_imports(settings: Settings) -> list[tuple[str, str]]:
    """Import what a gateway imports later; return what failed, with the error.

    Otherwise a broken library would be noticed only by the first who needs it.
    """
    from goclaw_py.agents.models import ModelAgent  # noqa: PLC0415
    from goclaw_py.app.parts import build_agents, build_channels  # noqa: PLC0415

    channels, agents = build_channels(settings).items(), build_agents(settings).items()
    parts: list[tuple[str, Channel | ModelAgent]] = [
        *((f"channel {name}/{account}", channel) for (name, account), channel in channels),
        # The ``warm_up`` of other agents is not ours: it may do more than import.
        *((f"agent {name}", agent) for name, agent in agents if isinstance(agent, ModelAgent)),
    ]
    failed = []
    for subject, part in parts:
        try:
            await part.warm_up()
        except Exception as error:
            # A boundary: a library can raise anything when it is imported.
            failed.append((subject, f"{type(error).__name__}: {error}"))
        finally:
            await part.close()
    try:
        await in_import_thread(partial(import_module, WEB_APPS))
    except Exception as error:
        failed.append(("dashboard", f"{type(error).__name__}: {error}"))
    return failed


PROBE_S = 15.0


async def probe_channels(
    settings: Settings, limit_s: float | None = None
) -> list[tuple[str, str | ChannelError]]:
    """Ask the servers of all channels that have one concurrently; return answers by name.

    ``limit_s`` is the timeout of each, at most and by default ``PROBE_S``.
    """
    from goclaw_py.app.parts import build_channels  # noqa: PLC0415
    from goclaw_py.core.web_links import OWN_CHANNELS  # noqa: PLC0415

    wait_s = PROBE_S if limit_s is None else min(limit_s, PROBE_S)
    channels = build_channels(settings)
    answers = await asyncio.gather(
        *(
            _probed(channel, wait_s, ask=place[0] not in OWN_CHANNELS)
            for place, channel in channels.items()
        )
    )
    names = [(name, f"{name}/{account}") for name, account in channels]
    return [
        (shown, answer)
        for (name, shown), answer in zip(names, answers, strict=True)
        if name not in OWN_CHANNELS
    ]


async def _probed(channel: Channel, wait_s: float, *, ask: bool) -> str | ChannelError:
    try:
        async with asyncio.timeout(wait_s):
            return await channel.probe() if ask else ""
    except ChannelError as error:
        return error
    except TimeoutError:
        return NotSent(f"no answer within {wait_s:.0f} s")
    finally:
        await channel.close()


async def bot_name(settings: Settings) -> str:
    """Return the username of the Telegram bot, "" if it has none. Raises ``ChannelError``."""
    from goclaw_py.app.parts import build_channels  # noqa: PLC0415

    for (name, _), channel in build_channels(settings).items():
        if name == "telegram":
            answer = await _probed(channel, PROBE_S, ask=True)
            if isinstance(answer, ChannelError):
                raise answer
            return channel.handle or ""
    return ""


MODEL_PROBE_S = 60.0


async def probe_model(settings: Settings) -> None:
    """Send a short request to the model of agent ``main``. Raises ``AgentError``."""
    from goclaw_py.app.parts import build_agents  # noqa: PLC0415
    from goclaw_py.core.budget import Budget  # noqa: PLC0415
    from goclaw_py.core.outcomes import Trigger  # noqa: PLC0415
    from goclaw_py.core.session_keys import child_session  # noqa: PLC0415
    from goclaw_py.core.time.clocks import new_run_id  # noqa: PLC0415
    from goclaw_py.runs.agent_loop import RunRequest, TextPart  # noqa: PLC0415

    run_id = new_run_id(SystemClock())
    request = RunRequest(
        run_id=run_id,
        session=child_session(MAIN_AGENT, Trigger.API, run_id),
        agent=MAIN_AGENT,
        trigger=Trigger.API,
        parts=(TextPart("This is a test of the connection. Answer with the word OK."),),
        budget=Budget(turns=1),
    )
    agent = build_agents(settings)[MAIN_AGENT]
    try:
        async with asyncio.timeout(MODEL_PROBE_S):
            await agent.run(request, lambda _event: None)
    except TimeoutError:
        said = f"the model did not answer within {MODEL_PROBE_S:.0f} s"
        raise AgentError(said, said, retryable=True) from None
    finally:
        await agent.close()


@asynccontextmanager
async def _connection(settings: Settings) -> AsyncIterator[Connection]:
    from goclaw_py.app.database import Database  # noqa: PLC0415
    from goclaw_py.store.postgres import connection  # noqa: PLC0415

    database = Database(settings, on_progress=report, create=False)
    try:
        async with connection(await database.address()) as one:
            yield one
    finally:
        await database.close()


async def schema(settings: Settings) -> SchemaStatus:
    """Compare the database with this release. Raises ``NoDatabase``."""
    from goclaw_py.store.migrate import status  # noqa: PLC0415

    async with _connection(settings) as one:
        return await status(one)


async def check_up(settings: Settings) -> Checkup:
    """Check the state of the database server. Raises ``NoDatabase``."""
    from goclaw_py.app.database import Database  # noqa: PLC0415
    from goclaw_py.store.postgres.checkup import check_up as asked  # noqa: PLC0415

    database = Database(settings, on_progress=report, create=False)
    try:
        return await asked(await database.address(), SystemClock())
    finally:
        await database.close()


async def migrate(settings: Settings) -> list[str]:
    """Apply pending migrations, as at a start; return the names of the files."""
    from goclaw_py.app.database import Database  # noqa: PLC0415

    database = Database(settings, on_progress=report)
    try:
        return await database.migrate(await database.address())
    finally:
        await database.close()


async def back_up(
    settings: Settings, to: Path | None, *, files: bool, on_progress: OnProgress
) -> Saved:
    """Back up the database and files."""
    from goclaw_py.app.backup.backup import back_up as backed_up  # noqa: PLC0415

    return await backed_up(settings, to, files=files, on_progress=on_progress)


def examine(file: Path, on_progress: OnProgress) -> Backup:
    """Read a whole backup. Raises ``BackupError`` unless it is a valid, undamaged backup."""
    from goclaw_py.app.backup.restore import examine as examined  # noqa: PLC0415

    return examined(file, on_progress)


def settings_use(backup: Backup, home: Path, *, files: bool) -> SettingsUse | None:
    """Return what the settings of a backup use; None if it has none. Raises ``SettingError``."""
    from goclaw_py.app.backup.restore import settings_of  # noqa: PLC0415
    from goclaw_py.app.backup.settings_use import settings_use as use_of  # noqa: PLC0415

    settings = settings_of(backup, home)
    return None if settings is None else use_of(settings, files=files)


async def in_the_way(settings: Settings, backup: Backup, *, files: bool, outside: bool) -> InTheWay:
    """Return what a restore would overwrite. Raises ``BackupError`` if it is impossible."""
    from goclaw_py.app.backup.restore import plan_restore  # noqa: PLC0415

    return await plan_restore(settings, backup, files=files, outside=outside, on_progress=report)


async def restore(
    settings: Settings,
    backup: Backup,
    *,
    replace: bool,
    files: bool,
    outside: bool,
    on_progress: OnProgress,
) -> Restored:
    """Restore a backup; ``replace`` overwrites existing data."""
    from goclaw_py.app.backup.restore import restore as restored  # noqa: PLC0415

    return await restored(
        settings, backup, replace=replace, files=files, outside=outside, on_progress=on_progress
    )
