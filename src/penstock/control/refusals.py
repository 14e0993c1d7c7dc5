"""What a refusal says about the ceiling: nothing yet, as expected, too high, or that it was not about the pace."""

from __future__ import annotations

import math

from penstock.control.ceiling import BELOW, CRUISE_FIRST, CRUISE_MOST, DEEP_MOST, Ceiling

DOUBT = 12  # answers in which a second refusal has to follow the first, where no ceiling was expected
SETTLED = 100  # requests between two refusals, from which on their pace is remembered
LATELY = 60  # if it took so many while it refused three, a refusal below the ceiling says little about it
TEST = 0.75  # of the ceiling: few limits fall that far between two refusals
TEST_LEAST, TEST_MOST = 60, 400  # answers of a test: four times what lay between two such refusals
CLUMP = 1.5  # times the ceiling: what was sent so fast fills a window for as long as the window is
CLUMP_SECONDS = 60.0
SAVED_MOST = 10.0


def refused(ceiling: Ceiling, number: int, at: float, sent: int, now: float, *, noisy: bool) -> None:
    """The service was full when request `number` reached it. `noisy`: it refuses at random, too."""
    ceiling.spend(at)
    _remember(ceiling, number, at)
    if _is_doubtful(ceiling, number, noisy):
        ceiling.doubt, ceiling.doubted = DOUBT, number
        ceiling.rate *= 0.95
        ceiling.trail.full(number, at)
        return
    ceiling.doubt = 0
    ceiling.overrun = ceiling.phase in {"cruise", "return"}
    before = ceiling.rate
    if ceiling.known is None or ceiling.phase == "search":
        ceiling.known, ceiling.dear.lid = _first(ceiling, number, at), before
        ceiling.cruise_for = CRUISE_FIRST
    elif ceiling.phase == "probe" and ceiling.dear.times:
        ceiling.known, ceiling.cruise_for = ceiling.dear.probed(ceiling.known, before), CRUISE_FIRST
    elif ceiling.phase == "cruise" and ceiling.dear.times:
        ceiling.known, ceiling.cruise_for = ceiling.dear.refused(ceiling.known), CRUISE_FIRST
    elif ceiling.phase == "probe":
        _probed(ceiling, ceiling.known, number, at)
    elif now < ceiling.clumped_until:
        # Its window is still full: wait for room, the ceiling is no lower for it.
        ceiling.rate = before / 2
        ceiling.trail.full(number, at)
        ceiling.enter("return", sent, now)
        return
    elif ceiling.phase == "return" and ceiling.long_closed:
        ceiling.known *= 0.8
        ceiling.rate = max(before * 0.5, ceiling.known / 8)
        ceiling.trail.full(number, at)
        ceiling.enter("return", sent, now)
        return
    elif ceiling.crept:
        _crept_too_far(ceiling, ceiling.known, number, at)
    elif _surprised(ceiling, number, at):
        ceiling.test_refused_at = 0
        ceiling.test_for = min(TEST_MOST, max(TEST_LEAST, 4 * (number - ceiling.shaken_from) // ceiling.isolated))
        ceiling.rate = TEST * ceiling.known
        ceiling.trail.full(number, at)
        ceiling.enter("test", sent, now)
        return
    if before > CLUMP * ceiling.known:
        ceiling.clumped, ceiling.clumped_until = True, now + CLUMP_SECONDS
    ceiling.trail.full(number, at)
    ceiling.cruise(sent, now)


def _remember(ceiling: Ceiling, number: int, at: float) -> None:
    """A pace that was held for long is where a later climb stops first; one that fails four times is forgotten."""
    between, minute = ceiling.trail.between(number, at), ceiling.trail.last_minute(number)
    if ceiling.dear.times:  # what it took in a minute after the door had opened was more than it takes in the long run
        ceiling.settled = None
    elif between and ceiling.trail.count(number) >= SETTLED:
        ceiling.settled = between if between >= 0.9 * minute else 0.97 * minute
        ceiling.missed = 0
    elif ceiling.settled and ceiling.rate <= ceiling.settled:
        ceiling.missed += 1
        if ceiling.missed >= 4:
            ceiling.settled = None


def _is_doubtful(ceiling: Ceiling, number: int, noisy: bool) -> bool:
    """Where nothing was known of a ceiling, one refusal may have been about the item. Over a limit a second follows."""
    above = ceiling.phase == "probe" and (noisy or ceiling.rate > CLUMP * (ceiling.known or math.inf))
    if ceiling.phase != "search" and not above:
        return False
    return not ceiling.doubt and number - ceiling.doubted > (2 if noisy else 8) * DOUBT


def _first(ceiling: Ceiling, number: int, at: float) -> float:
    close = ceiling.trail.between(number, at) if ceiling.trail.count(number) >= 2 else 0.0
    close = close or 0.6 * ceiling.rate
    return min(0.98 * ceiling.rate, max(min(close, ceiling.trail.last_minute(number)), 0.25 * ceiling.rate))


def _probed(ceiling: Ceiling, known: float, number: int, at: float) -> None:
    """A probe ended. What it got beyond the ceiling says whether the ceiling is still where it was."""
    between = ceiling.trail.between(number, at)
    asked, took = number - ceiling.phase_number, max(at - ceiling.phase_at, 1e-9)
    spare = asked - known * took
    # What the bucket of the service may have gained since it was last empty; that much was to be expected.
    saved = min(SAVED_MOST, max(1.0, known * ceiling.paused)) + (1 - BELOW) * ceiling.cruised
    ceiling.rising = spare > saved + 6 + 0.02 * asked
    if ceiling.rising:
        ceiling.known = max(known, between, min(0.97 * asked / took, ceiling.trail.last_minute(number)))
        ceiling.cruise_for, ceiling.crept = CRUISE_FIRST, False
    elif spare < 1 and ceiling.cruised < 4 * CRUISE_FIRST:
        ceiling.known = 0.99 * known
        ceiling.cruise_for = max(CRUISE_FIRST, ceiling.cruise_for // 2)
    elif not ceiling.deep and ceiling.rate > 1.1 * known:
        # Either its bucket gave out, or it has none and the ceiling lies just below this rate: try the middle.
        ceiling.firm, ceiling.crept = known, True
        ceiling.probe_asked, ceiling.probe_took = asked, took
        ceiling.known = max(between, math.sqrt(known * 0.98 * ceiling.rate))
        ceiling.cruise_for = 2 * CRUISE_FIRST
    else:
        ceiling.crept, ceiling.deep = False, max(0, ceiling.deep - 1)
        better = max(between, (asked - saved) / took if spare > saved + 1.5 else 0.0)
        ceiling.known = known + 0.5 * max(0.0, better - known)
        ceiling.cruise_for = min(CRUISE_MOST, 2 * ceiling.cruise_for)
    ceiling.falling = False
    if spare >= 1:
        ceiling.isolated = max(0, ceiling.isolated - 1)
    ceiling.clumped = ceiling.clumped and ceiling.rate > 1.3 * ceiling.known


def _crept_too_far(ceiling: Ceiling, known: float, number: int, at: float) -> None:
    ceiling.crept = False
    ceiling.known = max(ceiling.firm, min(ceiling.trail.between(number, at), 0.98 * known))
    if ceiling.probe_asked - ceiling.known * ceiling.probe_took > 0.6:
        ceiling.deep, ceiling.deep_for = ceiling.deep_for, min(DEEP_MOST, 2 * ceiling.deep_for)


def _surprised(ceiling: Ceiling, number: int, at: float) -> bool:
    """Refused below the ceiling: it has fallen, or this is not about the pace. Says whether it is time for a test."""
    (count, seconds), before = ceiling.trail.lately(number, at), ceiling.rate
    ceiling.isolated = ceiling.isolated + 1 if ceiling.phase == "cruise" else 0
    if ceiling.isolated == 1:
        ceiling.unshaken, ceiling.shaken_from = ceiling.known, ceiling.trail.full_number
    if not seconds or count >= LATELY:
        ceiling.known = 0.97 * before
    else:
        ceiling.known = max(0.5 * before, min((count + 1) / (seconds + 1 / before), 0.99 * before))
    ceiling.cruise_for, ceiling.falling = CRUISE_FIRST, True
    return ceiling.isolated >= ceiling.isolated_most
