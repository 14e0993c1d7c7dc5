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
# A new finding confirms a belief, or refutes it where it is far from what was held: once a day, however often it is made.
BELIEVE = """
insert into agent_core_beliefs (agent, belief, strength, evidence, since, confirmed, refuted, updated_at)
values (:agent, :belief, :strength, :evidence, :now, 1, 0, :now)
on conflict (agent, belief) do update set
  strength = excluded.strength,
  evidence = excluded.evidence,
  confirmed = agent_core_beliefs.confirmed
    + case when abs(excluded.strength - agent_core_beliefs.strength) <= :tolerance then 1 else 0 end,
  refuted = agent_core_beliefs.refuted
    + case when abs(excluded.strength - agent_core_beliefs.strength) > :tolerance then 1 else 0 end,
  since = case when abs(excluded.strength - agent_core_beliefs.strength) > :tolerance then excluded.since
    else agent_core_beliefs.since end,
  updated_at = excluded.updated_at
where excluded.strength <> agent_core_beliefs.strength
or substr(agent_core_beliefs.updated_at, 1, 10) < substr(excluded.updated_at, 1, 10)
"""
TOLERANCE = 0.15  # between two findings that confirm each other


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


def believe(agent: str, belief: str, strength: float, evidence: str, now: str) -> None:
    """Joins the unit. `evidence` says what the strength was computed from."""
    held = round(min(1.0, max(0.0, strength)), 4)
    db.write(BELIEVE, agent=agent, belief=belief, strength=held, evidence=evidence, tolerance=TOLERANCE, now=now)
