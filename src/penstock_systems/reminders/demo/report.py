"""What the demonstration ends with: its figures beside what the receivers counted, as report.json and report.html."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock_systems.reminders.app import app, db
from penstock_systems.reminders.demo import world
from penstock_systems.reminders.demo.child import ARRIVALS, DATABASE
from penstock_systems.reminders.demo.page import html
from penstock_systems.reminders.listing import why
from penstock_systems.standins.notifications.arrivals import read_arrivals

SERVERS = {"email": "resend", "webhook": "webhook", "telegram": "telegram"}
BY_STATUS = """
select d.channel, d.status, n.is_digest, count(*) as deliveries
from notification_deliveries d
join notifications n on n.id = d.notification_id
group by d.channel, d.status, n.is_digest
"""
IN_DIGESTS = """
select count(*)
from notification_deliveries d
join notification_deliveries g on g.notification_id = d.digest_id and g.status = 'sent'
where d.status = 'digest'
"""
SENT = """
select d.notification_id, d.fire_seq, d.channel, d.status, n.title
from notification_deliveries d
join notifications n on n.id = d.notification_id
where d.status in ('sent', 'held', 'unknown', 'sending')
"""
LEAP_DAY = """
select n.timezone, d.occurrence_at, min(d.channel) as channel, d.status, count(*) as notices
from notification_deliveries d
join notifications n on n.id = d.notification_id
where n.recurrence_rule like '%1 day%'
and n.starts like '%T02:30'
and d.occurrence_at between :since and :until
group by n.timezone, d.occurrence_at, d.status
order by n.timezone, d.occurrence_at
limit 40
"""
SWITCHED_OFF = "select id, url, state, last_error from endpoints where state = 'off' order by url limit 20"
HELD = "select notification_id from notification_deliveries where status = 'held' order by intent_at limit 1"


def write(seed: int, kills: list[dict[str, object]], seconds: float) -> dict[str, Any]:
    """Write both files, and return what is in report.json."""
    app.database = str(DATABASE)
    found = asyncio.run(_gather())
    found["figures"]["kills"] = len(kills)
    found |= {"seed": seed, "kills": kills, "seconds": round(seconds, 1)}
    Path("report.json").write_text(json.dumps(found, indent=1), "utf-8")
    Path("report.html").write_text(html(found), "utf-8")
    return found


def summary(found: dict[str, Any]) -> str:
    """The figures in a few lines."""
    figures, truth = found["figures"], found["truth"]
    lines = [
        "",
        f"{'':<10}{'promised':>9}{'delivered':>11}{'retrying':>10}{'given up':>10}{'unknown':>9}{'suppressed':>12}",
    ]
    for channel, row in figures["channels"].items():
        numbers = (row[name] for name in ("promised", "delivered", "retrying", "given_up", "unknown", "suppressed"))
        widths = (9, 11, 10, 10, 9, 12)
        lines.append(
            f"{channel:<10}" + "".join(f"{number:>{width},}" for number, width in zip(numbers, widths, strict=True))
        )
    lines.append("")
    lines.append(
        f"{figures['kills']} kills. By the receivers' count: {truth['arrived']:,} arrived, {truth['doubled']} twice, "
        f"{truth['lost']} lost, {truth['unrecorded']} that no record explains."
    )
    return "\n".join(lines)


async def _gather() -> dict[str, Any]:
    arrivals = read_arrivals(ARRIVALS)
    async with app:
        channels = await _channels()
        truth = await _truth(arrivals)
        since = round(world.LEAP.timestamp() * 1000)
        leap = [row.asdict() for row in await db.rows(LEAP_DAY, since=since, until=since + 86_400_000)]
        off = [row.asdict() for row in await db.rows(SWITCHED_OFF)]
        held = await db.value(HELD)
        explained = [await why(held)] if held else []
    mails = [each for each in arrivals if each["server"] == "resend"]
    figures = {"channels": channels, "kills": 0, "reminders": world.REMINDERS, "people": world.PEOPLE}
    return {
        "figures": figures,
        "truth": truth,
        "leap_day": leap,
        "switched_off": off,
        "owner_mail": next((_mail(each) for each in mails if "switched off" in each["subject"]), None),
        "digest": next((_mail(each) for each in mails if " notices: " in each["subject"]), None),
        "why": explained,
        "days": _days(arrivals),
    }


async def _channels() -> dict[str, dict[str, int]]:
    delivered = int(await db.value(IN_DIGESTS))
    found: dict[str, dict[str, int]] = {}
    names = {
        "sent": "delivered",
        "replayed": "delivered",
        "held": "unknown",
        "unknown": "unknown",
        "missed": "given_up",
    }
    names |= {"given_up": "given_up", "suppressed": "suppressed", "digest": "retrying"}
    for row in await db.rows(BY_STATUS):
        if row.is_digest:
            continue  # what is in it was promised, not the digest
        columns = dict.fromkeys(("promised", "delivered", "retrying", "given_up", "unknown", "suppressed"), 0)
        channel = found.setdefault(row.channel, columns)
        channel["promised"] += row.deliveries
        channel[names.get(row.status, "retrying")] += row.deliveries
    found["email"]["delivered"] += delivered
    found["email"]["retrying"] -= delivered
    return dict(sorted(found.items()))


async def _truth(arrivals: list[dict[str, Any]]) -> dict[str, Any]:
    """What the receivers counted, compared with what is recorded, in both directions."""
    came = Counter((each["server"], _about(each)) for each in arrivals)
    recorded: Counter[tuple[str, str]] = Counter()
    sent: Counter[tuple[str, str]] = Counter()
    for row in await db.rows(SENT):
        about = row.title if row.channel == "telegram" else f"{row.notification_id} {row.fire_seq}"
        recorded[SERVERS[row.channel], about] += 1
        sent[SERVERS[row.channel], about] += row.status == "sent"
    return {
        "arrived": sum(came.values()),
        "by_server": dict(Counter(each["server"] for each in arrivals)),
        "doubled": sum(max(0, times - max(1, recorded[about])) for about, times in came.items()),
        "lost": sum(max(0, times - came[about]) for about, times in sent.items()),
        "unrecorded": sum(1 for about in came if about not in recorded),
    }


def _about(arrival: dict[str, Any]) -> str:
    """Which fire an arrival is of. A line in a chat names the reminder alone: its fires are compared by their number."""
    return str(arrival["text"]).partition("\n")[0] if arrival["server"] == "telegram" else str(arrival["about"])


def _mail(arrival: dict[str, Any]) -> dict[str, str]:
    at = datetime.fromtimestamp(arrival["at"], UTC)
    return {"at": f"{at:%d %B %H:%M} UTC", "to": arrival["to"], "subject": arrival["subject"], "text": arrival["text"]}


def _days(arrivals: list[dict[str, Any]]) -> list[int]:
    """How many notices arrived on each day."""
    counts = Counter(int((each["at"] - world.START.timestamp()) // 86_400) for each in arrivals)
    return [counts[day] for day in range(world.DAYS)]
