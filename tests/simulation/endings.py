"""How a run may end, and what its row may look like afterwards, by the rules that users are told."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.retry import Retry
from tests.simulation.model import Run

CHARGED = {"fail", "bad", "lost_update", "wall", "retried"}
UNCHARGED = {"later", "throttled", "handed_back"}
DONE = {"done", "stubborn"}
KEEPS_EFFECTS = {"done", "stubborn", "later", "discard"}
OWN = "own"  # as its handler wants it, in the commit of what that did
FULL_SECONDS = 5.0  # until what a full queue has refused is tried again


class Answer(NamedTuple):
    how: str
    charged: int
    seconds: float


def answers_of(run: Run, retry: Retry, *, lapsed: bool) -> list[Answer]:
    """The ways in which the row of a run may wait again: as its handler wants it; because the unit was refused for want of
    room, or lost one of its rows; or because its own worker swept up what had lapsed."""
    answers = []
    if run.outcome in CHARGED:
        delay = retry.delay_seconds(run.row.attempts + 1)
        own = run.seconds if run.outcome == "retried" and run.seconds is not None else delay
        answers.append(Answer(OWN, 1, own))
    elif run.outcome in UNCHARGED:
        answers.append(Answer(OWN, 0, 0.0 if run.outcome == "handed_back" else run.seconds or 0.0))
    if run.work.bounded and run.work.keeps:
        answers.append(Answer("full", 0, FULL_SECONDS))
    if run.work.lost and len(run.work.runs) > 1:
        answers.append(Answer("lost", 0, 0.0))
    if lapsed:
        answers.append(Answer("swept", 0, 0.0))
    return answers


def worded(word: str, ending: str, *, held_nothing: bool) -> str:
    """The outcome of a message about which something was said before its handler ended as it did."""
    if word == "":
        return ending
    if word == "ack":
        return "done" if ending in KEEPS_EFFECTS or held_nothing else ending
    return word
