"""Sources of work under test, each with a way to put work in and to see how it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from goclaw_py.core.ids import JobId
from goclaw_py.records import NewWork, Store, WorkState
from goclaw_py.schedule.jobs.work_items import WorkSource
from goclaw_py.schedule.sources import TableSource
from goclaw_py.schedule.sources.github import GitHubSource, IssueRules
from goclaw_py.schedule.sources.github_http import RepositoryAddress
from tests.support.github import OWNER_TOKEN, REPO, GitHub
from tests.support.stores import Openable

QUEUE = "chores"
FORGOTTEN = timedelta(hours=2)
ONE, TWO, THREE = JobId("job-1"), JobId("job-2"), JobId("job 3/ü")


@dataclass(slots=True)
class SetClock:
    """Stands still until it is moved."""

    at: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def pass_by(self, time: timedelta) -> None:
        self.at += time


class Rig(Protocol):
    """``processes`` are sources over the same work."""

    clock: SetClock
    processes: list[WorkSource]

    async def add(self, title: str, body: str = "") -> None: ...

    async def ends(self) -> dict[str, bool | None]:
        """By title: whether the work went well; None: it is not over."""
        ...


@dataclass(slots=True)
class TableRig:
    store: Store
    processes: list[WorkSource] = field(default_factory=list)
    clock: SetClock = field(default_factory=SetClock)

    async def add(self, title: str, body: str = "") -> None:
        await self.store.add_work(NewWork(QUEUE, title, body), now=self.clock.now())

    async def ends(self) -> dict[str, bool | None]:
        known = {WorkState.DONE: True, WorkState.FAILED: False}
        return {each.new.title: known.get(each.state) for each in await self.store.work()}


@dataclass(slots=True)
class GitHubRig:
    github: GitHub
    clock: SetClock
    processes: list[WorkSource] = field(default_factory=list)

    async def add(self, title: str, body: str = "") -> None:
        self.github.open_issue(title, body)

    async def ends(self) -> dict[str, bool | None]:
        return {
            issue.title: None if "goclaw" in issue.labels else "failed" not in issue.labels
            for issue in self.github.issues.values()
        }


def github_source(
    github: GitHub,
    clock: SetClock,
    rules: IssueRules | None = None,
    *,
    token: str = OWNER_TOKEN,
    repo: str = REPO,
) -> GitHubSource:
    place = RepositoryAddress(repo, token, github.base_url, pause_s=0.001)
    return GitHubSource(place, rules or IssueRules(forgotten_after=FORGOTTEN), clock)


@asynccontextmanager
async def table_rig(database: Openable) -> AsyncIterator[Rig]:
    stores = [await database.open(), await database.open()]
    rig = TableRig(stores[0])
    rig.processes += [
        TableSource(store, rig.clock, QUEUE, forgotten_after=FORGOTTEN) for store in stores
    ]
    try:
        yield rig
    finally:
        for store in stores:
            await store.close()


@asynccontextmanager
async def github_rig() -> AsyncIterator[GitHubRig]:
    clock = SetClock()
    async with GitHub(clock.now) as github:
        rig = GitHubRig(github, clock)
        rig.processes += [github_source(github, clock) for _ in range(2)]
        yield rig
