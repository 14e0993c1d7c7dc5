"""Dead letters: a service changes its date format. One dead letter is repaired by code, another is edited and replayed."""

from __future__ import annotations

import asyncio

import penstock as ps

app = ps.App("calendar")


class Booked(ps.Event, type="visit.booked"):
    day: str


visits = app.queue("visits", Booked)
kept: list[str] = []


@visits.handler
async def keep(visit: Booked) -> None:
    if "/" in visit.day:
        raise ps.Unparsable(f"{visit.day!r} is not a date", day=visit.day)  # permanent: a dead letter without a retry
    kept.append(visit.day)


@visits.repair  # called once for each dead letter; the returned payload is replayed
async def reverse_date(letter: ps.DeadLetter) -> Booked | None:
    visit: Booked = app.dead.payload(letter)
    parts = visit.day.split("/")
    return Booked(day="-".join(reversed(parts))) if len(parts) == 3 else None


@app.on_alert
async def page(alert: ps.Alert) -> None:
    print("ALERT", alert.text)


async def main() -> None:
    async with app.unit():
        visits.send_all(Booked(day=day) for day in ("2026-11-15", "16/11/2026", "17/11"))
    await app.run(until_idle=True)

    async with app:
        for group in await app.dead.groups():
            print(f"{group.letters} dead letter of {group.type}, {group.error_class}: {group.examples[0]}")
        (letter,) = await app.dead.list(ps.DeadLetterFilter(queue="visits"))
        await app.dead.edit(letter.id, Booked(day="2026-11-17"))
        print("replayed:", await app.dead.replay(letter.id))
    await app.run(until_idle=True)
    print("kept:", ", ".join(sorted(kept)))


if __name__ == "__main__":
    asyncio.run(main())
