"""Deployment settings: `penstock.toml`, then the environment. A bad value is named with the way out."""

from __future__ import annotations

import os
import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from penstock.model.ceiling import Ceiling
from penstock.model.deployment import ChannelConfig, ModelConfig
from penstock.model.errors import BadApp, BadConfig
from penstock.model.limits import Limits, profile
from penstock.model.redaction import is_secret, redacted

FILE = "penstock.toml"


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"


class KnownToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client that may use the HTTP server. The file holds a digest, so reading it gives no access."""

    name: str
    sha256: str  # of the token, in hexadecimal
    scopes: tuple[str, ...] = ("*",)
    expires: datetime | None = None  # from then on it is not valid


class DashboardConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may ask for the dashboard, and what its pages leave out."""

    hosts: tuple[str, ...] = ()  # names besides this machine's own under which it is served
    hide: tuple[str, ...] = ()  # fields of payloads that are shown as ***
    payloads: Literal["viewer", "operator"] = "viewer"  # the least role that sees payloads


class ReadinessConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has to be so before an app is let loose, and what `penstock check` asks of its deployment."""

    require_trial: bool | None = None  # None: as the app itself says
    owner: str = ""  # the team or person that answers for it
    audience: str = ""  # who reads its alerts and figures
    usd_expected: float | None = None  # what a month is expected to cost


class ServiceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a service of an app is when services run apart."""

    database: str | None = None
    port: int | None = None
    url: str = ""  # that the other services call; this machine at the port where it is empty


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a deployment decides; code declares everything else."""

    database: str | None = None
    workers: int = 1
    synchronous: Literal["full", "normal", "off"] = "full"
    profile: str = "local"
    grace_seconds: float = 25.0
    port: int = 8787
    history: bool | float = True  # the share of chains whose messages are recorded in a file beside the database
    log: LogConfig = LogConfig()
    tokens: tuple[KnownToken, ...] = ()
    ceiling: Ceiling | None = None  # what the whole app may use in a month before its cron tasks stop
    readiness: ReadinessConfig = ReadinessConfig()
    dashboard: DashboardConfig = DashboardConfig()
    models: dict[str, ModelConfig] = {}  # language models, by the names that code calls them
    channels: dict[str, ChannelConfig] = {}  # ways to people and programs, by the names that code calls them
    trust_apprise: bool = False  # Apprise checks no address
    systems: dict[str, dict[str, Any]] = {}  # a section for each of the systems, which knows what may stand there
    services: dict[str, ServiceConfig] = {}  # of an app whose services run apart, by name
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
        try:
            return parse(file.read_text(encoding="utf-8"), str(file))
        except OSError as error:
            raise BadConfig(f"{file} cannot be read: {error.strerror}.", path=str(file)) from error
        except UnicodeDecodeError as error:
            raise BadConfig(
                f"{file} is not UTF-8 text (byte {error.start}). Save it as UTF-8.", path=str(file)
            ) from error


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
        raise BadConfig(f"{name}: {_config_error(values, str(error))}", path=name) from error
    except BadApp as error:
        raise BadConfig(f"{name}: {error}", path=name, **error.facts) from error
    for field, least, most in _RANGES:
        value = getattr(config, field)
        if not least <= value <= most:
            raise BadConfig(
                f"{name}: {field} is {value}; it must be at least {least} and at most {most}.", field=field, value=value
            )
    try:
        config.limits  # noqa: B018 (what is wrong with them is refused here, not at first use)
    except BadConfig as error:
        raise BadConfig(f"{name}: {error}", path=name, **error.facts) from error
    return config


# The bounds are those of a machine: more workers than that fight for one file, and a day is more than patience.
_RANGES = (("workers", 1, 256), ("grace_seconds", 0, 86_400), ("port", 1, 65_535), ("history", 0, 1))
_PLACE = re.compile(r"(?P<reason>.*) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)


def _config_error(values: dict[str, Any], error: str) -> str:
    """The setting, what was written there, and why it does not fit."""
    found = _PLACE.fullmatch(error)
    if found is None or "unknown field" in error:
        return f"{error}. Known settings: {', '.join(_known())}."
    if found["path"] == "database" or is_secret(found["path"]):
        return f"{found['path']}: {found['reason']}. Known settings: {', '.join(_known())}."  # it may hold a password
    value: Any = values
    for part in found["path"].split("."):
        value = value.get(part) if isinstance(value, dict) else value
    return f"{found['path']} is {redacted(repr(value))}: {found['reason']}. Known settings: {', '.join(_known())}."


def _known() -> list[str]:
    parts: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("log", LogConfig),
        ("ceiling", Ceiling),
        ("readiness", ReadinessConfig),
        ("dashboard", DashboardConfig),
    )
    nested = [f"{name}.{field}" for name, part in parts for field in part.__struct_fields__]
    names = {*Config.__struct_fields__, "limits"} - {"overrides", *(name for name, _ in parts)}
    return [*sorted(names), *sorted(nested)]
