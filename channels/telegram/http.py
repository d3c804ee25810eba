"""HTTP to the Bot API, under whichever library: connection pools, uploads, downloads.

The one door to aiohttp. It knows whether a request certainly did not leave, which is what decides
whether a message may be repeated freely (SPEC IO-5).
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import tempfile
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

import aiohttp
import orjson

from channels.telegram.answers import KindRefused, read_answer, words_of
from channels.telegram.client import FileTooBig, Upload
from channels.telegram.settings import TelegramSettings
from goclaw_py.common.text import well_formed
from goclaw_py.model.errors import ChannelRefused, MaybeSent, NotSent, Undeliverable
from goclaw_py.model.messages import FileKind

UPLOAD_LIMIT = 50_000_000
"""Bytes of a file that a bot may send. Of a larger one not the first byte leaves."""
PICTURE_LIMIT = 10 << 20
"""Bytes of a file that may be sent as a picture."""

_SENDING_CONNECTIONS = 64
_POLLING_CONNECTIONS = 1
_ACTING_CONNECTIONS = 8
_ACTING_TIMEOUT_S = 5.0
_FILE_CONNECTIONS = 4
_FILE_TIMEOUT_S = 300.0
"""How long one file may take altogether; a line that is silent is given up much earlier."""
_FILE_QUEUE_S = 60.0
"""How long a file may wait for others to be done: an album has up to ten."""
_FILE_PATIENCE = 3
"""How many times longer the server may be silent: it passes a file on before it answers."""
_CHUNK = 256 * 1024
_SHOWN = (FileKind.PHOTO, FileKind.VOICE)
"""What is sent as what it is; anything else goes as a document."""
_JSON = {"Content-Type": "application/json"}
_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\/]')


@dataclass(frozen=True, slots=True)
class FormFile:
    """An open file, to be sent as part of a form. Whoever opened it closes it."""

    content: BinaryIO
    name: str
    mime: str


class HttpPool:
    """Some connections for one purpose. Raises ``NotSent`` while it is closed."""

    def __init__(
        self,
        connections: int,
        *,
        connect_s: float,
        silence_s: float,
        queue_s: float = 0,
        total_s: float | None = None,
    ) -> None:
        """Times are in seconds.

        Args:
            connections: How many there are at most.
            connect_s: How long it may take to get one.
            silence_s: How long the server may send nothing.
            queue_s: How much longer to wait while all are taken.
            total_s: How long a request may take altogether; by default as long as a silence.
        """
        self._connections = connections
        self._connect_s = connect_s
        self._silence_s = silence_s
        self._queue_s = queue_s
        self._total_s = total_s
        self._session: aiohttp.ClientSession | None = None

    @property
    def silence_s(self) -> float:
        """How long the server may send nothing, in seconds, where a call does not say otherwise."""
        return self._silence_s

    async def open(self) -> None:
        """Make the connection pool, unless there is one."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
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
        """Make a call; returns the status and the body of the answer, whatever they are.

        Raises ``NotSent`` if the request certainly did not leave, ``MaybeSent`` if its answer is
        missing, ``Undeliverable`` for parameters that cannot be written down.
        """
        data = _form(parameters, files) if files else _json(parameters)
        async with self._asking("POST", url, data, silence_s=silence_s) as answer:
            return answer.status, await answer.read()

    async def stream(self, url: str) -> AsyncGenerator[bytes, None]:
        """Fetch a file piece by piece. Raises a ``ChannelError``; close the generator."""
        async with self._asking("GET", url) as answer:
            if answer.status != 200:
                _no_file(answer.status, await answer.content.read(_CHUNK))
            async for piece in answer.content.iter_chunked(_CHUNK):
                yield piece

    @asynccontextmanager
    async def _asking(
        self,
        method: str,
        url: str,
        data: bytes | aiohttp.FormData | None = None,
        *,
        silence_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise NotSent("the connection pool is closed")
        silence = self._silence_s if silence_s is None else silence_s
        patience = self._connect_s + self._queue_s
        timeout = aiohttp.ClientTimeout(
            # An answer that drips is cut too.
            total=(self._total_s or silence) + patience,
            connect=patience,
            sock_connect=self._connect_s,
            sock_read=silence,
        )
        headers = _JSON if isinstance(data, bytes) else None
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                yield answer
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"no connection to the Bot API: {_words(error)}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise MaybeSent(f"no answer from the Bot API: {_words(error)}") from None


class Pools:
    """The connections of one bot.

    Each purpose has its own: answers that hang delay neither typing nor a poll, a large file
    delays no answer, and no reaction waits for a file.
    """

    def __init__(self, settings: TelegramSettings) -> None:
        connect_s, silence_s = settings.connect_timeout_s, settings.send_timeout_s
        self.sending = HttpPool(_SENDING_CONNECTIONS, connect_s=connect_s, silence_s=silence_s)
        self.polling = HttpPool(_POLLING_CONNECTIONS, connect_s=connect_s, silence_s=silence_s)
        self.acting = HttpPool(
            _ACTING_CONNECTIONS, connect_s=connect_s, silence_s=min(silence_s, _ACTING_TIMEOUT_S)
        )
        self.files = HttpPool(
            _FILE_CONNECTIONS,
            connect_s=connect_s,
            silence_s=_FILE_PATIENCE * silence_s,
            queue_s=_FILE_QUEUE_S,
            total_s=_FILE_TIMEOUT_S,
        )

    async def open(self) -> None:
        """Make all of them; the network is not touched yet."""
        for pool in self._all:
            await pool.open()

    async def close(self) -> None:
        """Close all of them."""
        for pool in self._all:
            await pool.close()

    @property
    def _all(self) -> tuple[HttpPool, ...]:
        return self.sending, self.polling, self.acting, self.files


# ---------------------------------------------------------------------------- files


@contextmanager
def opened(upload: Upload) -> Iterator[FormFile]:
    """Open a file to be sent. Raises ``Undeliverable``, ``FileTooBig``."""
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
    """Open a file and let ``send`` send it, as a document if it is not taken as what it is."""
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

    Raises ``Undeliverable`` for what the server would refuse, before the first byte leaves.
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
    """Write a file that appears under its name only when it is whole; returns its size.

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
    """A file beside ``to`` that takes its place at the end, and vanishes if that fails."""
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
    """Raise what an answer means that brings no file."""
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
    """What an error says, without the address; it may still quote the token."""
    if isinstance(error, aiohttp.ClientResponseError):
        return " ".join(error.message.split()) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and not isinstance(error, aiohttp.ClientError):
        return error.strerror
    return words_of(error)
