"""What a deployment decides about rentals: `[systems.rentals]` in penstock.toml. All of it has defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

import penstock as ps
from penstock.channels import QuietHours, parse_quiet, parse_time
from penstock.data import parse_span

CONNECTORS = Path(__file__).parent / "connectors"
NO_SOURCE = (
    "No source is chosen, and nothing is collected. Name some under [systems.rentals.sources] in penstock.toml, "
    "or try it with fake portals: penstock run rentals --standins"
)
SHIPPED = ("yad2", "stockholm", "rentcast", "olx", "kijiji")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sources: dict[str, dict[str, Any]] = {}  # by name: words that replace those of the connector `use`, or of this name
    connectors: str = ""  # a folder with TOML files of your own
    collect: str = "*/30 * * * *"
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    budget: Annotated[float, msgspec.Meta(ge=5, le=1_200)] = 300.0  # seconds of a run in which sources start
    hold_for: str = "3h"  # an implausible price is believed if it stays this long
    cheaper_share: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.02
    cheaper_amount: Annotated[float, msgspec.Meta(gt=0)] = 100.0
    channel: str = ""  # of searches that name none: one of [channels]
    user_agent: str = "penstock-rentals"
    allow: tuple[str, ...] = ()  # private hosts with their ports that may be read, such as 127.0.0.1:8000

    def specs(self) -> list[dict[str, Any]]:
        """Return the connectors that are to run, each with its replaced words."""
        found = []
        for name, words in self.sources.items():
            words = dict(words)
            given = read_connector(str(words.pop("use", name)), self.connectors)
            given |= {"name": name}
            for key, value in words.items():
                merged = isinstance(value, dict) and isinstance(given.get(key), dict)
                value = given[key] | value if merged else value
                # A word that is to be left out is None.
                given[key] = {name: each for name, each in value.items() if each is not None} if merged else value
            found.append(given)
        return found

    @staticmethod
    def of(systems: Mapping[str, Any]) -> Settings:
        try:
            settings = msgspec.convert(systems.get("rentals", {}), Settings)
            parse_span(settings.hold_for)
        except msgspec.ValidationError as error:
            known = ", ".join(Settings.__struct_fields__)
            raise ps.BadConfig(f"[systems.rentals] in penstock.toml: {error}. Known settings: {known}.") from error
        return settings


def read_connector(name: str, folder: str) -> dict[str, Any]:
    """Return the words of a connector of this name: one of yours, or one that ships."""
    places = [Path(folder, f"{name}.toml")] if folder else []
    places.append(CONNECTORS / f"{name}.toml")
    for path in places:
        if path.is_file():
            return tomllib.loads(path.read_text(encoding="utf-8"))
    shipped = ", ".join(sorted(path.stem for path in CONNECTORS.glob("*.toml")))
    raise ps.BadConfig(f"[systems.rentals.sources.{name}]: there is no connector {name}.toml. These ship: {shipped}.")


class Notify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a person is notified of one search."""

    channel: str = ""
    to: str = ""
    quiet_from: str | None = None
    quiet_to: str | None = None
    digest_at: str | None = None
    zone: str = "UTC"
    reasons: tuple[str, ...] = ("new", "cheaper", "back", "gone")

    def quiet(self) -> QuietHours | None:
        return parse_quiet(self.quiet_from, self.quiet_to, self.zone)

    def check(self) -> None:
        """Raise BadParameter where a time or zone is wrong."""
        self.quiet()
        if self.digest_at:
            parse_time(self.digest_at, "digest_at")
