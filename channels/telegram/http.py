"""HTTP to the Bot API for both libraries: connection pools, uploads, downloads.

The only module that uses aiohttp. It knows whether a request was certainly not sent, which decides
whether a message may be repeated (SPEC IO-5).
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

import aiohttp
import orjson

from channels.telegram.answers import KindRefused, read_answer, words_of
from channels.telegram.client import FileTooBig, Upload
from channels.telegram.settings import TelegramSettings
from goclaw_py.core.errors import ChannelError, ChannelRefused, MaybeSent, NotSent, Undeliverable
from goclaw_py.core.messages import FileKind
from goclaw_py.core.net.proxied_sessions import ProxyFailed, proxied_session, proxy_refusal
from goclaw_py.core.net.proxies import Proxy
from goclaw_py.core.text import well_formed

UPLOAD_LIMIT = 50_000_000
"""The largest file in bytes that a bot may send. Larger ones are refused before sending."""
PICTURE_LIMIT = 10 << 20
"""The largest file in bytes that may be sent as a picture."""

_SENDING_CONNECTIONS = 64
_POLLING_CONNECTIONS = 1
_ACTING_CONNECTIONS = 8
_ACTING_TIMEOUT_S = 5.0
_FILE_CONNECTIONS = 4
_FILE_TIMEOUT_S = 300.0
"""Seconds for a whole file; silent connections end much earlier."""
_FILE_QUEUE_S = 60.0
"""Seconds that a file may wait for others: an album has up to ten."""
_FILE_PATIENCE = 3
"""The factor by which the server may be silent longer: it forwards a file first."""
_CHUNK = 256 * 1024
_SHOWN = (FileKind.PHOTO, FileKind.VOICE)
"""Kinds that are sent as they are; others are sent as documents."""
_JSON = {"Content-Type": "application/json"}
_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\/]')
_TROUBLE = (aiohttp.ClientError, TimeoutError, OSError)
"""What aiohttp raises instead of a response."""
_UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ProxyFailed)


@dataclass(frozen=True, slots=True)
class FormFile:
    """An open file as a part of a form. The caller closes it."""

    content: BinaryIO
    name: str
    mime: str


class HttpPool:
    """Connections for one purpose. Raises ``NotSent`` while it is closed."""

    def __init__(
        self,
        connections: int,
        *,
        proxy: Proxy | None = None,
        connect_s: float,
        silence_s: float,
        queue_s: float = 0,
        total_s: float | None = None,
    ) -> None:
        """Create a closed pool. Times are in seconds.

        Args:
            connections: The number of connections.
            proxy: The proxy for all of them.
            connect_s: The time limit for connecting.
            silence_s: The time limit for silence of the server.
            queue_s: Additional time while all connections are used.
            total_s: The time limit of a request; the default is ``silence_s``.
        """
        self._connections = connections
        self._proxy = proxy
        self._connect_s = connect_s
        self._silence_s = silence_s
        self._queue_s = queue_s
        self._total_s = total_s
        self._limits = self._limits_with(silence_s)
        self._session: aiohttp.ClientSession | None = None

    @property
    def silence_s(self) -> float:
        """The default limit for silence of the server, in seconds."""
        return self._silence_s

    async def open(self) -> None:
        """Open the pool, if it is closed."""
        if self._session is None:
            self._session = proxied_session(
                self._proxy,
                connections=self._connections,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "goclaw_py"},
            )

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        url: str,
        parameters: Mapping[str, object],
        files: Mapping[str, FormFile] | None = None,
        *,
        silence_s: float | None = None,
    ) -> tuple[int, bytes]:
        """Make a call; return status and body of the response.

        Raises ``NotSent`` if the request was certainly not sent, ``MaybeSent`` if its response is
        missing, ``Undeliverable`` for parameters that cannot be encoded.
        """
        data = _form(parameters, files) if files else _json(parameters)
        limits = self._limits if silence_s is None else self._limits_with(silence_s)
        try:
            async with self._open_session.post(
                url,
                data=data,
                headers=None if files else _JSON,
                timeout=limits,
                allow_redirects=False,
            ) as answer:
                status, body = answer.status, await answer.read()
        except _TROUBLE as error:
            raise self._in_our_words(error) from None
        if status != 200:
            self._check_proxy(status, body)
        return status, body

    async def stream(self, url: str) -> AsyncGenerator[bytes, None]:
        """Download a file in pieces. Raises a ``ChannelError``; close the generator."""
        try:
            async with self._open_session.get(
                url, timeout=self._limits, allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    body = await answer.content.read(_CHUNK)
                    self._check_proxy(answer.status, body)
                    _no_file(answer.status, body)
                async for piece in answer.content.iter_chunked(_CHUNK):
                    yield piece
        except _TROUBLE as error:
            raise self._in_our_words(error) from None

    @property
    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise NotSent("the connection pool is closed")
        return self._session

    def _in_our_words(self, error: Exception) -> NotSent | MaybeSent:
        """Return our error for one of ``_TROUBLE``."""
        if isinstance(error, _UNSENT):
            return NotSent(f"no connection to the Bot API: {_words(error)}")
        via = "" if self._proxy is None else f" through the proxy {self._proxy}"
        return MaybeSent(f"no answer from the Bot API{via}: {_words(error)}")

    def _check_proxy(self, status: int, body: bytes) -> None:
        """Raise our error for a response that the proxy may have given, with its name."""
        if self._proxy is None:
            return
        if status == 407:
            raise NotSent(proxy_refusal(self._proxy, status))
        try:
            read_answer(status, body)
        except ChannelError as error:
            if type(error) in {NotSent, MaybeSent}:
                raise type(error)(f"{error} (through the proxy {self._proxy})") from None

    def _limits_with(self, silence_s: float) -> aiohttp.ClientTimeout:
        patience = self._connect_s + self._queue_s
        return aiohttp.ClientTimeout(
            # An answer that drips is cut too.
            total=(self._total_s or silence_s) + patience,
            connect=patience,
            sock_connect=self._connect_s,
            sock_read=silence_s,
        )


class Pools:
    """The connections of a bot.

    Each purpose has its own, so that slow replies, polls, files and reactions do not delay each
    other.
    """

    def __init__(self, settings: TelegramSettings) -> None:
        silence_s = settings.send_timeout_s
        pool = partial(HttpPool, proxy=settings.proxy, connect_s=settings.connect_timeout_s)
        self.sending = pool(_SENDING_CONNECTIONS, silence_s=silence_s)
        self.polling = pool(_POLLING_CONNECTIONS, silence_s=silence_s)
        self.acting = pool(_ACTING_CONNECTIONS, silence_s=min(silence_s, _ACTING_TIMEOUT_S))
        self.files = pool(
            _FILE_CONNECTIONS,
            silence_s=_FILE_PATIENCE * silence_s,
            queue_s=_FILE_QUEUE_S,
            total_s=_FILE_TIMEOUT_S,
        )

    async def open(self) -> None:
        """Open all pools, without using the network."""
        for pool in self._all:
            await pool.open()

    async def close(self) -> None:
        """Close all pools."""
        for pool in self._all:
            await pool.close()

    @property
    def _all(self) -> tuple[HttpPool, ...]:
        return self.sending, self.polling, self.acting, self.files


# ---------------------------------------------------------------------------- files


@contextmanager
def opened(upload: Upload) -> Iterator[FormFile]:
    """Open a file to send. Raises ``Undeliverable`` and ``FileTooBig``."""
    # Not in a thread: this is quick, and the file would stay open if the caller were cancelled
    # meanwhile. The reading is what takes time, and aiohttp does that in threads.
    try:
        found = upload.path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Undeliverable(f"{upload.name}: not a regular file")
        if found.st_size > UPLOAD_LIMIT:
            raise FileTooBig(f"{upload.name}: {found.st_size} bytes; {UPLOAD_LIMIT} may be sent")
        content = upload.path.open("rb")
    except (OSError, ValueError) as error:
        raise Undeliverable(f"{upload.name}: cannot be read: {_words(error)}") from None
    name = _UNSAFE.sub("_", well_formed(upload.name)) or "file"
    mime = upload.mime if _MIME.fullmatch(upload.mime) else "application/octet-stream"
    with content:
        yield FormFile(content, name, mime)


async def send_opened(upload: Upload, send: Callable[[FileKind, FormFile], Awaitable[int]]) -> int:
    """Open a file and ``send`` it, as a document if its kind is refused."""
    with opened(upload) as part:
        kind = upload.kind if upload.kind in _SHOWN else FileKind.DOCUMENT
        if kind is FileKind.PHOTO and os.fstat(part.content.fileno()).st_size > PICTURE_LIMIT:
            kind = FileKind.DOCUMENT
        try:
            return await send(kind, part)
        except KindRefused:
            if kind is FileKind.DOCUMENT:
                raise
    # Opened again: the first request may have closed it.
    with opened(upload) as part:
        return await send(FileKind.DOCUMENT, part)


@contextmanager
def opened_together(uploads: Sequence[Upload]) -> Iterator[list[FormFile]]:
    """Open the files of an album.

    Raises ``Undeliverable`` for what the server would refuse, before anything is sent.
    """
    with ExitStack() as stack:
        parts = [stack.enter_context(opened(upload)) for upload in uploads]
        sizes = [os.fstat(part.content.fileno()).st_size for part in parts]
        if sum(sizes) > UPLOAD_LIMIT:
            raise FileTooBig(f"an album of {sum(sizes)} bytes; {UPLOAD_LIMIT} may be sent")
        for upload, size in zip(uploads, sizes, strict=True):
            if upload.kind is FileKind.PHOTO and size > PICTURE_LIMIT:
                raise KindRefused(f"{upload.name}: {size} bytes are too large for a picture")
        yield parts


async def save(pieces: AsyncGenerator[bytes, None], to: Path, *, limit_bytes: int) -> int:
    """Write a file, which gets its name once it is complete; return its size.

    Closes ``pieces``. Raises ``FileTooBig``; ``NotSent`` if it cannot be stored.
    """
    size = 0
    async with aclosing(pieces):
        with _unfinished(to) as file:
            async for piece in pieces:
                size += len(piece)
                if size > limit_bytes:
                    raise FileTooBig(f"the file has more than {limit_bytes} bytes")
                await asyncio.to_thread(file.write, piece)
    return size


@contextmanager
def _unfinished(to: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces ``to`` at the end, and is deleted after an error."""
    try:
        handle, name = tempfile.mkstemp(dir=to.parent, prefix=".", suffix=".part")
        try:
            # Closing waits for a thread that still writes, at most one piece.
            with os.fdopen(handle, "wb") as file:
                yield file
            Path(name).replace(to)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise NotSent(f"the file cannot be stored: {_words(error)}") from None


def _no_file(status: int, body: bytes) -> NoReturn:
    """Raise the error of a response without a file."""
    try:
        read_answer(status, body)
    except ChannelRefused as refusal:
        # The token was accepted a moment ago: it is the file that the server does not know.
        raise Undeliverable(f"the file cannot be fetched: {refusal}") from None
    raise NotSent(f"HTTP {status} instead of a file")


# ---------------------------------------------------------------------------- parameters


def _json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise Undeliverable(f"the message cannot be written as JSON: {error}") from None


def _form(parameters: Mapping[str, object], files: Mapping[str, FormFile]) -> aiohttp.FormData:
    # The server shows quoted names with their percent signs.
    form = aiohttp.FormData(quote_fields=False, default_to_multipart=True)
    for name, value in parameters.items():
        # Made in any case: it refuses a text that has no UTF-8.
        written = _json(value).decode()
        form.add_field(name, value if isinstance(value, str) else written)
    for name, part in files.items():
        form.add_field(name, part.content, filename=part.name, content_type=part.mime)
    return form


def _words(error: BaseException) -> str:
    """Return the text of an error without the address; it may contain the token."""
    if isinstance(error, aiohttp.ClientResponseError):
        return " ".join(error.message.split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and not isinstance(error, aiohttp.ClientError):
        return error.strerror
    return words_of(error)
