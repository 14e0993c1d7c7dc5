"""A worker of the reminders that is killed again and again, in real time, by SIGKILL.

    python -m tests.systems.reminders.killed_worker '{"kills": 12, "seed": 1}'

Each life adds reminders and sends what is due until it is killed: at a random moment, or at a named point. The last life ends
by itself, once nothing is due. Its settings are in penstock.toml of the current folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from random import Random
from typing import Any

from penstock_systems.reminders import deliver, fires
from penstock_systems.reminders.reminders import NewReminder, create
from penstock_systems.reminders.system import app

POINTS = ("_prepare", "_call", "_finish")  # after the intent, after an answer, after the result was recorded
HOOK = os.environ.get("TEST_HOOK", "")
A_LIFE = 6
CHANNELS = (["email"], ["webhook"], ["smtp"], ["email", "webhook"], ["smtp", "webhook"], ["email", "smtp"])


async def life(number: int, point: str | None, nth: int, *, is_last: bool) -> None:
    async with app:
        async with app.unit():
            # The lease of the dead worker's rows, which a real one waits for.
            app.db.write(
                "update notifications set claimed_until = null, claim_token = null where claim_token is not null"
            )
        if not is_last:
            async with app.unit():
                for place, names in enumerate(CHANNELS):
                    webhook = f"{HOOK}/good/r{number}-{place}" if "webhook" in names else None
                    key, email = f"{number} {place}", f"p{place}@example.org"
                    await create(NewReminder(title=key, key=key, channels=names, email=email, webhook=webhook))
        if point is not None:
            die_at(point, nth)
        while True:
            await deliver.deliver()
            if is_last and not await app.db.value("select count(*) from notifications where next_fire_at is not null"):
                return
            await asyncio.sleep(0.02)


def die_at(point: str, nth: int) -> None:
    whole, left = getattr(fires, point), [nth]

    async def passed(*given: Any) -> Any:
        found = await whole(*given)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(fires, point, passed)


def main() -> None:
    options = json.loads(sys.argv[1])
    random, killed = Random(f"kills {options['seed']}"), 0
    for number in range(options["kills"] + 1):
        is_last = number == options["kills"]
        point = random.choice(POINTS) if number % 2 and not is_last else None
        nth, seconds = random.randrange(1, 8), random.uniform(0.05, 0.6)
        process = os.fork()
        if process == 0:
            try:
                asyncio.run(life(number, point, nth, is_last=is_last))
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                os._exit(1)
            os._exit(0)
        if not is_last:
            ends = time.monotonic() + (seconds if point is None else 5.0)
            while time.monotonic() < ends and not os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                time.sleep(0.01)
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        killed += os.WIFSIGNALED(status)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            sys.exit(1)
    print(json.dumps({"killed": killed}))


if __name__ == "__main__":
    main()
