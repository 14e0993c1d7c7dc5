"""What one commit must hold together: settlements with all the effects and messages of their unit of work, or none."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.endings import OWN
from tests.simulation.model import LEASED, Crew, Effect, Name, Run, Work

if TYPE_CHECKING:
    from tests.simulation.invariants import Law

FENCED = {"midway", "keyed", "once"}  # saved on their own while the message is still held


class Together:
    def __init__(self, law: Law, crew: Crew) -> None:
        self._law = law
        self._crew = crew
        self.effects: Counter[Effect] = Counter()
        self.sent: list[bytes] = []  # by a unit of work, not by the engine itself
        self.settled: dict[Run, list[str]] = {}  # and how each may have come to be settled so
        self.swept: set[tuple[Name, int]] = set()

    def close(self) -> None:
        law = self._law
        answers: Counter[Effect] = Counter()
        for (id, handler, token, kind), count in self.effects.items():
            law.effects[kind] += count
            if kind == "producer":
                self._order_saved(id)
            elif kind in FENCED:
                self._fenced((id, handler), token, kind)
            else:
                answers[(id, handler, token, kind)] += count
        children: dict[bytes, Run] = {}
        for work in dict.fromkeys(run.work for run in self.settled):
            children |= self._judge(work, answers)
        for id, handler, _, kind in answers:
            law.expect(False, f"{law.rows[(id, handler)].key} saved {kind} and was not settled with it")
        self._all_sent(children)

    def _judge(self, work: Work, answers: Counter[Effect]) -> dict[bytes, Run]:
        """Takes the effects of one unit out of those found; the messages that must have been sent with them."""
        law = self._law
        members = {(run.row.name, run.token) for run in work.runs}
        found = Counter({each: count for each, count in answers.items() if (each[:2], each[2]) in members})
        for each in found:
            del answers[each]
        expected = work.effects if work.keeps else Counter[Effect]()
        if found:
            law.expect(found == expected, f"{_named(work)} saved {_kinds(found)}, and {_kinds(expected)} is right")
            apart = [run.row.key for run in work.runs if OWN not in self.settled.get(run, ())]
            law.expect(not apart, f"{_named(work)} saved their effects, and {apart} were not settled with them")
            for id, handler, _, kind in found.elements():
                law.kept[(id, handler, kind)] += 1
            return dict.fromkeys(work.children, work.runs[0])
        if expected:
            bare = [run for run in work.runs if self.settled.get(run) == [OWN]]
            for run in bare:
                law.expect(False, f"{run.row.key} settled as {run.outcome} without its effects {_kinds(expected)}")
        return {}

    def _order_saved(self, name: bytes) -> None:
        law, order = self._law, self._law.orders.get(name)
        law.expect(order is not None, "a producer's effect was saved that nobody wrote")
        if order is not None:
            order.saved += 1
            law.expect(order.saved == 1, f"{order.keys[0]} was ordered twice")
            there = law.by_id if order.keyed else self.sent
            missing = [key for id, key in zip(order.ids, order.keys, strict=True) if id not in there]
            law.expect(not missing, f"an order was saved without {missing}")

    def _fenced(self, name: Name, token: int, kind: str) -> None:
        row = self._law.rows[name]
        held = row.state == LEASED and row.token == token and row.worker == self._crew.number
        held = held or (name, token) in self.swept  # saved under the fence, and given back in the same commit
        self._law.expect(held, f"{row.key} saved {kind} under token {token}, which it no longer held")

    def _all_sent(self, children: dict[bytes, Run]) -> None:
        law = self._law
        for id in self.sent:
            ordered = any(order.fate != "refused" for order in law.wanted.get(id, ()))
            key = law.by_id[id][0].key
            law.expect(ordered or id in children, f"{key} was sent by nobody who committed here")
        for id, run in children.items():
            law.expect(id in law.by_id, f"{run.row.key} settled and a message it sent is lost")


def _named(work: Work) -> str:
    return " ".join(f"{run.row.key} ({run.outcome})" for run in work.runs)


def _kinds(effects: Counter[Effect]) -> dict[str, int]:
    kinds: Counter[str] = Counter()
    for (_, _, _, kind), count in effects.items():
        kinds[kind] += count
    return dict(kinds)
