"""One commit, judged: who may change which row, into what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.endings import CHARGED, DONE, OWN, answers_of
from tests.simulation.letters import Letters
from tests.simulation.model import ACKED, DEAD, EXPIRED, LEASED, OUTSIDE, PURGED, SPLIT, WAITING, Crew, Pull, Row, Run
from tests.simulation.together import Together
from tests.simulation.watch import Change

if TYPE_CHECKING:
    from tests.simulation.invariants import Law

HAIR = 0.001  # seconds


class Transaction:
    """The changes of one commit, judged together."""

    def __init__(self, law: Law, crew: Crew) -> None:
        self._law = law
        self._crew = crew
        self._together = Together(law, crew)
        self._letters = Letters(law)
        self._parts: dict[bytes, list[Row]] = {}
        self._tokens: set[int] = set()

    def take(self, change: Change) -> None:
        old, new = change.old, change.new
        match change.table:
            case "penstock_workers" if old is None and new is not None:
                self._crew.number = new["id"]
                self._law.crews[new["id"]] = self._crew
            case "effects" if new is not None:
                self._together.effects[(bytes(new["id"]), new["handler"], new["token"], new["kind"])] += 1
            case "penstock_dead":
                self._letters.changed(old, new)
            case "penstock_counters":
                self._law.counts.counted(old, new)
            case "penstock_queues" if new is not None:
                self._law.counts.ruled(old, new)
            case "penstock_messages" if old is None and new is not None:
                self._sent(new)
            case "penstock_messages" if old is not None and new is None:
                self._removed(old)
            case "penstock_messages" if old is not None and new is not None:
                self._changed(old, new)

    def close(self) -> None:
        law = self._law
        law.last_token = max([law.last_token, *self._tokens])
        for id, parts in self._parts.items():
            whole = law.rows[(id, "")]
            names = sorted(part.handler for part in parts)
            law.expect(whole.state == SPLIT, f"{whole.key} was divided and is {whole.state}")
            law.expect(names == law.handlers_of(whole.queue), f"{whole.key} was divided among {names}")
        self._letters.close()
        self._together.close()
        law.counts.close()

    # -- sent ---------------------------------------------------------------------------------------------

    def _sent(self, new: dict[str, Any]) -> None:
        law, id, handler = self._law, bytes(new["id"]), new["handler"]
        key = _key(new) + (f"/{handler}" if handler else "") + "+" * new["replays"]
        law.expect((id, handler) not in law.rows, f"{key} was sent twice")
        queue = law.queue(new["queue"])
        ready_at = law.now() + max(0, new["due"] - law.wall()) / 1_000_000
        origin = bytes(new["replay_of"] or id)
        row = Row(id, handler, key, queue, new["seq"], new["due"], ready_at, len(new["body"]), origin, new["expires"])
        whole = law.rows.get((id, ""))
        law.rows[row.name] = law.by_seq[row.seq] = row
        law.by_id.setdefault(id, []).append(row)
        part = handler != "" and whole is not None
        if part and whole is not None:
            row.attempts, row.crashes, row.charged = whole.attempts, whole.crashes, whole.charged
            self._parts.setdefault(id, []).append(row)
        elif new["replay_of"] is not None:
            self._letters.sent_back(row, new)
        else:
            self._together.sent.append(id)
        same = (new["attempts"], new["crashes"], new["token"], new["worker"]) == (row.attempts, row.crashes, 0, None)
        law.expect(same, f"{key} did not begin as it should")
        law.counts.entered(row, sent=int(part or new["replay_of"] is None), fed=new["replay_of"] is None and not part)
        law.note(f"{self._crew.name} sent {row.key} to {queue.name}")

    # -- claimed, released --------------------------------------------------------------------------------

    def _changed(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        law, row = self._law, self._law.by_seq[old["seq"]]
        law.expect(old["token"] == row.token, f"{row.key} changed its token unseen")
        if old["worker"] is not None and new["token"] == old["token"]:
            self._leased_anew(row, new)
            return
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
        law.expect((new["attempts"], new["crashes"]) == (row.attempts, row.crashes), f"claiming {row.key} charged it")
        law.counts.claimed(row)
        over = row.expires is not None and row.expires < law.wall() - 10 and not law.plan.jumps
        law.expect(not over, f"{row.key} was claimed after it had expired")
        if new["worker"] == OUTSIDE:
            self._pulled(row, new)
        else:
            law.expect(new["worker"] == crew.number, f"{crew.name} claimed {row.key} for another worker")
            law.counts.learned(crew, row.queue.name)
            self._was_woken_in_time(row)
            self._can_be_run(row)
            crew.held[row.queue.name] = crew.held.get(row.queue.name, 0) + 1
            crew.suspects_held += row.crashes > 0
        row.state, row.claimed_at = LEASED, law.now()
        law.note(f"{crew.name} claimed {row.key} with token {new['token']}")

    def _leased_anew(self, row: Row, new: dict[str, Any]) -> None:
        """Only the worker that has a suspect does so, while that waits until nothing runs beside it."""
        law, crew = self._law, self._crew
        law.expect(row.worker == new["worker"] == crew.number, f"{crew.name} leased {row.key} anew, and holds it not")
        waits = row.crashes > 0 and (row.seq, row.token) not in law.runs
        law.expect(waits, f"{row.key} was leased anew, and is no suspect that waits for its turn")
        law.expect((new["attempts"], new["crashes"]) == (row.attempts, row.crashes), f"holding {row.key} charged it")
        given, lease = (new["due"] - law.wall()) / 1_000_000, law.lease(row)
        law.expect(law.plan.jumps or abs(given - lease) < HAIR, f"{row.key} was held for {given:.3f} s, not {lease:g}")
        row.due, row.claimed_at = new["due"], law.now()
        law.note(f"{crew.name} holds {row.key}")

    def _pulled(self, row: Row, new: dict[str, Any]) -> None:
        law = self._law
        asked = row.queue.pull_lease
        given = (new["due"] - law.wall()) / 1_000_000
        law.expect(
            law.plan.jumps or abs(given - asked) < HAIR, f"{row.key} was pulled for {given:.3f} s, not {asked:g}"
        )
        law.pulls[(row.seq, new["token"])] = Pull(row, new["token"], law.now() + given)

    def _was_woken_in_time(self, row: Row) -> None:
        plan, law = self._law.plan, self._law
        if plan.jumps or row.queue.wait or law.counts.rules[row.queue.name].rate or row.queue.name in law.tuned:
            return
        if row.queue.handlers > 1 and plan.latency:
            return  # each message is claimed once to be divided: the store's answers, not slots, are what is short
        # What others know arrives with the next tick at the latest, and the store takes its time a few times over; it also
        # answers seven times before a worker that has just been opened comes to claim.
        waited = law.waited(row)
        opened = self._crew.started_at >= law.now() - waited
        bound = law.patience(30 if opened else 16) + (plan.tick_seconds or 0.0)
        law.expect(waited <= bound, f"{row.key} could have been started {waited:.3f} s ago: a wake-up was lost")

    def _can_be_run(self, row: Row) -> None:
        """While a suspect runs alone, what its worker claims could only wait there."""
        law = self._law
        for run in self._crew.running:
            known = law.now() - max(run.began, self._crew.resumed_at) > law.patience(6)
            taken = row.crashes == 0 and run.suspect and known
            law.expect(not taken, f"{self._crew.name} claimed {row.key} while {run.row.key} had to run alone")

    def _released(self, row: Row, new: dict[str, Any]) -> None:
        law = self._law
        law.expect(row.state == LEASED, f"{row.key} was released while it was {row.state}")
        run = law.runs.get((row.seq, row.token))
        charged, crashed = new["attempts"] - row.attempts, new["crashes"] - row.crashes
        if row.worker == OUTSIDE:
            self._given_back_from_outside(row, new, charged, crashed)
        else:
            holder = law.crews[row.worker] if row.worker is not None else self._crew
            if self._is_own_settlement(row, run, crashed):
                self._settled_again(row, run, new, charged)
            else:
                law.expect(charged == 0, f"{row.key} was charged an attempt when it was taken from {holder.name}")
                self._taken_over(row, run, holder, crashed)
            self._let_go(row, holder)
        row.state = WAITING
        row.ready_at = law.now() + max(0, new["due"] - law.wall()) / 1_000_000
        law.note(f"{self._crew.name} gave back {row.key}: attempts {new['attempts']}, crashes {new['crashes']}")

    def _given_back_from_outside(self, row: Row, new: dict[str, Any], charged: int, crashed: int) -> None:
        """Whether the client gave it back or let its lease lapse: both cost an attempt."""
        law, pull = self._law, self._law.pulls[(row.seq, row.token)]
        law.expect((charged, crashed) == (1, 0), f"{row.key} came back from outside and was charged {charged}")
        row.charged += 1
        law.expect(row.charged <= row.queue.retries, f"{row.key} came back after {row.charged} failures")
        seconds = pull.seconds if pull.seconds is not None else law.retry_of(row).delay_seconds(row.charged)
        left = (new["due"] - law.wall()) / 1_000_000
        returned = pull.asked == "retry" and (law.plan.jumps or abs(left - seconds) < HAIR)
        pull.ended = "retry" if returned else "lapsed"
        law.expect(returned or self._lapsed(pull), f"{row.key} was taken from somebody outside before its lease ended")

    def _lapsed(self, pull: Pull) -> bool:
        return self._law.plan.jumps or self._law.now() >= pull.lapses_at - HAIR

    def _let_go(self, row: Row, holder: Crew) -> None:
        holder.held[row.queue.name] -= 1
        self._law.look_for_slots(holder)
        holder.suspects_held -= row.crashes > 0

    def _is_own_settlement(self, row: Row, run: Run | None, crashed: int) -> bool:
        """Whether the holder itself says what became of the row, rather than somebody sweeping it up."""
        if self._law.crews.get(row.worker or 0) is not self._crew or crashed:
            return False
        return run is None or run.answered

    def _settled_again(self, row: Row, run: Run | None, new: dict[str, Any], charged: int) -> None:
        law = self._law
        if run is None:
            law.expect(charged == 0, f"{row.key} was handed back and charged an attempt")
            return
        left = (new["due"] - law.wall()) / 1_000_000
        answers = answers_of(run, law.retry_of(row), lapsed=law.now() - row.claimed_at >= law.lease(row) / 2)
        alike = [each for each in answers if each.charged == charged]
        fitting = [each.how for each in alike if law.plan.jumps or abs(each.seconds - left) < HAIR]
        if fitting == ["swept"] or not (alike or charged):
            # Its own worker swept it: the lease had lapsed before the handler's end could be saved.
            self._taken_over(row, run, self._crew, 0)
            return
        law.expect(bool(alike), f"{row.key} ended as {run.outcome} and was charged {charged}")
        law.expect(bool(fitting) or not alike, f"{row.key} ended as {run.outcome} and comes back in {left:.6f} s")
        if fitting:
            self._together.settled[run] = fitting
        row.charged += charged
        if charged:
            allowed = row.attempts + 1 <= row.queue.retries
            law.expect(allowed, f"{row.key} came back after {row.attempts + 1} failures")

    def _taken_over(self, row: Row, run: Run | None, holder: Crew, crashed: int) -> None:
        """Somebody gives back what a worker held that is gone or has not been heard of until its lease ended."""
        law, now = self._law, self._law.now()
        if run is not None:
            run.work.lost = True
        if holder.died_at is not None or holder.left:
            suspected = run is not None and run in holder.suspects
            # Who has the number of a message that its batch settled before the death is blamed in its stead.
            taken_for = bool(crashed) and any(other.row.seq == row.seq for other in holder.suspects)
            law.expect(
                crashed == suspected or taken_for, f"{row.key} got {crashed} crashes, and {int(suspected)} is right"
            )
            self._returned_in_time(row, holder)
            return
        self._together.swept.add((row.name, row.token))
        held = now - row.claimed_at
        lease = law.lease(row)
        if law.plan.jumps and holder.paused_at > 0:
            lease = 0.0  # what was asked for before a pause knows nothing of a jump during it
        least = lease / 2 if law.plan.jumps else lease
        law.expect(held >= least - HAIR, f"{row.key} was taken {held:.3f} s into a lease of {lease:g} s")
        running = run is not None and run.ended is None
        taken_for = bool(crashed) and any(other.row.seq == row.seq for other in holder.running)
        law.expect(crashed == running or taken_for, f"{row.key} got {crashed} crashes, and {int(running)} is right")
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
            able <= 1.5 + law.patience(16), f"{row.key} stayed with {holder.name} for {able:.3f} s after it died"
        )

    # -- gone ---------------------------------------------------------------------------------------------

    def _removed(self, old: dict[str, Any]) -> None:
        law, row = self._law, self._law.by_seq[old["seq"]]
        law.expect(old["token"] == row.token, f"{row.key} went under another token")
        buried = self._letters.buried.pop(row.name, None)
        if row.state != LEASED:
            row.state = self._removed_while_waiting(row)
        elif row.worker == OUTSIDE:
            row.state = self._settled_outside(row, buried)
        else:
            holder = law.crews[row.worker] if row.worker is not None else self._crew
            run = law.runs.get((row.seq, row.token))
            if buried is not None:
                self._died(row, run, holder, buried)
            elif row.handler == "" and row.queue.handlers > 1:
                law.expect(run is None and row.id in self._parts, f"{row.key} went and was not divided")
                row.state = SPLIT
            else:
                self._acked(row, run, holder)
            self._let_go(row, holder)
        law.counts.left(row, row.state)
        law.note(f"{self._crew.name} removed {row.key}, which is {row.state}")

    def _removed_while_waiting(self, row: Row) -> str:
        law = self._law
        if row.expires is not None and row.expires <= law.wall():
            return EXPIRED
        law.expect(self._crew.purging[row.queue.name] > 0, f"{row.key} went while nobody held it")
        return PURGED

    def _settled_outside(self, row: Row, buried: dict[str, Any] | None) -> str:
        law, pull = self._law, self._law.pulls[(row.seq, row.token)]
        row.bare = True
        if buried is None:
            law.expect(pull.asked == "ack", f"{row.key} was acked, and nobody outside had said so")
            pull.ended = "ack"
            return ACKED
        row.charged += 1
        row.attempts = buried["attempts"]
        right = buried["reason"] == "exhausted" and row.charged > row.queue.retries
        law.expect(right, f"{row.key} died outside of {buried['reason']} after {row.charged} failures")
        law.expect(pull.asked == "retry" or self._lapsed(pull), f"{row.key} died while somebody outside held it")
        pull.ended = "dead"
        return DEAD

    def _acked(self, row: Row, run: Run | None, holder: Crew) -> None:
        law = self._law
        law.expect(holder is self._crew, f"{self._crew.name} acked {row.key}, which {holder.name} held")
        right = run is not None and run.answered and run.outcome in DONE
        law.expect(right, f"{row.key} was acked and its handler {'ended as ' + run.outcome if run else 'never began'}")
        if run is not None:
            self._together.settled[run] = [OWN]
            row.bare = not (run.work.keeps and run.work.effects)
        row.state = ACKED

    def _died(self, row: Row, run: Run | None, holder: Crew, buried: dict[str, Any]) -> None:
        law = self._law
        charged, crashed = buried["attempts"] - row.attempts, buried["crashes"] - row.crashes
        reason = buried["reason"]
        told = f"{row.key} died of {reason}: charged {charged}, crashes {crashed}"
        if reason == "worker_died":
            law.expect((charged, crashed) == (0, 1), told)
            law.expect(buried["crashes"] >= row.queue.crashes_max, told)
            self._taken_over(row, run, holder, crashed)
        else:
            law.expect(run is not None and run.answered, f"{row.key} died of {reason} and no handler had ended")
            law.expect((charged, crashed) == (1, 0), told)
            if run is not None:
                self._together.settled[run] = [OWN]
                exhausted = run.outcome in CHARGED and row.attempts + 1 > row.queue.retries
                right = {"exhausted": exhausted, "discarded": run.outcome == "discard"}
                law.expect(right.get(reason, run.outcome == reason), f"{told}, and it ended as {run.outcome}")
            row.charged += charged
        row.state, row.attempts, row.crashes = DEAD, buried["attempts"], buried["crashes"]


def _key(new: dict[str, Any]) -> str:
    body: str = bytes(new["body"]).decode()
    return body.split('"key":"', 1)[1].split('"', 1)[0]
