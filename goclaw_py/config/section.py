"""What every table of the settings file is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the file: no unknown keys, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
