"""What an agent keeps from one run to the next: facts that it remembers, and how strongly it believes what it believes."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_systems.appstore.app import db

RECALL = "select value from agent_memory where agent = :agent and key = :key"
REMEMBER = """
insert into agent_memory (agent, key, value, updated_at)
values (:agent, :key, :value, :now)
on conflict (agent, key) do update set
  value = excluded.value,
  updated_at = excluded.updated_at
"""
BELIEF = "select strength from agent_core_beliefs where agent = :agent and belief = :belief"
BELIEVE = """
insert into agent_core_beliefs (agent, belief, strength, updated_at)
values (:agent, :belief, :strength, :now)
on conflict (agent, belief) do update set
  strength = excluded.strength,
  updated_at = excluded.updated_at
where excluded.strength <> agent_core_beliefs.strength
"""


class Most(msgspec.Struct, frozen=True, order=True):
    """The largest of its kind that was seen, and what it was seen at."""

    amount: float
    subject: str


async def recall_most(agent: str, key: str) -> Most | None:
    kept = await db.value(RECALL, agent=agent, key=key)
    return None if kept is None else msgspec.json.decode(kept, type=Most)


def remember_most(agent: str, key: str, seen: Most, now: str) -> None:
    """Joins the unit. Compared inside the commit, so that of two at the same moment the larger one stays."""

    def compare(transaction: Any) -> None:
        kept = transaction.value(RECALL, agent=agent, key=key)
        if kept is None or msgspec.json.decode(kept, type=Most) < seen:
            transaction.write(REMEMBER, agent=agent, key=key, value=db.json(seen), now=now)

    db.atomically(compare)


async def strength(agent: str, belief: str) -> float | None:
    """From 0 to 1; None where the agent has not made up its mind."""
    found: float | None = await db.value(BELIEF, agent=agent, belief=belief)
    return found


def believe(agent: str, belief: str, strength: float, now: str) -> None:
    """Joins the unit."""
    db.write(BELIEVE, agent=agent, belief=belief, strength=round(min(1.0, max(0.0, strength)), 4), now=now)
