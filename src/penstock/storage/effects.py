"""The fences and effects of a group of units, sorted by what the store does with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.contracts.audit import Audit
from penstock.contracts.effects import (
    Atomic,
    Call,
    Edit,
    LetterAction,
    Once,
    Replay,
    Resolve,
    SealedUnit,
    Settle,
    Write,
    WriteMany,
)
from penstock.contracts.items import DropItems, ItemChange, NoteItem
from penstock.contracts.ledger import Units
from penstock.contracts.objects import SaveObject
from penstock.contracts.runs import RunChange
from penstock.contracts.timers import ClearTimer, SetTimer, TickNote, TimerChange
from penstock.model.message import Delivery, NewMessage
from penstock.model.outcome import DONE


@dataclass(slots=True)
class GroupEffects:
    """Each list is in the order of the units. Deliveries are by token: those of one claim share it."""

    done: dict[int, list[Delivery]] = field(default_factory=dict)
    kept: dict[int, list[int]] = field(default_factory=dict)  # numbers of rows that stay as they are
    settled: list[Settle] = field(default_factory=list)  # in another way than done
    saves: list[SaveObject] = field(default_factory=list)
    keys: list[tuple[SealedUnit, Once]] = field(default_factory=list)
    calls: list[tuple[SealedUnit, Call]] = field(default_factory=list)
    sends: list[NewMessage] = field(default_factory=list)
    runs: list[RunChange] = field(default_factory=list)
    timers: list[tuple[str, TimerChange]] = field(default_factory=list)  # with the task of the unit
    items: list[ItemChange] = field(default_factory=list)
    letters: list[tuple[SealedUnit, LetterAction]] = field(default_factory=list)
    audits: list[tuple[SealedUnit, Audit]] = field(default_factory=list)


def sort(units: Units) -> GroupEffects:
    group = GroupEffects()
    sends, done, kept = group.sends, group.done, group.kept
    for unit in units:
        for fence in unit.fences:
            match fence:
                case Settle():
                    delivery, settlement, _ = fence
                    if settlement is DONE:
                        if (token := delivery.token) in done:
                            done[token].append(delivery)
                        else:
                            done[token] = [delivery]
                    elif settlement is None:
                        kept.setdefault(delivery.token, []).append(delivery.seq)
                    else:
                        group.settled.append(fence)
                case SaveObject():
                    group.saves.append(fence)
                case Once():
                    group.keys.append((unit, fence))
        for effect in unit.effects:
            match effect:
                case NewMessage():
                    sends.append(effect)
                case Write() | WriteMany() | Atomic():
                    group.calls.append((unit, effect))
                case SetTimer() | ClearTimer() | TickNote():
                    group.timers.append((unit.task, effect))
                case NoteItem() | DropItems():
                    group.items.append(effect)
                case Replay() | Resolve() | Edit():
                    group.letters.append((unit, effect))
                case Audit():
                    group.audits.append((unit, effect))
                case _:
                    group.runs.append(effect)
    return group


def sends_of(unit: SealedUnit) -> list[NewMessage]:
    return [effect for effect in unit.effects if isinstance(effect, NewMessage)]
