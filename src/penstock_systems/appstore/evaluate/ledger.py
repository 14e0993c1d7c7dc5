"""What the agents found: one row for a subject and the inputs it was judged by, however often it is judged by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from penstock.data import cut
from penstock_systems.appstore.app import db

NOTED = """
select 1
from agent_ledger
where agent = :agent
and subject_type = :subject_type
and subject_id = :subject_id
and inputs_hash = :inputs_hash
limit 1
"""
EXPLANATION_MAX = 500


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement that can be looked up later: who made it, by which version of the rule, from what."""

    agent: str
    version: str
    subject_type: str
    subject_id: str
    score: float | None
    explanation: str
    inputs: Mapping[str, Any]

    @property
    def inputs_hash(self) -> str:
        return digest(self.version, self.inputs)


async def note(
    agent: str,
    version: str,
    subject_type: str,
    subject_id: str,
    score: float | None,
    explanation: str,
    inputs: Mapping[str, Any],
) -> None:
    """Joins the unit. The same inputs leave no second row."""
    made = Note(
        agent=agent,
        version=version,
        subject_type=subject_type,
        subject_id=subject_id,
        score=score,
        explanation=explanation,
        inputs=inputs,
    )
    write([made], await db.now())


def write(notes: Iterable[Note], now: str) -> None:
    """Joins the unit."""
    db.insert_many("agent_ledger", [_row(each, now) for each in notes])


async def is_noted(each: Note) -> bool:
    """Whether this subject was judged by these inputs before."""
    found = await db.value(
        NOTED,
        agent=each.agent,
        subject_type=each.subject_type,
        subject_id=each.subject_id,
        inputs_hash=each.inputs_hash,
    )
    return found is not None


def digest(*parts: object) -> str:
    """The same for the same values, whatever order their names are in."""
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]


def _row(each: Note, now: str) -> dict[str, object]:
    return {
        "id": digest(each.agent, each.subject_type, each.subject_id, each.inputs_hash),
        "agent": each.agent,
        "version": each.version,
        "subject_type": each.subject_type,
        "subject_id": each.subject_id,
        "score": each.score,
        "explanation": cut(each.explanation, EXPLANATION_MAX),
        "inputs": db.json(each.inputs),
        "inputs_hash": each.inputs_hash,
        "created_at": now,
    }
