"""Files that the bot sends and fetches."""

from __future__ import annotations

import json

import aiohttp
import pytest

from tests.botapi import BotApi, Fault, FaultKind, FileKind, png
from tests.botapi.caller import Wire
from tests.botapi.files import DOWNLOAD_BYTES, PHOTO_BYTES, UPLOAD_BYTES, dimensions
from tests.botapi.rules import Json

ANN = 7
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffc0000b0800c8012c01011100")
GIF = b"GIF89a\x2c\x01\xc8\x00rest"
WEBP = b"RIFF....WEBPVP8 "


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(300, 200), (300, 200)),
        (JPEG, (300, 200)),
        (GIF, (300, 200)),
        (WEBP, (1, 1)),
        (b"\xff\xd8\xff", None),
        (b"<svg/>", None),
    ],
)
def test_pictures_are_told_by_their_first_bytes(
    content: bytes, size: tuple[int, int] | None
) -> None:
    assert dimensions(content) == size


@pytest.mark.parametrize(
    ("method", "field", "content", "kind"),
    [
        ("sendPhoto", "photo", png(), FileKind.PHOTO),
        ("sendDocument", "document", b"abc", FileKind.DOCUMENT),
        ("sendVoice", "voice", b"OggS...", FileKind.VOICE),
        ("sendVoice", "voice", b"RIFF...", FileKind.DOCUMENT),
    ],
)
async def test_an_upload_is_sent_and_can_be_sent_again_by_its_id(
    chat: Wire, method: str, field: str, content: bytes, kind: FileKind
) -> None:
    caption = {"caption": "<b>see</b>", "parse_mode": "HTML"}
    answer = await chat.upload(method, {field: ("a.bin", content)}, chat_id=ANN, **caption)
    assert answer["ok"] is True, answer
    seen = chat.api.view(ANN)[-1]
    assert seen.file is not None
    assert (seen.file.kind, seen.file.size, seen.text) == (kind, len(content), "see")
    assert seen.html == "<b>see</b>"
    assert chat.api.file(seen.file.file_id) == content
    call = chat.api.transcript(method)[0]
    assert call.parameters[field] == {
        "name": "a.bin",
        "mime": "application/octet-stream",
        "size": len(content),
    }
    again = f"send{kind.value.capitalize()}"
    await chat.result(again, chat_id=ANN, **{kind.value: seen.file.file_id})


async def test_a_caption_is_edited(chat: Wire) -> None:
    await chat.upload("sendDocument", {"document": ("a.txt", b"abc")}, chat_id=ANN)
    edit = {"chat_id": ANN, "message_id": 2}
    await chat.result("editMessageCaption", **edit, caption="<b>new</b>", parse_mode="HTML")
    seen = chat.api.view(ANN)[-1]
    assert (seen.text, seen.html, chat.api.texts(ANN)) == ("new", "<b>new</b>", ["new"])
    assert "no text" in await chat.refusal("editMessageText", **edit, text="x")
    long = await chat.refusal("editMessageCaption", **edit, caption="x" * 1025)
    assert long == "Bad Request: message caption is too long"


@pytest.mark.parametrize(
    ("method", "content", "more", "words"),
    [
        ("sendPhoto", b"no picture", 0, "Bad Request: IMAGE_PROCESS_FAILED"),
        ("sendPhoto", png(9999, 2), 0, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", png(21, 1), 0, "Bad Request: PHOTO_INVALID_DIMENSIONS"),
        ("sendPhoto", png(), PHOTO_BYTES, "is too big for a photo; the maximum size is"),
        ("sendDocument", b"", 0, "Bad Request: file must be non-empty"),
        ("sendDocument", b"x", UPLOAD_BYTES, "Request Entity Too Large"),
    ],
)
async def test_a_file_that_cannot_be_sent_is_refused(
    chat: Wire, method: str, content: bytes, more: int, words: str
) -> None:
    field = method.removeprefix("send").lower()
    answer = await chat.upload(method, {field: ("a", content + bytes(more))}, chat_id=ANN)
    assert answer["ok"] is False
    assert words in str(answer["description"])
    assert len(chat.api.view(ANN)) == 1


@pytest.mark.parametrize(
    ("photo", "words"),
    [
        ("", "there is no photo in the request"),
        ("nonsense", "wrong file identifier/HTTP URL specified"),
        ("https://x.example/a.png", "failed to get HTTP URL content"),
        ("file0001", "can't use file of type Document as Photo"),
    ],
)
async def test_a_wrong_file_id_is_refused(chat: Wire, photo: str, words: str) -> None:
    chat.api.send(ANN, FileKind.DOCUMENT)
    said = await chat.refusal("sendPhoto", chat_id=ANN, photo=photo)
    assert said == f"Bad Request: {words}"


async def test_a_caption_has_at_most_1024_characters(chat: Wire) -> None:
    words = await chat.refusal("sendPhoto", chat_id=ANN, photo="x", caption="x" * 1025)
    assert words == "Bad Request: message caption is too long"


async def test_an_album_is_sent_in_one_call(chat: Wire) -> None:
    media = '[{"type":"photo","media":"attach://a","caption":"all"},{"type":"photo","media":"%s"}]'
    old = chat.api.send(ANN, FileKind.PHOTO)["photo"]
    assert isinstance(old, list)
    files = {"a": ("a.png", png())}
    answer = await chat.upload(
        "sendMediaGroup", files, chat_id=ANN, media=media % old[-1]["file_id"]
    )
    assert answer["ok"] is True, answer
    seen = chat.api.view(ANN)[-2:]
    assert [message.text for message in seen] == ["all", ""]
    assert len({message.file.album for message in seen if message.file}) == 1
    assert chat.api.most_in_window(1).chats == {ANN: 2}


@pytest.mark.parametrize(
    ("media", "words"),
    [
        ([], "there are no messages to send"),
        ([{"type": "photo", "media": "x"}] * 11, "too many messages to send as an album"),
        (["x"], "expected an Object"),
        ([{"type": "sticker", "media": "x"}], "Media type is unsupported"),
        ([{"type": "photo", "media": "attach://x"}], "there is no photo in the request"),
        ([{"type": "photo", "media": "x", "caption": "x" * 1025}], "caption is too long"),
        (
            [{"type": "photo", "media": "file0001"}, {"type": "document", "media": "file0002"}],
            "can't use the media of the specified type in the album",
        ),
    ],
)
async def test_a_wrong_album_is_refused(chat: Wire, media: list[Json], words: str) -> None:
    chat.api.send(ANN, FileKind.PHOTO)
    chat.api.send(ANN, FileKind.DOCUMENT)
    assert words in await chat.refusal("sendMediaGroup", chat_id=ANN, media=media)


async def test_an_album_has_at_least_two_files_each_named_by_its_field(chat: Wire) -> None:
    files = {"a": ("a.png", png()), "b": ("b.png", png())}

    async def answer(*names: str) -> str:
        media = json.dumps([{"type": "photo", "media": name} for name in names])
        said = await chat.upload("sendMediaGroup", files, chat_id=ANN, media=media)
        return str(said.get("description", ""))

    assert "at least two" in await answer("attach://a")
    assert "wrong file identifier" in await answer("attach://a", "b")
    assert "there is no photo" in await answer("attach://a", "attach://c")
    assert len(chat.api.view(ANN)) == 1, "nothing of a refused album is sent"
    assert not await answer("attach://a", "attach://b")


async def test_a_file_over_20_mb_cannot_be_fetched(api: BotApi, wire: Wire) -> None:
    message = api.send(ANN, FileKind.DOCUMENT, content=b"x", size=DOWNLOAD_BYTES + 1)
    document = message["document"]
    assert isinstance(document, dict)
    words = await wire.refusal("getFile", file_id=document["file_id"])
    assert words == "Bad Request: file is too big"
    assert await wire.refusal("getFile", file_id="x") == "Bad Request: invalid file_id"
    assert await wire.refusal("getFile") == "Bad Request: file_id not specified"


async def test_only_files_that_were_asked_for_can_be_downloaded(api: BotApi, wire: Wire) -> None:
    api.send(ANN, FileKind.DOCUMENT)
    base = f"{api.url}/file/bot{api.token}"
    async with wire.session.get(f"{base}/documents/file0001.bin") as answer:
        assert answer.status == 404
    await wire.result("getFile", file_id="file0001")
    async with wire.session.get(f"{base}/documents/file0001.bin") as answer:
        assert answer.status == 200
    async with wire.session.get(f"{api.url}/file/bot4242:AAwrong-token/x") as answer:
        assert answer.status == 401


async def test_a_download_can_break_in_the_middle(api: BotApi, wire: Wire) -> None:
    api.send(ANN, FileKind.DOCUMENT, content=bytes(1000))
    file = await wire.result("getFile", file_id="file0001")
    url = f"{api.url}/file/bot{api.token}/{file['file_path']}"
    api.fault(Fault("download", FaultKind.CUT))
    async with wire.session.get(url) as answer:
        assert answer.content_length == 1000
        assert len(await answer.content.readexactly(500)) == 500
        assert not await _more(answer.content)
    assert api.transcript("download")[0].parameters == {"path": file["file_path"]}


async def _more(stream: object) -> bytes:
    assert isinstance(stream, aiohttp.StreamReader)
    try:
        return await stream.read()
    except aiohttp.ClientPayloadError:
        return b""
