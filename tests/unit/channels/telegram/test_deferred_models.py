"""``channels.telegram.deferred_models``: aiogram's models are built when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.real_time

_HEAD = """
from channels.telegram.deferred_models import import_with_deferred_models
from pydantic import BaseModel
before = BaseModel.model_rebuild
import_with_deferred_models("aiogram")
assert BaseModel.model_rebuild == before
import aiogram.methods, aiogram.types
models = [
    model
    for package in (aiogram.types, aiogram.methods)
    for model in map(package.__dict__.get, package.__all__)
    if isinstance(model, type) and issubclass(model, BaseModel)
]
"""


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _HEAD + code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_no_type_is_built_by_the_import() -> None:
    built = _run("print(*(m.__name__ for m in models if m.__pydantic_complete__))").split()
    assert {"Message", "Update", "User", "SendMessage"}.isdisjoint(built)
    # Methods with plain parameters are built where they are defined.
    assert len(built) < 200


@pytest.mark.slow
def test_a_model_is_built_at_its_first_use_by_whoever_uses_it() -> None:
    answer = _run(
        'user = {"id": 7, "is_bot": False, "first_name": "Ann"}\n'
        'chat = {"id": 7, "type": "private"}\n'
        'message = {"message_id": 1, "date": 0, "chat": chat, "from": user, "text": "x"}\n'
        'update = aiogram.types.Update.model_validate({"update_id": 1, "message": message})\n'
        "print(update.message.from_user.first_name)\n"
        'print(aiogram.methods.SendMessage(chat_id=7, text="x").model_dump()["chat_id"])\n'
    )
    assert answer.split() == ["Ann", "7"]


@pytest.mark.slow
def test_every_model_can_be_built() -> None:
    """Nothing that aiogram names is missing in the modules of its models."""
    assert _run("for m in models: m.model_rebuild()\nprint(len(models) > 400)").split() == ["True"]
