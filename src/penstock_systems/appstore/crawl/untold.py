"""Keywords that were searched and nobody was told of yet: kept with what was found, so that a crash forgets none."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.data import chunks
from penstock_systems.appstore.app import IDS_A_MESSAGE, RankingsUpdated, db, events

NAME = "unannounced"
READ = "select value from crawl_state where name = :name"
FORGET = "delete from crawl_state where name = :name"


async def left() -> list[str]:
    """What an interrupted cycle left behind."""
    value = await db.value(READ, name=NAME)
    try:
        return msgspec.json.decode(value or "[]", type=list[str])
    except msgspec.MsgspecError:
        return []


def remember(keywords: Sequence[str], now: str) -> None:
    """Joins the unit that saves what was found for the last of them."""
    value = msgspec.json.encode(list(dict.fromkeys(keywords))).decode()
    db.upsert("crawl_state", {"name": NAME, "value": value, "updated_at": now}, key="name")


def tell(keywords: Sequence[str]) -> int:
    """Joins the unit: sends them in as few messages as they fit into, and forgets them. Says how many messages."""
    messages = [RankingsUpdated(keywords=each) for each in chunks(dict.fromkeys(keywords), IDS_A_MESSAGE)]
    events.send_all(messages)
    db.write(FORGET, name=NAME)
    return len(messages)
