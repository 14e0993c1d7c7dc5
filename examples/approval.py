"""An approval: a draft waits three days for an editor, and a reminder is sent after one. Without an answer it is rejected.

The days pass in virtual time. To try it in real time, start `penstock run examples/approval.py` and answer as the editor:

    penstock workflows start article examples/approval.py --id hats --input '{"title": "Hats"}'
    penstock workflows signal hats decided '{"by": "Ada", "publish": true}'
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

import penstock as ps
from penstock.testing import TestApp, virtual

app = ps.App("newsroom")
DAY = 86_400.0


@dataclass
class Decision:
    by: str
    publish: bool


async def write(title: str) -> str:
    await asyncio.sleep(60)  # a slow service; the step is executed once, also after a crash or a deployment
    return f"All about {title.lower()}"


async def notify(text: str) -> None:
    print(text)  # in production a mail: pass `ps.step().key` to the service as the idempotency key


@app.workflow
async def article(run: ps.Run, title: str) -> str:
    draft = await run.step("write", write, title)
    await run.step("ask", notify, f"to the editors: please read {draft!r}")
    try:
        decision = await run.wait_for("decided", Decision, timeout=1 * DAY)
    except ps.TimedOut:
        await run.step("remind", notify, f"to the editors: {draft!r} still waits for your decision")
        try:
            decision = await run.wait_for("decided", Decision, timeout=2 * DAY, name="decided late")
        except ps.TimedOut:
            return "rejected without an answer"
    if not decision.publish:
        return f"rejected by {decision.by}"
    await run.step("publish", notify, f"to all readers: {draft}")
    return f"published by {decision.by}"


@virtual
async def main() -> None:
    async with TestApp(app, database=os.environ.get("PENSTOCK_DATABASE")) as world:
        async with world.unit():
            hats, shoes, socks = (article[title].start(title) for title in ("Hats", "Shoes", "Socks"))
        await world.advance(hours=2)
        async with world.unit():
            hats.signal("decided", Decision(by="Ada", publish=True))
        await world.advance(days=1)
        await world.restart()  # a deployment while two runs wait: no step is repeated
        async with world.unit():
            socks.signal("decided", Decision(by="Bob", publish=False))
        await world.advance(days=2)
        for handle in (hats, shoes, socks):
            print(f"{handle.id}: {await handle.result()}")


if __name__ == "__main__":
    main()
