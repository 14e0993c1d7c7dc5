"""Dead letters: a service changes its mind about dates, messages die, and one after the other they are brought back."""

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
        raise ps.Unparsable(
            f"{visit.day!r} is no day", day=visit.day
        )  # trying again cannot help: a dead letter at once
    kept.append(visit.day)


@visits.repair  # gets each dead letter once, and may mend it
async def turn_round(letter: ps.DeadLetter) -> Booked | None:
    visit: Booked = app.dead.payload(letter)
    parts = visit.day.split("/")
    return Booked(day="-".join(reversed(parts))) if len(parts) == 3 else None


@app.on_alert
async def page_somebody(alert: ps.Alert) -> None:
    print("ALERT", alert.text)


async def main() -> None:
    async with app.unit():
        visits.send_all(Booked(day=day) for day in ("2026-11-15", "16/11/2026", "17/11"))
    await app.run(until_idle=True)

    async with app:
        for group in await app.dead.groups():
            print(f"{group.letters} of {group.type} died of {group.error_class}: {group.examples[0]}")
        (letter,) = await app.dead.list(ps.DeadLetterFilter(queue="visits"))
        await app.dead.edit(letter.id, Booked(day="2026-11-17"))
        print("sent back:", await app.dead.replay(letter.id))
    await app.run(until_idle=True)
    print("kept:", ", ".join(sorted(kept)))


if __name__ == "__main__":
    asyncio.run(main())
