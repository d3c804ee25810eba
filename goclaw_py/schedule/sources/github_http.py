"""HTTP to GitHub's REST API: requests, retries, errors. The only module with its client."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from goclaw_py.core.errors import WorkSourceError
from goclaw_py.core.net.proxied_sessions import ProxyFailed, proxied_session, proxy_refusal
from goclaw_py.core.net.proxies import Proxy, proxy_for
from goclaw_py.core.storable import parse_json, storable
from goclaw_py.core.time.clock import Clock

PAGE: Final = 100
"""The most entries on a page."""

_TRIES: Final = 3
_REQUEST_S: Final = 30.0
_PATIENCE_S: Final = 20.0
"""The longest wait in seconds; the next run of the job comes anyway."""
_MOST_BYTES: Final = 32 << 20
_MOST_WORDS: Final = 200


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """A repository. ``base_url`` is that of the API; ``token`` is never shown.

    ``pause_s`` is the first delay of a retry; it doubles each time.
    """

    repo: str
    token: str = field(repr=False)
    base_url: str = "https://api.github.com"
    pause_s: float = 1.0


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse the body. Raises ``WorkSourceError``."""
        try:
            return storable(parse_json(self.body)) if self.body else None
        except ValueError as error:
            raise WorkSourceError("GitHub answered with something that is not JSON") from error

    def error_text(self) -> str:
        """Return GitHub's error message, if there is one."""
        try:
            said = self.json()["message"]
        except (WorkSourceError, KeyError, TypeError):
            return ""
        return f": {said[:_MOST_WORDS]}" if isinstance(said, str) else ""


class Repository:
    """The API of a repository while it is open. Any call raises ``WorkSourceError``."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        proxy: Proxy | None,
        place: RepositoryAddress,
        clock: Clock,
    ) -> None:
        self._session = session
        self._proxy = proxy
        self._place = place
        self._clock = clock

    async def ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        content: Mapping[str, object] | None = None,
    ) -> Any:
        """Make a call; return the JSON of the response, None if the resource does not exist.

        Transient errors are retried, so a comment can be added twice.
        """
        pause_s = self._place.pause_s
        for tries in range(1, _TRIES + 1):
            try:
                answer = await self._once(method, path, parameters, content)
            except (aiohttp.ClientError, TimeoutError) as error:
                if tries == _TRIES:
                    # The text of others may have the whole address.
                    is_ours = isinstance(error, ProxyFailed)
                    what = str(error) if is_ours else type(error).__name__
                    raise WorkSourceError(f"GitHub cannot be reached: {what}") from error
                wait_s = pause_s
            else:
                wait_s = self._wait_s(answer, pause_s)
                if wait_s == 0:
                    return self._read(answer)
                if tries == _TRIES or wait_s > _PATIENCE_S:
                    raise WorkSourceError(_later(answer, wait_s))
            await asyncio.sleep(wait_s)
            pause_s *= 2
        raise AssertionError("the last try returns or raises")

    async def pages(
        self, path: str, parameters: Mapping[str, str], *, most: int
    ) -> AsyncIterator[list[Any]]:
        """Yield the pages of a list, at most ``most``; none if it does not exist."""
        for number in range(1, most + 1):
            asked = {**parameters, "per_page": str(PAGE), "page": str(number)}
            page = await self.ask("GET", path, parameters=asked)
            if page is None:
                return
            if not isinstance(page, list):
                raise WorkSourceError("GitHub answered with something else than a list")
            yield page
            if len(page) < PAGE:
                return

    async def _once(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None,
        content: Mapping[str, object] | None,
    ) -> _Response:
        url = f"{self._place.base_url}/repos/{self._place.repo}{path}"
        # Do not send the token elsewhere: a redirect is an ordinary response.
        async with self._session.request(
            method,
            url,
            params=parameters,
            data=None if content is None else orjson.dumps(content),
            allow_redirects=False,
        ) as response:
            if self._proxy is not None and response.status == 407:
                raise ProxyFailed(proxy_refusal(self._proxy, response.status))
            body = bytearray()
            async for chunk in response.content.iter_chunked(1 << 16):
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise WorkSourceError("GitHub answered with too much")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return _Response(response.status, headers, bytes(body))

    def _wait_s(self, answer: _Response, pause_s: float) -> float:
        """Return the delay before a retry in seconds; 0: do not retry."""
        if answer.status >= 500:
            return _seconds(answer.headers.get("retry-after")) or pause_s
        spent = answer.headers.get("x-ratelimit-remaining") == "0"
        asked = answer.headers.get("retry-after")
        if answer.status == 429 or (answer.status == 403 and (spent or asked)):
            if (wait_s := _seconds(asked)) is not None:
                return wait_s or pause_s
            reset = _seconds(answer.headers.get("x-ratelimit-reset"))
            if spent and reset is not None:
                return max(reset - self._clock.now().timestamp(), pause_s)
            return pause_s
        return 0.0

    def _read(self, answer: _Response) -> Any:
        status, repo = answer.status, self._place.repo
        if status < 300:
            return answer.json()
        match status:
            case 404 | 410:
                return None
            case 401:
                raise WorkSourceError(f"GitHub refuses the token{answer.error_text()}")
            case 403:
                raise WorkSourceError(f"the token may not do this in {repo}{answer.error_text()}")
            case 422:
                raise WorkSourceError(f"GitHub does not accept this{answer.error_text()}")
            case _ if status < 400:
                raise WorkSourceError(f"{repo} has another name now; write it into the settings")
            case _:
                raise WorkSourceError(f"GitHub refuses with status {status}{answer.error_text()}")


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _later(answer: _Response, wait_s: float) -> str:
    if answer.status < 500:
        return f"GitHub takes no more requests for {math.ceil(wait_s)} s{answer.error_text()}"
    return f"GitHub does not work now (status {answer.status})"


@asynccontextmanager
async def opened(place: RepositoryAddress, clock: Clock) -> AsyncIterator[Repository]:
    """Open connections to a repository's API, for a few requests.

    Raises ``WorkSourceError`` if a variable of the environment names no usable proxy.
    """
    try:
        proxy = proxy_for(place.base_url, os.environ)
    except ValueError as error:
        raise WorkSourceError(f"GitHub cannot be reached: {error}") from None
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {place.token}",
        "Content-Type": "application/json",
        "User-Agent": "goclaw_py",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    async with proxied_session(
        proxy,
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=_REQUEST_S),
    ) as session:
        yield Repository(session, proxy, place, clock)
