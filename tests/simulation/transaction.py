"""One commit, judged: who may change which row, into what, and what must be saved together with it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.simulation.model import ACKED, DEAD, LEASED, WAITING, Crew, Row, Run
from tests.simulation.watch import Change

if TYPE_CHECKING:
    from tests.simulation.law import Law

CHARGED = {"fail", "bad", "lost_update", "wall"}
DONE = {"done", "stubborn"}
KEEPS_EFFECTS = {"done", "stubborn", "later", "discard"}
FENCED = {"midway", "keyed", "once"}  # saved on their own while the message is still held


class Transaction:
    """The changes of one commit, judged together."""

    def __init__(self, law: Law, crew: Crew) -> None:
        self._law = law
        self._crew = crew
        self._settled: dict[Run, str] = {}
        self._either: list[Run] = []
        self._swept: set[tuple[bytes, int]] = set()
        self._effects: Counter[tuple[bytes, int, str]] = Counter()
        self._inserted: list[bytes] = []
        self._buried: dict[bytes, dict[str, Any]] = {}
        self._tokens: set[int] = set()

    def take(self, change: Change) -> None:
        match change.table, change.old, change.new:
            case "penstock_workers", None, new if new is not None:
                self._crew.number = new["id"]
                self._law.crews[new["id"]] = self._crew
            case "effects", None, new if new is not None:
                self._effects[(bytes(new["id"]), new["token"], new["kind"])] += 1
            case "penstock_dead", None, new if new is not None:
                self._buried[bytes(new["id"])] = new
            case "penstock_messages", None, new if new is not None:
                self._sent(new)
            case "penstock_messages", old, None if old is not None:
                self._removed(old)
            case "penstock_messages", old, new if old is not None and new is not None:
                self._changed(old, new)

    # -- sent ---------------------------------------------------------------------------------------------

    def _sent(self, new: dict[str, Any]) -> None:
        law, id = self._law, bytes(new["id"])
        key = _key(new)
        if id in law.rows:
            law.expect(False, f"{key} was sent twice")
        queue = law.queue(new["queue"])
        ready_at = law.now() + max(0, new["due"] - law.wall()) / 1_000_000
        row = law.rows[id] = law.by_seq[new["seq"]] = Row(id, key, queue, new["seq"], new["due"], ready_at)
        law.inserted[queue.name] += 1
        self._inserted.append(id)
        law.note(f"{self._crew.name} sent {row.key} to {queue.name}")

    # -- claimed, released --------------------------------------------------------------------------------

    def _changed(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        law, row = self._law, self._law.by_seq[old["seq"]]
        law.expect(old["token"] == row.token, f"{row.key} changed its token unseen")
        if old["worker"] is None and new["worker"] is not None:
            self._claimed(row, new)
        elif old["worker"] is not None and new["worker"] is None:
            self._released(row, new)
        else:
            law.expect(False, f"{row.key} went from worker {old['worker']} to {new['worker']}")
        law.expect(new["token"] > law.last_token, f"{row.key} got token {new['token']}, which is not new")
        self._tokens.add(new["token"])
        row.token, row.worker, row.due = new["token"], new["worker"], new["due"]
        row.attempts, row.crashes = new["attempts"], new["crashes"]

    def _claimed(self, row: Row, new: dict[str, Any]) -> None:
        law, crew = self._law, self._crew
        law.expect(row.state == WAITING, f"{row.key} was claimed while it was {row.state}")
        law.expect(new["worker"] == crew.number, f"{crew.name} claimed {row.key} for another worker")
        law.expect((new["attempts"], new["crashes"]) == (row.attempts, row.crashes), f"claiming {row.key} charged it")
        self._was_woken_in_time(row)
        self._can_be_run(row)
        row.state, row.claimed_at = LEASED, law.now()
        crew.held[row.queue.name] = crew.held.get(row.queue.name, 0) + 1
        crew.suspects_held += row.crashes > 0
        law.note(f"{crew.name} claimed {row.key} with token {new['token']}")

    def _was_woken_in_time(self, row: Row) -> None:
        plan, law = self._law.plan, self._law
        if plan.jumps:
            return
        # What others know arrives with the next tick at the latest, and the store takes its time a few times over.
        bound = 0.01 + 16 * plan.latency + (plan.tick_seconds or 0.0)
        waited = law.waited(row)
        law.expect(waited <= bound, f"{row.key} could have been started {waited:.3f} s ago: a wake-up was lost")

    def _can_be_run(self, row: Row) -> None:
        """While a suspect runs alone, what its worker claims could only wait there."""
        law, latency = self._law, self._law.plan.latency
        for run in self._crew.running:
            known = law.now() - max(run.began, self._crew.resumed_at) > 0.01 + 6 * latency
            taken = row.crashes == 0 and run.suspect and known
            law.expect(not taken, f"{self._crew.name} claimed {row.key} while {run.row.key} had to run alone")

    def _released(self, row: Row, new: dict[str, Any]) -> None:
        law = self._law
        law.expect(row.state == LEASED, f"{row.key} was released while it was {row.state}")
        run = law.runs.get((row.seq, row.token))
        charged, crashed = new["attempts"] - row.attempts, new["crashes"] - row.crashes
        holder = law.crews[row.worker] if row.worker is not None else self._crew
        if self._is_own_settlement(row, run, crashed):
            self._settled_again(row, run, new, charged)
        else:
            law.expect(charged == 0, f"{row.key} was charged an attempt when it was taken from {holder.name}")
            self._taken_over(row, run, holder, crashed)
        self._let_go(row, holder)
        row.state = WAITING
        row.ready_at = law.now() + max(0, new["due"] - law.wall()) / 1_000_000
        law.note(
            f"{self._crew.name} gave back {row.key} of {holder.name}: attempts {new['attempts']}, "
            f"crashes {new['crashes']}"
        )

    def _let_go(self, row: Row, holder: Crew) -> None:
        holder.held[row.queue.name] -= 1
        self._law.look_for_slots(holder)
        holder.suspects_held -= row.crashes > 0

    def _is_own_settlement(self, row: Row, run: Run | None, crashed: int) -> bool:
        """Whether the holder itself says what became of the row, rather than somebody sweeping it up."""
        if self._law.crews.get(row.worker or 0) is not self._crew or crashed:
            return False
        return run is None or run.ended is not None

    def _settled_again(self, row: Row, run: Run | None, new: dict[str, Any], charged: int) -> None:
        law = self._law
        if run is None or run.outcome == "handed_back":
            law.expect(charged == 0, f"{row.key} was handed back and charged an attempt")
            return
        if charged == 0 and run.outcome not in ("later", "throttled"):
            # Its own worker swept it: the lease had lapsed before the handler's end could be saved.
            self._taken_over(row, run, self._crew, 0)
            return
        law.expect(charged == (run.outcome in CHARGED), f"{row.key} ended as {run.outcome} and was charged {charged}")
        if charged == 0 and law.now() - row.claimed_at >= law.lease(row) / 2:
            self._either.append(run)  # its answer, or its own worker swept the lapsed lease: effects will tell
            return
        self._settled[run] = run.outcome
        row.charged += charged
        seconds = law.retry_of(row).delay_seconds(row.attempts + 1) if charged else run.seconds
        early = seconds - (new["due"] - law.wall()) / 1_000_000
        law.expect(law.plan.jumps or abs(early) < 0.001, f"{row.key} comes back {early:.6f} s too early")
        if charged:
            allowed = row.attempts + 1 <= row.queue.retries
            law.expect(allowed, f"{row.key} came back after {row.attempts + 1} failures")

    def _taken_over(self, row: Row, run: Run | None, holder: Crew, crashed: int) -> None:
        """Somebody gives back what a worker held that is gone or has not been heard of until its lease ended."""
        law, now = self._law, self._law.now()
        if holder.died_at is not None or holder.left:
            suspected = run is not None and run in holder.suspects
            law.expect(crashed == suspected, f"{row.key} got {crashed} crashes, and {int(suspected)} is right")
            self._returned_in_time(row, holder)
            return
        self._swept.add((row.id, row.token))
        held = now - row.claimed_at
        lease = law.lease(row)
        if law.plan.jumps and holder.paused_at > 0:
            lease = 0.0  # what was asked for before a pause knows nothing of a jump during it
        least = lease / 2 if law.plan.jumps else lease
        law.expect(held >= least - 0.001, f"{row.key} was taken {held:.3f} s into a lease of {lease:g} s")
        running = run is not None and run.ended is None
        law.expect(crashed == running, f"{row.key} got {crashed} crashes, and {int(running)} is right")
        well = holder.resumed_at < row.claimed_at and not holder.process.paused
        law.expect(not well or law.plan.jumps, f"{row.key} lapsed although {holder.name} was well all the time")

    def _returned_in_time(self, row: Row, holder: Crew) -> None:
        law, plan = self._law, self._law.plan
        if plan.tick_seconds is None or holder.died_at is None:
            return
        # Whoever took the dead worker's lock and was paused then holds it until it goes on.
        if any(crew.process.paused or crew.resumed_at > holder.died_at for crew in law.of_process.values()):
            return
        able = min(
            (
                law.now() - max(crew.resumed_at, crew.started_at, holder.died_at)
                for crew in law.of_process.values()
                if crew.serving and not crew.process.paused and crew.died_at is None and crew is not holder
            ),
            default=0.0,
        )
        law.expect(
            able <= 1.5 + 16 * plan.latency, f"{row.key} stayed with {holder.name} for {able:.3f} s after it died"
        )

    # -- gone ---------------------------------------------------------------------------------------------

    def _removed(self, old: dict[str, Any]) -> None:
        law, row = self._law, self._law.by_seq[old["seq"]]
        law.expect(old["token"] == row.token and row.state == LEASED, f"{row.key} went while nobody held it")
        holder = law.crews[row.worker] if row.worker is not None else self._crew
        run = law.runs.get((row.seq, row.token))
        buried = self._buried.pop(row.id, None)
        if buried is None:
            self._acked(row, run, holder)
        else:
            self._died(row, run, holder, buried)
        self._let_go(row, holder)

    def _acked(self, row: Row, run: Run | None, holder: Crew) -> None:
        law = self._law
        law.expect(holder is self._crew, f"{self._crew.name} acked {row.key}, which {holder.name} held")
        right = run is not None and run.ended is not None and run.outcome in DONE
        law.expect(right, f"{row.key} was acked and its handler {'ended as ' + run.outcome if run else 'never began'}")
        if run is not None:
            self._settled[run] = run.outcome
        row.state = ACKED
        law.note(f"{self._crew.name} acked {row.key}")

    def _died(self, row: Row, run: Run | None, holder: Crew, buried: dict[str, Any]) -> None:
        law = self._law
        charged, crashed = buried["attempts"] - row.attempts, buried["crashes"] - row.crashes
        reason = buried["reason"]
        if reason == "worker_died":
            law.expect(
                (charged, crashed) == (0, 1), f"{row.key} died with its worker: charged {charged}, crashes {crashed}"
            )
            law.expect(buried["crashes"] >= row.queue.crashes_max, f"{row.key} died after {buried['crashes']} crashes")
            self._taken_over(row, run, holder, crashed)
        else:
            law.expect(
                run is not None and run.ended is not None, f"{row.key} died of {reason} and no handler had ended"
            )
            law.expect(
                (charged, crashed) == (1, 0), f"{row.key} died of {reason}: charged {charged}, crashes {crashed}"
            )
            if run is not None:
                self._settled[run] = run.outcome
                exhausted = run.outcome in CHARGED and row.attempts + 1 > row.queue.retries
                right = {"exhausted": exhausted, "discarded": run.outcome == "discard"}.get(
                    reason, run.outcome == reason
                )
                law.expect(
                    right, f"{row.key} ended as {run.outcome} on attempt {row.attempts + 1} and died of {reason}"
                )
            row.charged += charged
        row.state, row.attempts, row.crashes = DEAD, buried["attempts"], buried["crashes"]
        law.note(f"{self._crew.name} buried {row.key}: {reason}, attempts {row.attempts}, crashes {row.crashes}")

    # -- together -----------------------------------------------------------------------------------------

    def close(self) -> None:
        law = self._law
        law.last_token = max([law.last_token, *self._tokens])
        law.expect(not self._buried, "a dead letter was written and its message is still there")
        saved: dict[tuple[bytes, int], Counter[str]] = {}
        for (id, token, kind), count in self._effects.items():
            law.effects[kind] += count
            if kind == "producer":
                self._order_saved(id)
            elif kind in FENCED:
                self._fenced(id, token, kind)
            else:
                saved.setdefault((id, token), Counter())[kind] += count
        self._settled |= {run: run.outcome for run in self._either if (run.row.id, run.token) in saved}
        children: dict[bytes, Run] = {}
        for run, outcome in self._settled.items():
            expected = run.effects if outcome in KEEPS_EFFECTS else Counter[str]()
            found = saved.pop((run.row.id, run.token), Counter())
            law.expect(
                found == expected,
                f"{run.row.key} settled as {outcome} with effects {dict(found)}, and {dict(expected)} is right",
            )
            if outcome in KEEPS_EFFECTS:
                children |= dict.fromkeys(run.children, run)
        for (id, _token), kinds in saved.items():
            key = law.rows[id].key if id in law.rows else id.hex()
            law.expect(False, f"{key} saved {dict(kinds)} and was not settled with it")
        self._all_sent(children)

    def _order_saved(self, id: bytes) -> None:
        order = self._law.orders.get(id)
        self._law.expect(order is not None, "a producer's effect was saved that nobody wrote")
        if order is not None:
            order.saved += 1
            self._law.expect(order.saved == 1, f"{order.keys[0]} was ordered twice")
            missing = [key for id, key in zip(order.ids, order.keys, strict=True) if id not in self._inserted]
            self._law.expect(not missing, f"an order was saved without {missing}")

    def _fenced(self, id: bytes, token: int, kind: str) -> None:
        row = self._law.rows[id]
        held = row.state == LEASED and row.token == token and row.worker == self._crew.number
        held = held or (id, token) in self._swept  # saved under the fence, and given back in the same commit
        self._law.expect(held, f"{row.key} saved {kind} under token {token}, which it no longer held")

    def _all_sent(self, children: dict[bytes, Run]) -> None:
        law = self._law
        for id in self._inserted:
            order = law.orders.get(id)
            known = id in children or (order is not None and order.fate != "refused")
            law.expect(known, f"{law.rows[id].key} was sent by nobody who committed here")
        for id, run in children.items():
            law.expect(id in law.rows, f"{run.row.key} settled and a message it sent is lost")


def _key(new: dict[str, Any]) -> str:
    body: str = bytes(new["body"]).decode()
    return body.split('"key":"', 1)[1].split('"', 1)[0]
