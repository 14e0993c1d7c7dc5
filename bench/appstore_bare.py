"""The bare loop: asks the store all that the enrichment asks about an app, reads the answers, and keeps nothing.

    python -m bench.appstore_bare FOLDER '{"url": "http://127.0.0.1:8788", "parallel": 8, "ids": [1, 2]}'

Commands come as lines of JSON on stdin; each `round` is answered with the seconds that all apps took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from xml.etree import ElementTree

import httpx2
from selectolax.lexbor import LexborHTMLParser

from bench.appstore_process import given, tell
from penstock_systems.appstore.settings import Settings
from penstock_systems.appstore.store.lookup import IDS_A_CALL, lookup_url
from penstock_systems.appstore.store.page import page_url
from penstock_systems.appstore.store.ratings import CLIENT, ratings_url
from penstock_systems.appstore.store.reviews import reviews_url
from penstock_systems.appstore.store.storefronts import HEADER, storefront

SETTINGS = Settings()
COUNTRY, LANGUAGE = SETTINGS.country, SETTINGS.language
TIMEOUT_SECONDS = 60.0
ENTRY = "{http://www.w3.org/2005/Atom}entry"


class Bare:
    def __init__(self, client: httpx2.AsyncClient, url: str, *, parallel: int) -> None:
        self._client = client
        self._url = url
        self._parallel = parallel
        self._front = {HEADER: f"{storefront(COUNTRY)},{CLIENT}", "Accept-Language": LANGUAGE}
        self._rated: dict[int, bool] = {}

    async def round(self, ids: list[int]) -> dict[str, float]:
        began, worked = time.perf_counter(), time.process_time()
        self._rated = {}
        batches = [ids[start : start + IDS_A_CALL] for start in range(0, len(ids), IDS_A_CALL)]
        for batch in batches:
            await self._look_up(batch)
            waiting = deque(batch)
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._parallel):
                    workers.create_task(self._work(waiting))
        return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}

    async def _look_up(self, ids: list[int]) -> None:
        body = await self._get(lookup_url(self._url, ids, country=COUNTRY, language=LANGUAGE))
        found = json.loads(body)["results"]
        self._rated = {each["trackId"]: each.get("userRatingCount", 0) > 0 for each in found if "trackId" in each}

    async def _work(self, waiting: deque[int]) -> None:
        while waiting:
            track_id = waiting.popleft()
            async with asyncio.TaskGroup() as asked:
                asked.create_task(self._page(track_id))
                if self._rated.get(track_id):
                    asked.create_task(self._reviews(track_id))

    async def _page(self, track_id: int) -> None:
        """The page, and the ratings where it shows none."""
        page = LexborHTMLParser(
            (await self._get(page_url(self._url, track_id, country=COUNTRY, language=LANGUAGE))).decode()
        )
        script = page.css_first("script#serialized-server-data")
        assert script is not None, f"the page of {track_id} has no data"
        (told,) = json.loads(script.text())["data"]
        if not told["data"]["shelfMapping"].get("productRatings", {}).get("items"):
            body = await self._get(ratings_url(self._url, track_id, country=COUNTRY), self._front)
            assert LexborHTMLParser(body.decode()).css_first(".rating-count") is not None

    async def _reviews(self, track_id: int) -> None:
        """The feeds in their order, until one has an entry."""
        for feed in SETTINGS.review_feeds:
            url = reviews_url(self._url, track_id, country=COUNTRY, page=1, form=feed.form)
            body = await self._get(url, {"User-Agent": feed.user_agent} if feed.user_agent else None)
            if feed.form == "xml":
                found = ElementTree.fromstring(body).find(ENTRY) is not None
            else:
                found = "entry" in json.loads(body)["feed"]
            if found:
                return

    async def _get(self, url: str, headers: dict[str, str] | None = None) -> bytes:
        answer = await self._client.get(url, headers=headers)
        answer.raise_for_status()
        return answer.content


async def serve(url: str, ids: list[int], parallel: int) -> None:
    async with httpx2.AsyncClient(follow_redirects=True, timeout=TIMEOUT_SECONDS) as client:
        bare = Bare(client, url, parallel=parallel)
        loop = asyncio.get_running_loop()
        tell({"ready": True})
        while await loop.run_in_executor(None, sys.stdin.readline):
            tell(await bare.round(ids))


def main() -> None:
    options = given()
    asyncio.run(serve(options["url"], options["ids"], options["parallel"]))


if __name__ == "__main__":
    main()
