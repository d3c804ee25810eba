"""Lets aiogram build its models when they are used: it has 500, and a bot needs 30.

Its base class asks pydantic to build models on first use ("defer_build" in its settings), but the
package then rebuilds all of them when it is imported, because their annotations name classes that
their modules import for type checkers only. That takes 75 % of the import and 100 MB.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import BaseModel


def import_with_deferred_models(package: str) -> None:
    """Import a package that is built like aiogram, without building its models.

    Afterwards its modules have the names of its types, so that pydantic builds each model by itself
    when it is used, whoever uses it. The models of other packages are not affected.
    """
    if package in sys.modules:
        return
    rebuild = BaseModel.model_rebuild.__func__  # type: ignore[attr-defined]  # of a class method

    def skipping(cls: type[BaseModel], /, **options: Any) -> bool | None:
        if cls.__module__.startswith(f"{package}."):
            return None
        done: bool | None = rebuild(cls, **options)
        return done

    # No setting of pydantic defers an explicit rebuild, so the method is replaced meanwhile.
    BaseModel.model_rebuild = classmethod(skipping)  # type: ignore[method-assign, assignment]
    try:
        import_module(package)
    finally:
        BaseModel.model_rebuild = classmethod(rebuild)  # type: ignore[method-assign, assignment]
    types: ModuleType = sys.modules[f"{package}.types"]
    names = {name: getattr(types, name) for name in types.__all__}
    names["Default"] = sys.modules[f"{package}.client.default"].Default
    for name, module in list(sys.modules.items()):
        if name.startswith((f"{package}.types.", f"{package}.methods.")):
            # Those that a module has imported itself stay.
            vars(module).update(names | vars(module))
