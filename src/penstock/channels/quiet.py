"""When a notice may be sent: quiet hours hold it until they end, and a digest collects it until its time of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from penstock.channels.channel import TEXT_CHARACTERS_MAX, Notice
from penstock.model.errors import BadParameter
from penstock.model.zone import Zone

DIGEST_ITEMS_MAX = 50  # in one digest; the rest is counted
ITEM_CHARACTERS_MAX = 300
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
DAY = timedelta(1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The hours of every day from one local time to another, such as 22:00 to 07:00, in a time zone.

    A boundary that clocks leap over is right after the leap; one that comes twice is the first of the two."""

    begins: time
    ends: time
    zone: str = "UTC"

    def __post_init__(self) -> None:
        Zone(self.zone)
        if self.begins == self.ends:
            raise BadParameter(
                f"Quiet hours cannot begin and end at {self.begins:%H:%M}. Write two times, or leave both out.",
                field="quiet",
            )

    def end_after(self, moment: int) -> int | None:
        """Return when the quiet hours that this moment lies in end, in microseconds; None outside of them."""
        place = Zone(self.zone)
        today = place.wall(moment).date()
        over_midnight = self.ends < self.begins
        for day in (today - DAY, today):
            begins = place.moment_of(datetime.combine(day, self.begins))
            ends = _moment(place, day + DAY if over_midnight else day, self.ends)
            if begins is not None and begins <= moment < ends:
                return ends
        return None


def parse_time(text: str, field: str = "time") -> time:
    """Return a local time such as `07:30`, or raise BadParameter."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise BadParameter(f"{field} cannot be {text[:40]!r}. Write hours and minutes, such as 07:30.", field=field)
    return time(int(found[1]), int(found[2]))


def parse_quiet(begins: str | None, ends: str | None, zone: str = "UTC") -> QuietHours | None:
    """Return the quiet hours between two texts such as `22:00`, or None where both are missing."""
    if not begins and not ends:
        return None
    if not (begins and ends):
        raise BadParameter("Quiet hours need both times, such as from 22:00 to 07:00.", field="quiet")
    return QuietHours(parse_time(begins, "quiet_from"), parse_time(ends, "quiet_to"), zone)


def next_digest(moment: int, at: time, zone: str = "UTC") -> int:
    """Return the first moment later than this one when clocks in the zone show this time of day."""
    place = Zone(zone)
    today = place.wall(moment).date()
    days = (today + timedelta(number) for number in range(4))  # one day of a zone may never have been
    return next(found for day in days if (found := _moment(place, day, at)) > moment)


def send_at(
    moment: int,
    *,
    quiet: QuietHours | None = None,
    digest_at: time | None = None,
    zone: str = "UTC",
    urgent: bool = False,
) -> int:
    """Return when a notice of this moment may be sent, in microseconds.

    The moment itself means now. A later one means: keep the notice until then, and send all that is kept for one receiver
    until the same moment as one digest (`join_notices`). A digest whose time lies in quiet hours waits for their end.
    An urgent notice is always sent now."""
    if urgent:
        return moment
    at = moment if digest_at is None else next_digest(moment, digest_at, zone)
    ends = quiet.end_after(at) if quiet is not None else None
    return at if ends is None else ends


def join_notices(notices: Sequence[Notice], *, title: str = "", kind: str = "digest") -> Notice:
    """Return one notice for all that were kept for a receiver. A single one is returned as it is.

    The text names each of at most 50 notices, in the order given, and counts the rest. The digest goes to the receiver of
    the first, has the time of the latest, and no HTML part."""
    if not notices:
        raise ValueError("a digest needs a notice")
    first = notices[0]
    if len(notices) == 1:
        return first
    lines: list[str] = []
    length = 0
    for notice in notices[:DIGEST_ITEMS_MAX]:
        text = " ".join(notice.text.split()) if notice.text != notice.title else ""
        line = (f"- {notice.subject}: {text}" if text else f"- {notice.subject}")[:ITEM_CHARACTERS_MAX]
        length += len(line) + 1
        if length > TEXT_CHARACTERS_MAX - 100:  # the last line needs room too
            break
        lines.append(line)
    if left := len(notices) - len(lines):
        lines.append(f"and {left:,} more")
    return Notice(
        title or f"{len(notices):,} notices: {first.subject}",
        "\n".join(lines),
        to=first.to,
        kind=kind,
        at=max(notice.at for notice in notices),
        data={"count": len(notices)},
    )


def _moment(place: Zone, day: date, at: time) -> int:
    """The moment of a local time; of a day that never was, the first moment after it."""
    for later in (day, day + DAY, day + 2 * DAY):
        found = place.moment_of(datetime.combine(later, at if later == day else time.min))
        if found is not None:
            return found
    raise AssertionError("no zone leaves out two days")
