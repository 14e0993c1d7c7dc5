"""When a notice may be sent: quiet hours and digests in local time, on the days when clocks change as well."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from random import Random

import pytest

import penstock as ps
from penstock.channels import Notice, QuietHours, join_notices, next_digest, parse_quiet, parse_time, send_at

BERLIN = "Europe/Berlin"
NIGHT = QuietHours(time(22), time(7), BERLIN)


def moment(text: str) -> int:
    """A moment of UTC in microseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def shown(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros / 1_000_000, UTC):%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    "at, ends",
    [
        ("2026-01-10T20:59", None),  # 21:59 in Berlin
        ("2026-01-10T21:00", "2026-01-11T06:00"),
        ("2026-01-11T00:30", "2026-01-11T06:00"),
        ("2026-01-11T05:59", "2026-01-11T06:00"),
        ("2026-01-11T06:00", None),
        ("2026-03-28T22:00", "2026-03-29T05:00"),  # the night that is an hour shorter
        ("2026-10-24T21:00", "2026-10-25T06:00"),  # the night that is an hour longer
    ],
)
def test_quiet_hours_over_midnight_end_at_a_local_time(at: str, ends: str | None) -> None:
    found = NIGHT.end_after(moment(at))

    assert (None if found is None else shown(found)) == ends


def test_quiet_hours_within_a_day_leave_the_night_alone() -> None:
    noon = QuietHours(time(12), time(14), "Asia/Tokyo")

    assert noon.end_after(moment("2026-05-01T03:30")) == moment("2026-05-01T05:00")
    assert noon.end_after(moment("2026-05-01T05:00")) is None
    assert noon.end_after(moment("2026-05-01T18:00")) is None


@pytest.mark.parametrize(
    "hours, at, ends",
    [
        # The end is leapt over: it is right after the leap. 02:30 never shows on this day.
        (QuietHours(time(23), time(2, 30), BERLIN), "2026-03-29T00:30", "2026-03-29T01:00"),
        # The beginning is leapt over.
        (QuietHours(time(2, 30), time(4), BERLIN), "2026-03-29T01:10", "2026-03-29T02:00"),
        # The end comes twice: the first one counts, and the second pass of the hour is not quiet.
        (QuietHours(time(23), time(2, 30), BERLIN), "2026-10-25T00:10", "2026-10-25T00:30"),
        (QuietHours(time(23), time(2, 30), BERLIN), "2026-10-25T01:10", None),
        # A day that never was: 30 December 2011 in Apia. The quiet hours end when the next day begins.
        (QuietHours(time(22), time(7), "Pacific/Apia"), "2011-12-30T09:00", "2011-12-30T10:00"),
    ],
)
def test_a_boundary_at_a_change_of_clocks_happens_once(hours: QuietHours, at: str, ends: str | None) -> None:
    found = hours.end_after(moment(at))

    assert (None if found is None else shown(found)) == ends


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"])
def test_quiet_hours_always_end_later_and_outside_of_themselves(zone: str, seed: int) -> None:
    random = Random(f"{seed} {zone}")
    for _ in range(400):
        begins, ends = (time(random.randrange(24), random.choice((0, 15, 30))) for _ in "ab")
        if begins == ends:
            continue
        hours = QuietHours(begins, ends, zone)
        at = moment("2026-01-01T00:00") + random.randrange(366 * 24 * 3600) * 1_000_000

        end = hours.end_after(at)

        if end is not None:
            assert at < end <= at + timedelta(hours=26) // timedelta(microseconds=1), (hours, shown(at))
            assert hours.end_after(end) is None, (hours, shown(at), shown(end))


def test_a_notice_of_the_day_is_sent_now_and_one_of_the_night_in_the_morning() -> None:
    day, night = moment("2026-06-01T10:00"), moment("2026-06-01T21:00")

    assert send_at(day, quiet=NIGHT) == day
    assert send_at(night, quiet=NIGHT) == moment("2026-06-02T05:00")
    assert send_at(night) == night


def test_an_urgent_notice_passes_quiet_hours_and_digests() -> None:
    night = moment("2026-06-01T21:00")

    assert send_at(night, quiet=NIGHT, digest_at=time(9), zone=BERLIN, urgent=True) == night


def test_a_digest_is_at_its_local_time_every_day_over_a_change_of_clocks() -> None:
    found, at = [], moment("2026-03-27T12:00")
    for _ in range(3):
        at = next_digest(at, time(9), BERLIN)
        found.append(shown(at))

    assert found == ["2026-03-28T08:00", "2026-03-29T07:00", "2026-03-30T07:00"]


def test_a_digest_whose_time_is_quiet_waits_for_the_end_of_the_quiet_hours() -> None:
    at = send_at(moment("2026-06-01T10:00"), quiet=NIGHT, digest_at=time(6), zone=BERLIN)

    assert at == moment("2026-06-02T05:00")


@pytest.mark.parametrize("text", ["7:30", "24:00", "07:60", "", "07:30:00", "٠٧:٣٠", "07:30\n8"])
def test_a_time_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ps.PenstockError, match=r"such as 07:30"):
        parse_time(text, "quiet_from")


@pytest.mark.parametrize("begins, ends", [("22:00", None), (None, "07:00"), ("22:00", "22:00"), ("22:00", "")])
def test_half_quiet_hours_are_refused(begins: str | None, ends: str | None) -> None:
    with pytest.raises(ps.PenstockError, match="Quiet hours"):
        parse_quiet(begins, ends)


def test_quiet_hours_are_read_from_two_texts() -> None:
    assert parse_quiet("22:00", "07:00", BERLIN) == NIGHT
    assert parse_quiet(None, None) is None
    with pytest.raises(ps.PenstockError, match="Europe/Berlin"):
        parse_quiet("22:00", "07:00", "Europe/Berlim")


def test_a_digest_names_each_notice_on_one_line_and_counts_the_rest() -> None:
    notices = [Notice(f"Flat {n}", f"Rent {n}\nDear\x00 reader", to="a@b.example", at=n) for n in range(60)]

    joined = join_notices(notices, title="60 flats")

    lines = joined.text.split("\n")
    assert lines[0] == "- Flat 0: Rent 0 Dear\x00 reader"
    assert (len(lines), lines[-1]) == (51, "and 10 more")
    assert (joined.to, joined.at, joined.subject) == ("a@b.example", 59, "60 flats")


def test_a_digest_of_long_notices_fits_into_one_notice() -> None:
    joined = join_notices([Notice("x" * 500, "y" * 9_000)] * 50)

    assert len(joined.text) <= 8_000
    assert joined.text.endswith(f"and {50 - (joined.text.count(chr(10)))} more")


def test_a_digest_of_one_notice_is_that_notice() -> None:
    notice = Notice("Flat", "Rent", html="<p>Rent</p>")

    assert join_notices([notice], title="1 flat") is notice
