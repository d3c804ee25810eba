"""A GitHub on loopback, as far as issues go, that refuses what the real one refuses.

One repository, ``acme/shop``. Who calls is told by the token; strangers may comment and nothing
else. ``faults`` are answered first, each to the first request that it fits; ``meanwhile`` runs
before a request is worked on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import orjson
from aiohttp import web

REPO = "acme/shop"
OWNER_TOKEN = "owner-token-0123456789"
FRIEND_TOKEN = "friend-token-0123456789"
READER_TOKEN = "reader-token-0123456789"


@dataclass(frozen=True, slots=True)
class User:
    id: int
    login: str
    association: str
    may_write: bool = True


OWNER = User(1, "acme-bot", "NONE")
"""An app: it may write, and is no member of anything."""
FRIEND = User(2, "friend", "COLLABORATOR")
READER = User(3, "reader", "COLLABORATOR", may_write=False)
STRANGER = User(4, "stranger", "NONE", may_write=False)
USERS = {OWNER_TOKEN: OWNER, FRIEND_TOKEN: FRIEND, READER_TOKEN: READER}


@dataclass(slots=True)
class Comment:
    id: int
    issue: int
    body: str
    user: User
    created_at: datetime


@dataclass(slots=True)
class Issue:
    number: int
    title: str
    body: str | None
    labels: list[str]
    state: str = "open"
    reason: str | None = None
    is_pull_request: bool = False
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """``method`` and the end of the path, "" for any; what is answered."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"message": "a fault"}'
    method: str = ""
    path: str = ""


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message


@dataclass(slots=True)
class GitHub:
    """Listens on a free port of loopback while it is entered. ``now`` dates what is made."""

    now: Callable[[], datetime]
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    meanwhile: Callable[[str, str], Awaitable[None]] | None = None
    has_issues: bool = True
    lose_answer: bool = False
    """The next request is worked on, and answered with a failure."""
    port: int = 0
    _runner: web.AppRunner | None = None
    _numbers: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    # ------------------------------------------------------------------ what people do

    def open_issue(self, title: str, body: str | None = None, *labels: str) -> Issue:
        issue = Issue(self._next(), title, body, list(labels or ("goclaw",)))
        self.issues[issue.number] = issue
        return issue

    def say(self, issue: int, body: str, user: User = FRIEND) -> Comment:
        comment = Comment(self._next(), issue, body, user, self.now())
        self.comments[comment.id] = comment
        return comment

    def said(self, issue: int) -> list[str]:
        return [each.body for each in self.comments.values() if each.issue == issue]

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    # ------------------------------------------------------------------ what programs ask

    async def _answer(self, request: web.Request) -> web.Response:
        # As it was sent: a label may have a slash.
        path = request.raw_path.partition("?")[0]
        self.seen.append(f"{request.method} {path}")
        for fault in self.faults:
            if request.method.startswith(fault.method) and path.endswith(fault.path):
                self.faults.remove(fault)
                return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
        if self.meanwhile is not None:
            await self.meanwhile(request.method, path)
        try:
            status, content = self._act(request, path, await request.read())
        except Refused as refused:
            status, content = refused.status, {"message": refused.message, "status": refused.status}
        if self.lose_answer:
            self.lose_answer = False
            return web.Response(status=502)
        body = b"" if content is None else orjson.dumps(content)
        return web.Response(status=status, body=body, content_type="application/json")

    def _act(self, request: web.Request, path: str, sent: bytes) -> tuple[int, Any]:
        if "User-Agent" not in request.headers:
            raise Refused(403, "Request forbidden by administrative rules.")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in USERS:
            raise Refused(401, "Bad credentials")
        if not path.startswith(f"/repos/{REPO}/issues"):
            raise Refused(404, "Not Found")
        if not self.has_issues:
            raise Refused(410, "Issues has been disabled in this repository.")
        user, parts = USERS[token], path.removeprefix(f"/repos/{REPO}/issues").split("/")[1:]
        if parts[:1] == ["comments"]:
            return self._comment(request.method, int(parts[1]), user)
        if request.method == "GET":
            return 200, self._read(request, parts)
        return self._write(request.method, parts, _content(request.method, sent), user)

    def _read(self, request: web.Request, parts: list[str]) -> Any:
        match parts:
            case []:
                return self._list(request)
            case [number]:
                return self._shown(self._issue(number))
            case [number, "comments"]:
                issue = self._issue(number).number
                mine = [each for each in self.comments.values() if each.issue == issue]
                return _page([self._shown_comment(each) for each in mine], request)
        raise Refused(404, "Not Found")

    def _write(self, method: str, parts: list[str], content: Any, user: User) -> tuple[int, Any]:
        match method, parts:
            case "PATCH", [number]:
                return 200, self._edit(self._issue(number), content, user)
            case "POST", [number, "comments"]:
                return 201, self._new_comment(self._issue(number), content, user)
            case "POST", [number, "labels"]:
                return 200, self._label(self._issue(number), content, user)
            case "DELETE", [number, "labels", name]:
                return 200, self._unlabel(self._issue(number), name, user)
        raise Refused(404, "Not Found")

    def _issue(self, number: str) -> Issue:
        issue = self.issues.get(int(number))
        if issue is None:
            raise Refused(404, "Not Found")
        if issue.deleted:
            raise Refused(410, "This issue was deleted")
        return issue

    def _list(self, request: web.Request) -> list[Any]:
        query = request.query
        wanted = {label.casefold() for label in query.get("labels", "").split(",") if label}
        found = [
            issue
            for issue in self.issues.values()
            if query.get("state", "open") in (issue.state, "all")
            and wanted <= {label.casefold() for label in issue.labels}
            and not issue.deleted
        ]
        found.sort(key=lambda issue: issue.number, reverse=query.get("direction") != "asc")
        return _page([self._shown(issue) for issue in found], request)

    def _comment(self, method: str, number: int, user: User) -> tuple[int, Any]:
        comment = self.comments.get(number)
        if comment is None:
            raise Refused(404, "Not Found")
        if method == "GET":
            return 200, self._shown_comment(comment)
        if method == "DELETE":
            if comment.user != user and not user.may_write:
                raise Refused(403, "Must have admin rights to Repository.")
            del self.comments[number]
            return 204, None
        raise Refused(404, "Not Found")

    def _new_comment(self, issue: Issue, content: Any, user: User) -> Any:
        body = content.get("body")
        if not isinstance(body, str) or not body.strip() or "\0" in body:
            raise Refused(422, "Validation Failed")
        if len(body) > 65_536:
            raise Refused(422, "Validation Failed: body is too long (maximum is 65536 characters)")
        return self._shown_comment(self.say(issue.number, body, user))

    def _edit(self, issue: Issue, content: Any, user: User) -> Any:
        _must_write(user)
        if content.get("state", "open") not in ("open", "closed"):
            raise Refused(422, "Validation Failed")
        issue.state = content.get("state", issue.state)
        issue.reason = content.get("state_reason")
        return self._shown(issue)

    def _label(self, issue: Issue, content: Any, user: User) -> Any:
        _must_write(user)
        labels = content.get("labels")
        if not isinstance(labels, list) or not all(0 < len(label) <= 50 for label in labels):
            raise Refused(422, "Validation Failed")
        there = {label.casefold() for label in issue.labels}
        issue.labels += [label for label in labels if label.casefold() not in there]
        return [{"name": label} for label in issue.labels]

    def _unlabel(self, issue: Issue, quoted: str, user: User) -> Any:
        _must_write(user)
        name = unquote(quoted)
        kept = [label for label in issue.labels if label.casefold() != name.casefold()]
        if len(kept) == len(issue.labels):
            raise Refused(404, "Label does not exist")
        issue.labels = kept
        return [{"name": label} for label in kept]

    def _shown(self, issue: Issue) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "html_url": f"https://github.com/{REPO}/issues/{issue.number}",
            "state": issue.state,
            "labels": [{"id": 1, "name": label} for label in issue.labels],
            "user": {"id": STRANGER.id, "login": STRANGER.login},
        }
        if issue.is_pull_request:
            shown["pull_request"] = {"url": "https://api.github.com/"}
        return shown

    def _shown_comment(self, comment: Comment) -> dict[str, Any]:
        return {
            "id": comment.id,
            "body": comment.body,
            "user": {"id": comment.user.id, "login": comment.user.login},
            "author_association": comment.user.association,
            "created_at": comment.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }


def _content(method: str, sent: bytes) -> Any:
    if method not in ("POST", "PATCH"):
        return {}
    try:
        content = orjson.loads(sent)
    except orjson.JSONDecodeError:
        raise Refused(400, "Problems parsing JSON") from None
    if not isinstance(content, dict):
        raise Refused(422, "Invalid request.")
    return content


def _must_write(user: User) -> None:
    if not user.may_write:
        raise Refused(403, "Resource not accessible by personal access token")


def _page(found: list[Any], request: web.Request) -> list[Any]:
    size = min(int(request.query.get("per_page", "30")), 100)
    first = (int(request.query.get("page", "1")) - 1) * size
    return found[first : first + size]
