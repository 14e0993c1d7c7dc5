"""Receivers: endpoints with their secrets and outages, suppressed addresses, links of mails, and calendars."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from time import process_time
from typing import Any

import icalendar
import pytest
from standardwebhooks import Webhook as Library

import penstock as ps
from penstock.channels import read_secret
from penstock_systems.reminders import app as own
from penstock_systems.reminders import notices
from penstock_systems.reminders.settings import Settings
from penstock_systems.standins.notifications import Faults, Times
from penstock_systems.standins.notifications.resend import bounce, signed
from tests.systems.reminders.conftest import HOOK, Office, Opened

DAY = 86_400.0
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
GUIDE = Path(__file__).resolve().parents[3] / "docs/guide/reminders.md"


async def person(it: Office, **more: Any) -> None:
    await it.call("PUT", "/people/ann", json={"email": "ann@example.org", **more})


async def test_an_endpoint_that_fails_for_days_is_switched_off_and_its_owner_gets_a_mail(office: Opened) -> None:
    async with office(times=Times(broken=(0.0, 5.5 * DAY)), faults=Faults(rate=100)) as it:
        await person(it)
        made = await it.add(user="ann", webhook=f"{HOOK}/broken/ann", rule={"every": "1 day"}, at="in 1m")
        for _ in range(6):
            await it.running.advance(minutes=12)
            it.running.jump(DAY - 720)
        await it.running.advance(minutes=12)
        (mail,) = it.mails
        assert mail["subject"] == "A webhook endpoint was switched off"
        assert mail["to"] == "ann@example.org"
        (endpoint,) = await it.call("GET", "/endpoints")
        assert endpoint["state"] == "off"
        assert "missed" in {status for _, _, status in await it.statuses(made["id"])}
        await it.post(f"/endpoints/{endpoint['id']}/replay", expect=409)

        await it.post(f"/endpoints/{endpoint['id']}/enable")
        replayed = await it.post(f"/endpoints/{endpoint['id']}/replay")
        assert replayed["replayed"] == 7
        await it.running.advance(minutes=2)
        assert sorted(each["about"] for each in it.hooks) == [f"{made['id']} {fire}" for fire in range(1, 8)]
        assert (await it.post(f"/endpoints/{endpoint['id']}/replay"))["replayed"] == 0
        assert (await it.post(f"/endpoints/{endpoint['id']}/test"))["status"] == "sent"


@pytest.mark.spec("G7-03")
async def test_an_unknown_outcome_stays_known_as_such_when_its_endpoint_is_switched_off(office: Opened) -> None:
    async with office() as it:
        made = await it.add(user="ann", webhook=f"{HOOK}/hangs/ann")
        await it.running.advance(seconds=45)
        assert await it.statuses(made["id"]) == [(1, "webhook", "unknown")]
        async with it.running.unit():
            own.db.write("update endpoints set state = 'off'")
        await it.running.advance(minutes=2)
        assert await it.statuses(made["id"]) == [(1, "webhook", "held")]
        assert (await it.call("GET", "/counts"))["unknown"] == 1


@pytest.mark.fault("F43")
async def test_an_endpoint_that_is_gone_is_switched_off_at_once(office: Opened) -> None:
    async with office(times=Times(gone=0.0)) as it:
        await person(it)
        made = await it.add(user="ann", webhook=f"{HOOK}/gone/ann")
        await it.running.advance(minutes=2)
        assert (await it.call("GET", "/endpoints"))[0]["state"] == "off"
        assert (await it.call("GET", f"/{made['id']}"))["state"] == "parked"
        assert len(it.mails) == 1


async def test_a_redirect_to_a_private_address_is_a_failure(office: Opened) -> None:
    async with office() as it:
        made = await it.add(webhook=f"{HOOK}/redirects/x")
        await it.running.advance(minutes=1)
        assert (await it.row(made["id"])).error_count + int((await it.row(made["id"])).dead_lettered_at is not None)
        assert not it.hooks


async def test_both_secrets_sign_for_a_day_after_a_rotation(office: Opened) -> None:
    seen: list[Any] = []
    async with office(verify=lambda name, body, headers: seen.append((body, dict(headers)))) as it:
        made = await it.post("/endpoints", url=f"{HOOK}/verifies/ann", user="ann")
        rotated = await it.post(f"/endpoints/{made['id']}/rotate")
        for wait in (0.0, DAY):
            it.running.jump(wait)
            await it.add(user="ann", webhook=made["id"])
            await it.running.advance(minutes=1)

        def who_signed(body: bytes, headers: dict[str, str]) -> list[str]:
            at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
            secrets = {"old": made["secret"], "new": rotated["secret"]}
            given = headers["webhook-signature"].split()
            return [
                name
                for name, each in secrets.items()
                if Library(each).sign(headers["webhook-id"], at, body.decode()) in given
            ]

        assert [who_signed(*each) for each in seen] == [["old", "new"], ["new"]]


async def test_a_bounce_that_resend_reports_suppresses_the_address(
    office: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMINDERS_RESEND_WEBHOOK_SECRET", SECRET)
    async with office(faults=Faults(rate=100)) as it:
        await person(it)
        await it.add(user="ann")
        await it.running.advance(minutes=1)
        body, headers = signed(bounce(it.mails[0]), read_secret(SECRET), "msg_1", it.running.now.timestamp())
        for _ in range(2):
            answer = await it.http.post("/inbound/resend", content=body, headers=headers)
            assert answer.status_code == 200, answer.text
        assert (await it.http.post("/inbound/resend", content=body + b" ", headers=headers)).status_code == 401

        second = await it.add(user="ann")
        await it.running.advance(minutes=1)
        assert len(it.mails) == 1
        assert await it.statuses(second["id"]) == [(1, "email", "suppressed")]
        assert (await it.call("GET", "/suppressions/Ann@Example.org"))["reason"] == "bounce"
        await it.call("DELETE", "/suppressions/ann@example.org")
        await it.add(user="ann")
        await it.running.advance(minutes=1)
        assert len(it.mails) == 2


async def test_a_report_of_resend_settles_a_mail_of_unknown_outcome(
    office: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMINDERS_RESEND_WEBHOOK_SECRET", SECRET)
    async with office(faults=Faults(rate=100, lost=1.0)) as it:
        await person(it)
        made = await it.add(user="ann")
        await it.running.advance(seconds=45)
        report = bounce(it.mails[0], "email.delivered")
        body, headers = signed(report, read_secret(SECRET), "msg_2", it.running.now.timestamp())
        assert (await it.http.post("/inbound/resend", content=body, headers=headers)).status_code == 200
        assert await it.statuses(made["id"]) == [(1, "email", "sent")]
        await it.running.advance(minutes=2)
        assert len(it.mails) == 1


async def test_one_click_unsubscribes_and_opening_the_link_does_not(
    office: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "settings", Settings(public_url="https://r.example.org"))
    async with office(faults=Faults(rate=100)) as it:
        await person(it)
        await it.add("A <b>bold</b> title", user="ann", nag_every="10m")
        await it.running.advance(minutes=1)
        headers = it.mails[0]["headers"]
        assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        path = headers["List-Unsubscribe"].strip("<>").removeprefix("https://r.example.org")
        assert (await it.http.get(path)).status_code == 200
        await it.add(user="ann")
        await it.running.advance(minutes=1)
        assert len(it.mails) == 2, "opening the link changes nothing"

        form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""}
        done = await it.http.post(path, content=b"List-Unsubscribe=One-Click", headers=form)
        assert done.status_code == 200, done.text
        await it.add(user="ann")
        await it.running.advance(minutes=1)
        assert len(it.mails) == 2
        assert (await it.http.post(path[:-3] + "AAA")).status_code == 404


async def test_the_links_of_a_mail_acknowledge_and_snooze(office: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "settings", Settings(public_url="https://r.example.org"))
    async with office(faults=Faults(rate=100)) as it:
        await person(it)
        made = await it.add(user="ann", nag_every="10m")
        await it.running.advance(minutes=1)
        links = dict(re.findall(r"(\w+)[^:\n]*: https://r.example.org(\S+)", it.mails[0]["text"]))
        assert (await it.http.get(links["Snooze"])).status_code == 200
        await it.http.post(links["Snooze"])
        assert (await it.row(made["id"])).snoozed_until
        await it.http.post(links["Done"])
        assert (await it.call("GET", f"/{made['id']}"))["acked_at"]
        it.running.jump(40 * DAY)
        assert (await it.http.post(links["Done"])).status_code == 410


HOSTILE = "Rent\r\nATTENDEE:mailto:x@example.org; 12,5 % \\n \U0001f600 " + "äöü" * 40


async def test_icalendar_reads_the_feed_and_hostile_titles_stay_titles(office: Opened) -> None:
    async with office() as it:
        await person(it, zone="Europe/Berlin")
        await it.add(
            HOSTILE[:200], user="ann", body="line\nBEGIN:VEVENT", at="2026-03-20T09:00", rule={"every": "1 week"}
        )
        await it.add("Once", user="ann", at="2026-03-21T12:00")
        await it.add("Later", user="ann", at="2026-12-01T12:00")
        address = (await it.call("GET", "/people/ann"))["calendar"]
        feed = await it.http.get(address, headers={"Authorization": ""})
        assert feed.headers["content-type"].startswith("text/calendar")
        assert all(len(line) <= 75 for line in feed.content.split(b"\r\n"))
        events = [
            each for each in icalendar.Calendar.from_ical(feed.content).walk() if isinstance(each, icalendar.Event)
        ]
        titles = {str(event["SUMMARY"]) for event in events}
        assert titles == {HOSTILE[:200].replace("\r\n", "\n"), "Once"}
        weekly = sorted(event.start for event in events if str(event["SUMMARY"]) != "Once")
        assert [f"{each:%m-%d %H:%M}" for each in weekly[:3]] == ["03-20 08:00", "03-27 08:00", "04-03 07:00"]
        assert len({str(event["UID"]) for event in events}) == len(events)
        assert (await it.http.get(address.replace("/calendar/", "/calendar/x"))).status_code == 404
        again = (await it.call("POST", "/people/ann/revoke-calendar"))["calendar"]
        assert (await it.http.get(again)).status_code == 200
        assert (await it.http.get(address)).status_code == 404


IMPORTED = """BEGIN:VCALENDAR\r
BEGIN:VEVENT\r
UID:1@example.org\r
SUMMARY:Birthday of Ann\\, again and again and again and again and\r
  again\r
DTSTART;VALUE=DATE:20260305\r
RRULE:FREQ=YEARLY\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:2@example.org\r
SUMMARY:Dentist\r
DTSTART;TZID=Europe/Berlin:20260410T143000\r
BEGIN:VALARM\r
TRIGGER:-PT30M\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:3@example.org\r
SUMMARY:Odd\r
DTSTART:20260410T143000Z\r
RRULE:FREQ=SECONDLY\r
END:VEVENT\r
END:VCALENDAR\r
"""


@pytest.mark.parametrize("name", ["REMINDERS_SECRET", "REMINDERS_RESEND_WEBHOOK_SECRET", "PENSTOCK_TOKEN"])
async def test_a_secret_of_the_system_itself_is_not_that_of_an_endpoint(office: Opened, name: str) -> None:
    async with office() as it:
        refused = await it.post("/endpoints", expect=422, url="https://hooks.example.com/x", secret_ref=name)
        assert "secret_ref" in refused["message"]


async def test_a_calendar_is_imported_once(office: Opened) -> None:
    async with office() as it:
        await person(it, zone="Europe/Berlin")
        for _ in range(2):
            answer = await it.http.post("/v1/reminders/import.ics?user=ann", content=IMPORTED.encode())
            assert answer.status_code == 200, answer.text
            found = answer.json()["result"]
            assert [each["title"] for each in found["skipped"]] == ["Odd"]
        rows = (await it.call("GET", "", params={"user": "ann"}))["reminders"]
        assert [(row["title"], row["starts"]) for row in rows] == [
            ("Birthday of Ann, again and again and again and again and again", "2026-03-05T09:00"),
            ("Dentist", "2026-04-10T14:00"),
        ]
        assert (await it.http.post("/v1/reminders/import.ics", content=b"nothing")).status_code == 422


def calendar_of(*lines: str) -> bytes:
    event = ("BEGIN:VEVENT", "UID:1@example.org", "SUMMARY:Odd", *lines, "END:VEVENT")
    return "\r\n".join(("BEGIN:VCALENDAR", *event, "END:VCALENDAR", "")).encode()


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART:20260410T143000Z", "BEGIN:VALARM", f"TRIGGER:-P{'9' * 5_000}D", "END:VALARM"),
        ("DTSTART:20260410T143000Z", "BEGIN:VALARM", "TRIGGER:-P9999999999999D", "END:VALARM"),
        ("DTSTART:20260410T143000Z", "BEGIN:VALARM", "TRIGGER:-P9999W", "END:VALARM"),
        ("DTSTART:00010101T000000Z", "BEGIN:VALARM", "TRIGGER:-P9D", "END:VALARM"),
        ("DTSTART;TZID=Pacific/Kiritimati:00010101T000000",),
        ("DTSTART;TZID=America/New_York:99991231T235959",),
        ("DTSTART;TZID=../../etc/passwd:20260410T143000",),
        ("DTSTART;TZID=Europe:20260410T143000",),
        ("DTSTART:20260410T143000Z", f"RRULE:FREQ=DAILY;COUNT={'9' * 5_000}"),
        ("DTSTART:20260410T143000Z", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
        ("DTSTART:99991231T235959Z", "RRULE:FREQ=DAILY"),
        ("DTSTART:20260410T143000Z", "RRULE:FREQ=DAILY;UNTIL=99991231"),
        ("DTSTART:20260410T143000Z", "RRULE:FREQ=DAILY;UNTIL=00010101T000000"),
        ("DTSTART;TZID=America/New_York:20260410T143000", "RRULE:FREQ=DAILY;UNTIL=99991231T235959"),
        ("DTSTART;TZID=America/New_York:20260410T143000", "RRULE:FREQ=DAILY;UNTIL=99991231T235959Z"),
        ("DTSTART;TZID=Asia/Tokyo:20260410T143000", "RRULE:FREQ=DAILY;UNTIL=00010101T000000"),
        ("DTSTART:20260410T143000Z", "RRULE:FREQ=DAILY", "EXDATE:\u00b2\u00b2\u00b2"),
    ],
)
async def test_an_event_that_cannot_be_is_skipped_with_a_reason(office: Opened, lines: tuple[str, ...]) -> None:
    async with office() as it:
        answer = await it.http.post("/v1/reminders/import.ics", content=calendar_of(*lines))
        assert answer.status_code == 200, answer.text
        found = answer.json()["result"]
        assert found["imported"] + len(found["skipped"]) == 1


@pytest.mark.only_on("sqlite")
async def test_a_calendar_made_to_take_long_is_read_at_once(office: Opened) -> None:
    began = process_time()
    async with office() as it:
        ambiguous = calendar_of("DTSTART:20260410T143000Z", f"X{';a=b=c' * 26}")
        assert (await it.http.post("/v1/reminders/import.ics", content=ambiguous)).status_code == 200
        deep = calendar_of(*["BEGIN:X"] * 60_000, *["A:b"] * 60_000)
        assert (await it.http.post("/v1/reminders/import.ics", content=deep)).status_code == 422
    assert process_time() - began < 5


@pytest.mark.only_on("sqlite")
def test_the_verifiers_of_the_guide_accept_what_the_library_signs_and_nothing_else(tmp_path: Path) -> None:
    blocks = dict(re.findall(r"```(python|javascript)\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[:2])
    body, at = '{"type": "reminder.due"}', datetime(2026, 3, 2, 8, tzinfo=UTC)
    now, id = at.timestamp(), "r1.1.webhook"
    good = {
        "webhook-id": id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": Library(SECRET).sign(id, at, body),
    }
    cases = [
        (good, body, now),
        (good, body + " ", now),
        (good, body, now + 400),
        ({**good, "webhook-id": "x"}, body, now),
    ]

    space: dict[str, Any] = {}
    exec(blocks["python"], space)
    told = []
    for headers, text, when in cases:
        try:
            space["verify"](SECRET, headers, text.encode(), when)
            told.append(True)
        except ValueError:
            told.append(False)
    assert told == [True, False, False, False]

    if (node := which("node")) is None:
        return
    (tmp_path / "verify.mjs").write_text(blocks["javascript"])
    script = f"""import {{ verify }} from "./verify.mjs";
for (const [headers, body, now] of {json.dumps(cases)}) {{
  try {{ verify({json.dumps(SECRET)}, headers, body, now); console.log("true"); }} catch {{ console.log("false"); }}
}}"""
    (tmp_path / "run.mjs").write_text(script)
    run = subprocess.run([node, "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["true", "false", "false", "false"]


@pytest.mark.only_on("sqlite")
def test_settings_are_checked_with_their_name() -> None:
    for section, told in (
        ({"retries": 0}, "retries"),
        ({"backoff": ["soon"]}, "not a duration"),
        ({"public_url": "r.example.org"}, "public_url"),
        ({"colour": "red"}, "Known settings"),
        ({"quiet": {"from": "22:00", "to": "25:00"}}, "25:00"),
    ):
        with pytest.raises(ps.BadConfig, match=told):
            Settings.of({"reminders": section})
