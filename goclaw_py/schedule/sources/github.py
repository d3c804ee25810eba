"""Issues of a GitHub repository as work items (SPEC CRON-18).

GitHub cannot assign an issue exclusively. A claim is a comment: the oldest of several on an issue
counts, and GitHub numbers them. The label only informs people and saves reading comments. A
finished issue first loses its label and then its claim, so an issue without a claim may be taken.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

from goclaw_py.core.errors import WorkSourceError
from goclaw_py.core.ids import JobId
from goclaw_py.core.text import truncate, well_formed
from goclaw_py.core.time.clock import Clock
from goclaw_py.schedule.jobs.models import WorkItem
from goclaw_py.schedule.sources.github_http import Repository, RepositoryAddress, opened

Read = TypeVar("Read")

log = logging.getLogger(__name__)

_LIST_PAGES: Final = 10
_COMMENT_PAGES: Final = 30
_MOST_LOOKED_AT: Final = 20
"""The number of claimed issues whose comments are read, to find abandoned ones."""
_MOST_SAID: Final = 60_000
"""The length of a comment in characters; GitHub allows 65,536."""
_ID: Final = re.compile(r"([0-9]{1,18})/([0-9]{1,18})")
_CLAIM: Final = re.compile(r"<!-- goclaw-claim job=(\S{1,300}) claim=([0-9a-f]{32}) -->")
_INSIDERS: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


@dataclass(frozen=True, slots=True)
class IssueRules:
    """Which issues are work items, and how they end.

    Args:
        label: The label of work items; it is removed at their end.
        claim_label: Added while a job works on an issue.
        failed_label: Added after a failure; "" for none.
        close: Whether an issue is closed after a success.
        forgotten_after: Older claims do not count.
    """

    label: str = "goclaw"
    claim_label: str = "in-progress"
    failed_label: str = "failed"
    close: bool = False
    forgotten_after: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Issue:
    number: int
    title: str
    body: str
    url: str
    labels: frozenset[str]
    open: bool

    @classmethod
    def read(cls, found: Any) -> Self:
        labels = (label if isinstance(label, str) else label["name"] for label in found["labels"])
        return cls(
            number=int(found["number"]),
            title=str(found["title"]),
            body=str(found.get("body") or ""),
            url=str(found.get("html_url") or ""),
            labels=frozenset(str(label).casefold() for label in labels),
            open=found["state"] == "open",
        )


@dataclass(frozen=True, slots=True)
class _Claim:
    """A comment that claims an issue. ``job`` is quoted as in the comment."""

    comment: int
    job: str
    token: str
    author: int | None
    insider: bool
    made_at: datetime

    @classmethod
    def read(cls, found: Any) -> Self | None:
        """Parse a comment; None if it claims nothing."""
        match = _CLAIM.match(str(found.get("body") or ""))
        if match is None:
            return None
        author = found.get("user") or {}
        return cls(
            comment=int(found["id"]),
            job=match[1],
            token=match[2],
            author=author.get("id"),
            insider=found.get("author_association") in _INSIDERS,
            made_at=datetime.fromisoformat(found["created_at"]),
        )


class GitHubSource:
    """Implements ``WorkSource`` with the issues of a repository, the oldest first.

    The id of a ``WorkItem`` contains the numbers of issue and claim, so that a run without its
    claim cannot end it.
    """

    def __init__(self, place: RepositoryAddress, rules: IssueRules, clock: Clock) -> None:
        self._place = place
        self._rules = rules
        self._clock = clock

    async def claim(self, job: JobId) -> WorkItem | None:
        """Return the issue that the job has already, or claim the oldest free one."""
        async with opened(self._place, self._clock) as repository:
            issues = await self._offered(repository)
            claim_label = self._rules.claim_label.casefold()
            labelled = [issue for issue in issues if claim_label in issue.labels]
            free = [issue for issue in issues if claim_label not in issue.labels]
            for issue in [*await self._left_over(repository, labelled, job), *free]:
                item = await self._attempt(repository, issue, job)
                if item is not None:
                    return item
        return None

    async def done(self, item: WorkItem, *, ok: bool, text: str) -> None:
        """Add the text as a comment, and remove the label or close the issue."""
        issue, comment = _parts(item)
        async with opened(self._place, self._clock) as repository:
            if await repository.ask("GET", f"/issues/comments/{comment}") is None:
                raise WorkSourceError(f"issue {issue} is not this run's any more")
            said = await repository.ask(
                "POST", f"/issues/{issue}/comments", content={"body": _outcome(text, ok=ok)}
            )
            if said is None:
                raise WorkSourceError(f"issue {issue} is gone")
            if ok and self._rules.close:
                closed = {"state": "closed", "state_reason": "completed"}
                await repository.ask("PATCH", f"/issues/{issue}", content=closed)
            await _unlabel(repository, issue, self._rules.label)
            if not ok and self._rules.failed_label:
                await _label(repository, issue, self._rules.failed_label)
            await _unlabel(repository, issue, self._rules.claim_label)
            await _forget(repository, comment)

    async def give_back(self, item: WorkItem, reason: str) -> None:
        """Remove label and claim, unless the issue belongs to another run."""
        issue, comment = _parts(item)
        async with opened(self._place, self._clock) as repository:
            if await repository.ask("GET", f"/issues/comments/{comment}") is None:
                return
            await _unlabel(repository, issue, self._rules.claim_label)
            await _forget(repository, comment)
        log.info("issue_released", extra={"issue": issue, "reason": reason})

    async def _offered(self, repository: Repository) -> list[_Issue]:
        wanted = {
            "state": "open",
            "labels": self._rules.label,
            "sort": "created",
            "direction": "asc",
        }
        issues: list[_Issue] = []
        there = False
        async for page in repository.pages("/issues", wanted, most=_LIST_PAGES):
            there = True
            with_requests = (each for each in page if not _is_pull_request(each))
            issues += _read(_Issue.read, with_requests)
        if not there:
            repo = self._place.repo
            raise WorkSourceError(
                f"{repo} is not there, has no issues, or is hidden from this token"
            )
        return issues

    async def _attempt(self, repository: Repository, issue: _Issue, job: JobId) -> WorkItem | None:
        """Claim an issue; None if another job was faster, or it is no longer a work item."""
        token = secrets.token_hex(16)
        claim = await repository.ask(
            "POST", f"/issues/{issue.number}/comments", content={"body": _claim(job, token)}
        )
        if claim is None:
            return None
        comment = _read(_comment_id, [claim])[0]
        try:
            leftovers = await self._win(repository, issue, job, token)
            if leftovers is not None:
                await _label(repository, issue.number, self._rules.claim_label)
        except WorkSourceError:
            await _forget(repository, comment)
            raise
        if leftovers is None:
            await _forget(repository, comment)
            return None
        for each in leftovers:
            if each != comment:
                await _forget(repository, each)
        return WorkItem(f"{issue.number}/{comment}", issue.title, issue.body, issue.url)

    async def _win(
        self, repository: Repository, issue: _Issue, job: JobId, token: str
    ) -> list[int] | None:
        """Return our old claims on an issue, and the new one; None if another claim counts."""
        claims = await _claims(repository, issue.number)
        ours = [claim for claim in claims if claim.token == token]
        if not ours:
            return None
        me = ours[0].author
        for claim in claims:
            trusted = claim.insider or claim.author == me
            is_rival = trusted and claim.job != quote(job, safe="") and not self._is_old(claim)
            if is_rival and claim.comment < ours[0].comment:
                return None
        # It was open when it was listed; it may have been done since.
        found = await repository.ask("GET", f"/issues/{issue.number}")
        if found is None:
            return None
        now = _read(_Issue.read, [found])[0]
        if not now.open or self._rules.label.casefold() not in now.labels:
            return None
        mine = (claim for claim in claims if claim.author == me)
        return [claim.comment for claim in mine if claim.job == ours[0].job or self._is_old(claim)]

    async def _left_over(
        self, repository: Repository, labelled: Sequence[_Issue], job: JobId
    ) -> list[_Issue]:
        """Return the issues whose claims belong to this job or are too old."""
        found = []
        for issue in labelled[:_MOST_LOOKED_AT]:
            claims = await _claims(repository, issue.number)
            own = any(claim.job == quote(job, safe="") for claim in claims)
            # Without any claim it was a person who put the label on.
            if own or (claims and all(map(self._is_old, claims))):
                found.append(issue)
        return found

    def _is_old(self, claim: _Claim) -> bool:
        return claim.made_at < self._clock.now() - self._rules.forgotten_after


def _claim(job: JobId, token: str) -> str:
    name = quote(job, safe="")
    return f"<!-- goclaw-claim job={name} claim={token} -->\nTaken by goclaw_py, job `{name}`."


def _outcome(text: str, *, ok: bool) -> str:
    # A model's text must not look like one of our claims.
    said = well_formed(text).replace("\0", "\ufffd").replace("<!--", "&lt;!--").strip()
    return truncate(f"{'Done.' if ok else 'Failed.'}\n\n{said}".strip(), _MOST_SAID)


def _parts(item: WorkItem) -> tuple[int, int]:
    match = _ID.fullmatch(item.id)
    if match is None:
        raise WorkSourceError(f"{item.id!r} is not the id of an issue")
    return int(match[1]), int(match[2])


async def _claims(repository: Repository, issue: int) -> list[_Claim]:
    """Return the claims on an issue, the oldest first."""
    claims: list[_Claim | None] = []
    async for page in repository.pages(f"/issues/{issue}/comments", {}, most=_COMMENT_PAGES):
        claims += _read(_Claim.read, page)
    return sorted((claim for claim in claims if claim), key=lambda claim: claim.comment)


async def _label(repository: Repository, issue: int, label: str) -> None:
    await repository.ask("POST", f"/issues/{issue}/labels", content={"labels": [label]})


async def _unlabel(repository: Repository, issue: int, label: str) -> None:
    await repository.ask("DELETE", f"/issues/{issue}/labels/{quote(label, safe='')}")


async def _forget(repository: Repository, comment: int) -> None:
    await repository.ask("DELETE", f"/issues/comments/{comment}")


def _comment_id(found: Any) -> int:
    return int(found["id"])


def _is_pull_request(found: Any) -> bool:
    return isinstance(found, dict) and "pull_request" in found


def _read(kind: Callable[[Any], Read], found: Iterable[Any]) -> list[Read]:
    """Parse parts of a response. Raises ``WorkSourceError``."""
    try:
        return [kind(each) for each in found]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise WorkSourceError("GitHub answered with something that cannot be read") from error
