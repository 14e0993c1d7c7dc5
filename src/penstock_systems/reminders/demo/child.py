"""The process that sends: it runs the app in virtual time from where the last one was killed, and is killed itself."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from penstock.channels import read_secret
from penstock.testing import TestApp, run
from penstock_systems.reminders.app import web
from penstock_systems.reminders.demo import world
from penstock_systems.reminders.people import set_person
from penstock_systems.reminders.reminders import create
from penstock_systems.reminders.system import app
from penstock_systems.standins.notifications import make_servers
from penstock_systems.standins.notifications.resend import signed
from penstock_systems.standins.notifications.server import HOSTS

STEP = timedelta(minutes=30)
DATABASE, ARRIVALS, COURSE = Path("reminders.db"), Path("arrivals.jsonl"), Path("course.json")
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Course(msgspec.Struct):
    """How far the demonstration has come: `until` is the end of the step that is under way."""

    until: datetime = world.START
    is_set_up: bool = False
    is_done: bool = False


def load_course() -> Course:
    return msgspec.json.decode(COURSE.read_bytes(), type=Course) if COURSE.exists() else Course()


def save_course(course: Course) -> None:
    beside = COURSE.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(course))
    os.replace(beside, COURSE)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def live(seed: int, kill: tuple[str, float] | None) -> None:
    """Run until the end, or until the kill: after so many arrivals (`arrival`), or at a second of virtual time (`time`)."""
    run(lambda: _live(seed, kill), seed=seed)


async def _live(seed: int, kill: tuple[str, float] | None) -> None:
    course, ends = load_course(), world.START + timedelta(days=world.DAYS)
    async with TestApp(app, seed=seed, start=course.until, database=str(DATABASE)) as running:
        servers = make_servers(
            lambda: running.now.timestamp(),
            count=ARRIVALS,
            seed=seed,
            faults=world.FAULTS,
            times=world.TIMES,
            begins=world.START.timestamp(),
            chats_lost=world.CHATS_LOST,
        )
        for host in HOSTS:
            web.mount(host, servers)
        if not course.is_set_up:
            async with running.unit():
                for id, person in world.people(seed):
                    await set_person(id, person)
            for each in world.reminders(seed):
                async with running.unit():
                    await create(each)
            course.is_set_up = True
            save_course(course)
        _arm(running, servers.state.arrivals, kill)
        while course.until < ends:
            since = course.until
            course.until = min(course.until + STEP, ends)
            save_course(course)
            await running.advance(seconds=(course.until - running.now).total_seconds())
            await _report_bounces(running, servers.state.resend, since)
        course.is_done = True
        save_course(course)


def _arm(running: TestApp, arrivals: object, kill: tuple[str, float] | None) -> None:
    if kill is None:
        return
    kind, number = kill
    if kind == "time":
        import asyncio

        asyncio.get_running_loop().call_later(number, die)
        return
    left, add = [number], arrivals.add  # type: ignore[attr-defined]

    def add_and_die(*given: object, **facts: object) -> None:
        add(*given, **facts)
        left[0] -= 1
        if left[0] <= 0:
            die()  # it has arrived, and nothing here knows

    arrivals.add = add_and_die  # type: ignore[attr-defined]


async def _report_bounces(running: TestApp, resend: object, since: datetime) -> None:
    """Post what Resend reports of addresses that do not exist."""
    found = resend.bounces(since.timestamp(), running.now.timestamp())  # type: ignore[attr-defined]
    async with running.client() as http:
        for event in found:
            id = f"report-{event['data']['email_id']}"
            body, headers = signed(event, read_secret(SECRET), id, running.now.timestamp())
            await http.post("/inbound/resend", content=body, headers=headers)
