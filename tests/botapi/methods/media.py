"""Files: sent and fetched."""

from __future__ import annotations

from tests.botapi.files import FileKind, StoredFile, checked
from tests.botapi.methods.common import caption_of, chat_of, deliver
from tests.botapi.rules import Json, Parameters, Upload, bad_request, is_object
from tests.botapi.world import World, with_text

_LEAST_IN_ALBUM, _MOST_IN_ALBUM = 2, 10
"""As documented; the real server takes one as well, and sends it as an ordinary message."""
_ALONE = frozenset([FileKind.DOCUMENT, FileKind.AUDIO])
"""Kinds that an album holds only by themselves."""


def send_file(world: World, call: Parameters, kind: FileKind) -> object:
    chat = chat_of(world, call)
    caption = caption_of(call)
    file = _file(world, call, call.written(kind.value), kind)
    content: Json = {file.kind.value: file.json(), **with_text(caption, caption=True)}
    return deliver(world, call, chat, [content])[0]


def send_media_group(world: World, call: Parameters) -> object:
    chat = chat_of(world, call)
    items = call.items("media")
    if not items:
        raise bad_request("there are no messages to send")
    if len(items) > _MOST_IN_ALBUM:
        raise bad_request("too many messages to send as an album")
    album = f"album{world.number()}"
    contents = [_item(world, call, item) for item in items]
    if len(contents) < _LEAST_IN_ALBUM:
        raise bad_request("an album needs at least two media")
    kinds = {kind for kind, _ in contents}
    if len(kinds) > 1 and kinds & _ALONE:
        raise bad_request("can't use the media of the specified type in the album")
    grouped: list[Json] = [{**content, "media_group_id": album} for _, content in contents]
    return deliver(world, call, chat, grouped)


def _item(world: World, call: Parameters, item: object) -> tuple[FileKind, Json]:
    if not is_object(item):
        raise bad_request("can't parse InputMedia: expected an Object")
    if item.get("type") not in {"photo", "video", "document", "audio"}:
        raise bad_request("can't parse InputMedia: Media type is unsupported")
    kind = FileKind(str(item["type"]))
    fields = Parameters(item)
    caption = caption_of(fields)
    value = fields.text("media")
    file = _attached(world, call, value, kind) or world.files.known(value, kind)
    return kind, {kind.value: file.json(), **with_text(caption, caption=True)}


def _attached(world: World, call: Parameters, value: str, kind: FileKind) -> StoredFile | None:
    """The uploaded file that an item of an album names; None if it names none. Raises ``Refusal``.

    Nothing but ``attach://`` and the name of its field finds it, and it is shown as what it is sent
    as, or not at all.
    """
    if value and not value.startswith("attach://"):
        return None
    upload = call.uploads.get(value.removeprefix("attach://"))
    if upload is None:
        raise bad_request(f"there is no {kind.value} in the request")
    return _stored(world, upload, kind)


def _file(world: World, call: Parameters, value: str, kind: FileKind) -> StoredFile:
    """The file of a field: an upload, or one that is known by its id. Raises ``Refusal``."""
    name = kind.value
    upload = call.uploads.get(value.removeprefix("attach://") or name) or call.uploads.get(name)
    if upload is not None:
        return _stored(world, upload, kind)
    if not value or value.startswith("attach://"):
        raise bad_request(f"there is no {name} in the request")
    return world.files.known(value, kind)


def _stored(world: World, upload: Upload, kind: FileKind) -> StoredFile:
    shown = checked(kind, upload)
    return world.files.keep(shown, upload.content, name=upload.name, mime=upload.mime)


def get_file(world: World, call: Parameters) -> object:
    if not call.written("file_id"):
        raise bad_request("file_id not specified")
    file = world.files.open(call.written("file_id"))
    size = {"file_size": file.size, "file_path": file.path}
    return {"file_id": file.id, "file_unique_id": file.unique_id, **size}
