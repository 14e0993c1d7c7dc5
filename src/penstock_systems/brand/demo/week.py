"""The week: what is asked for, what goes wrong, and what a reviewer decides. Time is virtual, every service is real."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from penstock.testing import TestApp, TestServices
from penstock_systems.brand import stages
from penstock_systems.brand.app import BRAIN, brain, events, hands, postings, publications, reader, researches, web
from penstock_systems.brand.app import wishes as commands
from penstock_systems.brand.messages import BrandResearch
from penstock_systems.brand.scalable_media.content import stored_article
from penstock_systems.brand.scalable_media.reading import list_waiting
from penstock_systems.brand.scalable_media.routes import Review, decide
from penstock_systems.gateway import keys
from penstock_systems.gateway.keys import Allowed
from penstock_systems.gateway.reading import spend
from penstock_systems.gateway.stages import app as gateway_app
from penstock_systems.standins.brave import Search
from penstock_systems.standins.chat import Chat, Manners
from penstock_systems.standins.publishing import Pages, Social, SocialFaults, write_reply
from penstock_systems.standins.publishing.writer import FALSE as FALSE_QUOTATION

MONDAY = datetime(2026, 1, 5, 8, tzinfo=UTC)
DAYS = 7
BUDGET = 0.035  # dollars a day: it is spent on Monday, and begins again at midnight
DEAREST_CALL = 0.005  # dollars: a search
LOST, DOWN = 0.15, 0.05  # shares of the posts whose answer is lost, and that are answered with 503
FALSE = (4, 9)  # the articles, in the order in which they are written, that cite what no page says
STOPPED = (1, 2)  # the day on which Social-Good does not run, and the one on which it runs again
REVIEWS_AT = 9  # o'clock
NETWORKS = ("mastodon", "bluesky", "x", "linkedin")
QUEUES = {
    "Scalable Media": (commands, events),
    "GatherFeed": (researches,),
    "Pages-Plus": (publications,),
    "Social-Good": (postings,),
}
KEYWORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("llc-tax", "high"): ("llc receipts", "quarterly taxes"),
    ("llc-tax", "normal"): ("home office rules", "llc insurance"),
    ("llc-tax", "low"): ("annual reports", "registered agents"),
    ("garden", "high"): ("raised beds", "compost bins"),
    ("garden", "normal"): ("garden ponds", "rain barrels"),
    ("garden", "low"): ("dry stone walls", "bee hotels"),
}


@dataclass
class Day:
    """How things stand at the end of a day."""

    name: str
    usd: float
    published: int
    posts: int
    waiting: dict[str, int]
    notes: list[str] = field(default_factory=list)


@dataclass
class Week:
    town: TestServices
    gateway: TestApp
    social: Social
    search: Search
    chat: Chat
    days: list[Day] = field(default_factory=list)

    async def live(self, show: Callable[[Day], None]) -> None:
        """Let the days pass. `show` gets each when it ends."""
        await self._ask()
        for number in range(DAYS):
            notes: list[str] = []
            await self.town.advance(hours=(REVIEWS_AT - self.town[BRAIN].now.hour) % 24)
            if number in STOPPED:
                notes.append(await self._switch(stops=number == STOPPED[0]))
            if number:
                notes += await self._review()
            await self.town.advance(hours=24 - self.town[BRAIN].now.hour - 1)
            self.days.append(await self._day(f"{self.town[BRAIN].now:%A}", notes))
            show(self.days[-1])
            await self.town.advance(hours=2)

    async def _ask(self) -> None:
        async with brain.unit():
            for (slug, priority), keywords in KEYWORDS.items():
                wish = BrandResearch(
                    brand_slug=slug,
                    keywords=list(keywords),
                    priority=priority,  # type: ignore[arg-type]
                    request_id=f"{slug}-{priority}",
                )
                commands.send(wish)

    async def _switch(self, *, stops: bool) -> str:
        """Stop all that Social-Good does, or start it again."""
        admin = await hands.desk()
        for queue in (postings.name, "workflow.social-post"):
            await (admin.pause if stops else admin.resume)(queue)
        return "Social-Good is stopped for a day" if stops else "Social-Good runs again"

    async def _review(self) -> list[str]:
        """The reviewer takes the false quotation out of the first article, and rejects the others."""
        notes = []
        for waiting in await list_waiting():
            article = await stored_article(waiting["id"])
            is_first = not await brain.db.value("select count(*) from sm_reviews")
            action, note = (
                ("edit", "a quotation that no page has") if is_first else ("reject", "the quotation is made up")
            )
            body = article.body.replace(f"> {FALSE_QUOTATION}\n\n", "") if is_first else None
            async with brain.unit():
                await decide(waiting["id"], action, Review(by="Ada", note=note, body=body))  # type: ignore[arg-type]
            notes.append(f"Ada {'edits' if is_first else 'rejects'} {article.title!r}")
        return notes

    async def _day(self, name: str, notes: list[str]) -> Day:
        spent = await spend(gateway_app.db, "key", since="")
        waiting = {}
        for service, queues in QUEUES.items():
            counts = [await self.town.of(queue).counts(queue) for queue in queues]
            waiting[service] = sum(count.ready + count.delayed + count.leased for count in counts)
        published = await brain.db.value("select count(*) from sm_content where status = 'published'")
        usd = sum(each["usd"] for each in spent)
        if usd - (self.days[-1].usd if self.days else 0.0) > BUDGET - DEAREST_CALL and waiting["GatherFeed"]:
            notes = [*notes, f"The budget of ${BUDGET} a day is spent: research waits until midnight"]
        return Day(name, usd, published, len(self.social.arrivals.all), waiting, notes)


@asynccontextmanager
async def opened(folder: Path, seed: int) -> AsyncIterator[Week]:
    """Start the services, the gateway and the fakes of everything outside, with databases in this folder."""
    for name in ("MASTODON", "BLUESKY", "X", "LINKEDIN"):
        os.environ[f"{name}_TOKEN"] = "sk-stand-in"
    os.environ |= {"PENSTOCK_STANDINS": "in this process", "SERVICE_KEY": "of the demonstration"}
    town = TestServices(stages.app, seed=seed, start=MONDAY, folder=folder)
    gateway = TestApp(gateway_app, start=MONDAY, folder=folder)

    def now() -> float:
        return town[BRAIN].now.timestamp()

    search, pages = Search(now, hosts=("https://web.example",), seed=seed), Pages(seed)
    chat = Chat(seed, Manners(seconds=2.0), reply=write_reply(FALSE))
    social = Social(now, faults=SocialFaults(lost=LOST, unavailable=DOWN), seed=seed)
    for host in ("https://api.openai.com", "https://api.search.brave.com"):
        gateway_app.standins[0].client.mount(host, Starlette(routes=[*chat.app.routes, search.route]))
    for host in NETWORKS:
        web.mount(f"https://{host}.example", social.app)
    reader.mount("https://web.example", pages.app)
    async with gateway, town:
        web.mount("https://apimom-router.example", gateway_app.asgi())
        os.environ["BRAND_GATEWAY_KEY"] = await keys.create(gateway_app, "brand", Allowed(day=BUDGET))
        yield Week(town, gateway, social, search, chat)


async def costs() -> dict[str, float]:
    """Return the dollars of each article, of its research too, by its tag."""
    found = await spend(gateway_app.db, "tag", since="")
    marked = {str(each["tag"]): each["usd"] + each["usd_at_most"] for each in found}
    return {tag.removeprefix("article="): usd for tag, usd in marked.items() if tag.startswith("article=")}


def deliveries(week: Week) -> list[tuple[datetime, str, Any]]:
    """Return the first delivery of each message: when, the service, the payload."""
    seen: dict[str, tuple[datetime, str, Any]] = {}
    for service, queues in QUEUES.items():
        for queue in queues:
            for attempt in week.town.of(queue).delivered(queue):
                assert attempt.at is not None
                seen.setdefault(attempt.id, (attempt.at, service, attempt.payload))
    return sorted(seen.values(), key=lambda each: each[0])
