"""Deployment settings: `penstock.toml`, then the environment. A bad value is named with the way out."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.model.errors import BadConfig
from penstock.model.limits import Limits, profile

FILE = "penstock.toml"


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a deployment decides; code declares everything else."""

    database: str | None = None
    workers: int = 1
    synchronous: Literal["full", "normal", "off"] = "full"
    profile: str = "local"
    grace_seconds: float = 25.0
    port: int = 8787
    log: LogConfig = LogConfig()
    overrides: dict[str, Any] = {}

    @property
    def limits(self) -> Limits:
        return profile(self.profile, **self.overrides)

    @staticmethod
    def load(path: str | Path | None = None) -> Config:
        """Reads the file named, or PENSTOCK_CONFIG, or `penstock.toml` in the current folder if there is one."""
        named = path or os.environ.get("PENSTOCK_CONFIG")
        file = Path(named or FILE)
        if not file.exists():
            if named:
                raise BadConfig(f"{file} does not exist; PENSTOCK_CONFIG or --config names it.", path=str(file))
            return Config()
        return parse(file.read_text(encoding="utf-8"), str(file))


def parse(text: str, name: str) -> Config:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{name} is not valid TOML: {error}.", path=name) from error
    if "limits" in values:
        values["overrides"] = values.pop("limits")
    try:
        config = msgspec.convert(values, Config)
    except msgspec.ValidationError as error:
        raise BadConfig(f"{name}: {error}. Known settings: {', '.join(_known())}.", path=name) from error
    if config.workers < 1:
        raise BadConfig(f"{name}: workers is {config.workers}; it must be at least 1.", field="workers")
    config.limits  # noqa: B018 (an unknown profile or limit is refused here, not at first use)
    return config


def _known() -> list[str]:
    return sorted({*Config.__struct_fields__, "limits"} - {"overrides"})
