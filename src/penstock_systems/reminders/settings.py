"""What a deployment decides about reminders: `[systems.reminders]` in penstock.toml. All of it has defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

import penstock as ps
from penstock.channels import QuietHours, parse_quiet
from penstock.data import parse_span

RETRIES = 3
BACKOFF = ("1m", "5m", "30m")
CHANNEL_SECONDS = 10.0
CLAIM_ROWS = 100


class Quiet(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"begins": "from", "ends": "to"}
):
    """The quiet hours of people who have set none."""

    begins: str
    ends: str
    urgent: Literal["deliver", "hold"] = "deliver"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cron: str = "* * * * *"  # when to look for what is due
    sender: str = "Reminders <reminders@example.org>"
    channels: tuple[str, ...] = ("email",)  # of a reminder that names none
    retries: Annotated[int, msgspec.Meta(ge=1, le=20)] = RETRIES
    backoff: tuple[str, ...] = BACKOFF
    unknown: Literal["hold", "resend"] = "hold"
    quiet: Quiet | None = None
    zone: str = "UTC"  # of people and reminders that name none
    endpoint_off_after: str = "5d"
    public_url: str = ""  # where people reach the server: for links in mails
    parallel: Annotated[int, msgspec.Meta(ge=1, le=256)] = 32
    mails_a_second: Annotated[float, msgspec.Meta(gt=0, le=10_000)] = 2.0  # Resend answers two requests a second
    allow: tuple[str, ...] = ()  # addresses in your own network that endpoints may have, such as 10.0.0.7:8080
    keep_days: Annotated[int, msgspec.Meta(ge=1)] = 90

    @property
    def backoff_ms(self) -> tuple[int, ...]:
        return tuple(round(parse_span(each) * 1000) for each in self.backoff)

    @property
    def endpoint_off_ms(self) -> int:
        return round(parse_span(self.endpoint_off_after) * 1000)

    @property
    def unreachable(self) -> tuple[str, ...]:
        """The delays that no retry uses: the row is dead before."""
        return self.backoff[max(0, self.retries - 1) :]

    def quiet_hours(self, begins: str | None, ends: str | None, zone: str) -> QuietHours | None:
        """The quiet hours of a person, or those of all."""
        if not (begins or ends) and self.quiet is not None:
            begins, ends = self.quiet.begins, self.quiet.ends
        return parse_quiet(begins, ends, zone)

    @staticmethod
    def of(systems: Mapping[str, Any]) -> Settings:
        """Read the section of this system, or raise BadConfig with the setting that is wrong."""
        try:
            settings = msgspec.convert(systems.get("reminders", {}), Settings)
            settings.quiet_hours(None, None, settings.zone)
            if not settings.backoff or not settings.backoff_ms or settings.endpoint_off_ms <= 0:
                raise ps.BadConfig("backoff and endpoint_off_after need durations such as 5m.")
        except msgspec.ValidationError as error:
            known = ", ".join(Settings.__struct_fields__)
            raise ps.BadConfig(f"[systems.reminders] in penstock.toml: {error}. Known settings: {known}.") from error
        except ps.PenstockError as error:
            raise ps.BadConfig(f"[systems.reminders] in penstock.toml: {error}") from error
        address = urlsplit(settings.public_url)
        if settings.public_url and (address.scheme not in ("http", "https") or not address.netloc):
            raise ps.BadConfig(
                f"[systems.reminders] in penstock.toml: public_url is {settings.public_url!r}. Write an address such as "
                "https://reminders.example.org."
            )
        return settings
