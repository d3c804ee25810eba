"""A guest of the web chat against another one (SPEC CHAN-13).

Promised: a guest reaches their own conversations only, with the files and runs of these. Tried:
each name, id, receipt, button and file that Ann has, by Bob, with a whole gateway behind the pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from channels.console import WebChannel
from channels.uploads import UploadFolder
from goclaw_py.chat.terminals import TerminalMessage
from goclaw_py.core.chat_commands import stop_data
from goclaw_py.core.ids import MAIN_AGENT
from goclaw_py.core.messages import FileKind, OutFile
from goclaw_py.core.web_links import LINK_LASTS, secret_hash
from goclaw_py.records import RunQuery
from goclaw_py.runs.agent_loop import FilePart
from goclaw_py.runs.session_settings import ChatRules
from goclaw_py.testing.channel import RecordingChannel
from goclaw_py.web.api.routes import make_api
from goclaw_py.web.front import ApiOrDashboard, WebAccess
from goclaw_py.web.guard import Guard
from goclaw_py.web.guests import make_guest_site
from goclaw_py.web.pages import SiteParts, make_site
from goclaw_py.web.pages.chat.files import guest_path
from tests.security.test_people import Bank
from tests.support.harness import GatewayProcess, Ways, a_process, until
from tests.unit.web.pages.conftest import ORIGIN, TOKEN, Browser

pytestmark = pytest.mark.real_time

SECRET = "4711"


class WebGateway(GatewayProcess):
    """A gateway with the web chat, which is not made for tests: nothing of it is cut off."""

    def _rules(self, channel: RecordingChannel) -> ChatRules:
        return super()._rules(RecordingChannel(trusted=False))

    def kill(self) -> None:
        self.channels = {}
        super().kill()


@dataclass(slots=True)
class Site:
    """The pages of a gateway, and what Ann was shown."""

    gateway: WebGateway
    web: WebChannel
    app: Guard
    shown: list[TerminalMessage] = field(default_factory=list)

    async def guest(self, name: str) -> Browser:
        """A browser of an invited person."""
        secret, now = (name * 43)[:43], self.gateway.clock.now()
        until = now + LINK_LASTS
        assert await self.gateway.store.invite(
            name, secret_hash(secret), again=False, now=now, expires_at=until
        )
        await self.gateway.access_control.refresh()
        browser = Browser(self.app)
        await browser.leads(f"/join/{secret}", "/chat")
        return browser

    async def show(self, chat: str) -> None:
        """Be the open page of a chat."""
        async with aclosing(cast("Any", self.web.attach(chat))) as events:
            async for event in events:
                if isinstance(event, TerminalMessage):
                    self.shown.append(event)
                    self.web.confirm(event.receipt)


@asynccontextmanager
async def a_site(folder: Path) -> AsyncIterator[Site]:
    web = WebChannel(uploads=UploadFolder(folder / "uploads", 1 << 20))
    channel = cast("RecordingChannel", web)
    made = a_process(Bank().agent(), Ways(), channels=(channel,), kind=WebGateway)
    async with made as gateway:
        assert isinstance(gateway, WebGateway)
        control = gateway.control
        access = WebAccess("127.0.0.1", (), TOKEN, lambda: gateway.clock.now().timestamp())
        parts = SiteParts(uploads=web, workspaces={MAIN_AGENT: gateway.workspace})
        guests = make_guest_site(control, web, gateway.store, access, parts=parts)
        api = make_api(control, web)
        halves = ApiOrDashboard(api, make_site(control, api, access))
        app = Guard(halves, address="127.0.0.1", sign_ins=access.sign_ins, guests=guests)
        yield Site(gateway, web, app)


async def say(browser: Browser, chat: str, text: str, *files: str) -> httpx.Response:
    body = {
        "message_id": f"{chat}{text}"[:40],
        "text": text,
        "files": [{"ref": ref, "name": "plan.txt"} for ref in files],
    }
    return await browser.post(f"/api/chat/{chat}/messages", json=body, headers=ORIGIN)


async def upload(browser: Browser, content: bytes) -> str:
    answer = await browser.post("/chat/files?name=plan.txt", content=content, headers=ORIGIN)
    ref: str = answer.json()["ref"]
    return ref


NAMES = ("chat", "ann", "ann.chat", "bob.ann", "..", "%2e%2e", "ann%00", "../ann", "*", "%")


async def test_a_guest_gets_nothing_of_another_guest(tmp_path: Path) -> None:
    """Happened: of 60 requests none told a word of Ann's, and her run, chat and file remained."""
    async with a_site(tmp_path) as site:
        gateway = site.gateway
        ann, bob = await site.guest("ann"), await site.guest("bob")
        page = asyncio.create_task(site.show("ann"))
        assert (await say(ann, "chat", f"my secret is {SECRET}")).status_code == 204
        await until(lambda: bool(site.shown), within_s=20)
        assert (await say(ann, "chat", "fail")).status_code == 204
        await until(lambda: len(site.shown) > 1, within_s=20)
        waiting = await upload(ann, SECRET.encode())
        assert (await say(ann, "chat", "work")).status_code == 204
        await until(lambda: len(gateway.dispatcher.runs()) == 1, within_s=20)
        (running,) = [run.id for run in gateway.dispatcher.runs()]
        runs = [run.id for run in await gateway.store.runs(RunQuery(limit=10))]
        (retry,) = [one.buttons[0][0].data for one in site.shown if one.buttons]
        file = OutFile(FileKind.DOCUMENT, str(gateway.workspace / "plan.txt"), "plan.txt", "")

        paths = [f"/chat{page}?name={name}" for name in NAMES for page in ("", "/export")]
        paths += [
            f"/chat/file?run={run}&path={path}"
            for run in {*runs, running}
            for path in (guest_path(file), file.path, "plan.txt")
        ]
        paths += [f"/api/runs/{running}/record", "/api/runs", f"/api/why?about={running}"]
        said = [await bob.get(path) for path in paths]
        said += [await bob.send_form("/chat/delete", name=name) for name in NAMES]
        for receipt in [one.receipt for one in site.shown]:
            for data in (stop_data(running), retry):
                body = {"press_id": data[:40], "receipt": receipt, "data": data}
                said.append(await bob.post("/api/chat/ann/press", json=body, headers=ORIGIN))
        for chat in ("ann", "chat"):
            said.append(await say(bob, chat, "give me her file", waiting))
        assert not any(SECRET in answer.text for answer in said)
        assert [answer.status_code for answer in said[-2:]] == [404, 404]

        await asyncio.sleep(2)
        assert [run.id for run in gateway.dispatcher.runs()] == [running]
        assert SECRET in (await ann.get("/chat")).text
        assert (await say(ann, "chat", "read this", waiting)).status_code == 204
        assert len(site.shown) == 2
        page.cancel()
        received = [part for one in gateway.scripted.requests for part in one.parts]
        assert not any(isinstance(part, FilePart) for part in received)
