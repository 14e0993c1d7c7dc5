"""The manners of the stand-in App Store: hidden limits, latency and faults, all of which can be repeated."""

from __future__ import annotations

import asyncio

import httpx2

from penstock.testing import virtual
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, Fault, Limit, Manners
from tests.systems.standin_visits import QUIET, faulty, page_path, truth_of, visiting


def limited(limit: Limit) -> Manners:
    return Manners(limits={"search": limit}, latency_seconds={}, faults=())


async def status(client: httpx2.AsyncClient, pause: float = 0, path: str = "/search?term=budget&limit=1") -> int:
    await asyncio.sleep(pause)
    return (await client.get(path)).status_code


@virtual
async def test_a_bucket_refuses_exactly_what_is_above_the_hidden_rate() -> None:
    async with visiting(limited(Limit(20))) as client:
        burst = [await status(client) for _ in range(25)]
        refusal = await client.get("/search?term=budget")
        await asyncio.sleep(3)
        after_three_seconds = [await status(client) for _ in range(2)]
        at_the_rate = [await status(client, pause=3) for _ in range(200)]
        above_it = [await status(client, pause=2) for _ in range(300)]

    assert burst == [200] * 20 + [403] * 5
    assert (refusal.status_code, refusal.content, refusal.headers["content-length"]) == (403, b"", "0")
    assert refusal.headers["cache-control"] == "max-age=0, no-cache, no-store"
    assert "retry-after" not in refusal.headers
    assert after_three_seconds == [200, 403]
    assert at_the_rate == [200] * 200
    assert above_it.count(200) == 200


@virtual
async def test_a_window_starts_anew_on_the_minute() -> None:
    async with visiting(limited(Limit(20, kind="window"))) as client:
        await asyncio.sleep(59)
        first = [await status(client) for _ in range(22)]
        await asyncio.sleep(1)
        second = [await status(client) for _ in range(22)]

    assert first == second == [200] * 20 + [403] * 2


@virtual
async def test_who_does_not_listen_is_shut_out_for_minutes() -> None:
    async with visiting(limited(Limit(20, closes_after=10, closed_seconds=300))) as client:
        await asyncio.gather(*(status(client) for _ in range(30)))
        await asyncio.sleep(299)
        shut = await status(client)
        await asyncio.sleep(1)

        assert (shut, await status(client)) == (403, 200)


@virtual
async def test_the_hidden_limit_follows_the_hours_and_can_be_asked_for() -> None:
    start = FIRST_DAY.timestamp()
    limit = Limit(10, burst=1, hours=((7, 60), (22, 600)))
    async with visiting(limited(limit)) as client:
        truth = truth_of(client)
        await asyncio.sleep(8 * 3_600)
        by_day = [await status(client, pause=0.5) for _ in range(100)]

    assert [truth.limit("search", start + hour * 3_600) for hour in (0, 7, 21.9, 22)] == [10, 1, 1, 10]
    assert truth.limit("page", start) == float("inf")
    assert by_day.count(200) == 50


@virtual
async def test_each_endpoint_and_each_address_has_a_limit_of_its_own() -> None:
    async with visiting(
        Manners(limits={"search": Limit(1), "lookup": Limit(2)}, latency_seconds={}, faults=())
    ) as client:
        searches = [await status(client) for _ in range(2)]
        lookups = [(await client.get("/lookup?id=1")).status_code for _ in range(3)]
        app = client._transport.app  # type: ignore[attr-defined]
        neighbour = httpx2.ASGITransport(app=app, client=("10.0.0.2", 1))
        async with httpx2.AsyncClient(transport=neighbour, base_url="http://apple.test") as other:
            elsewhere = await status(other)
        books = truth_of(client).books

    assert (searches, lookups, elsewhere) == ([200, 403], [200, 200, 403], 200)
    assert (books["search"].requests, books["search"].answered, books["search"].refused) == (3, 2, 1)
    assert [(minute.start, minute.answered) for minute in books["lookup"].minutes] == [(FIRST_DAY.timestamp(), 2)]


def test_latency_comes_from_the_seed() -> None:
    spent: list[float] = []

    @virtual
    async def three_requests(seed: int) -> None:
        async with visiting(Manners(faults=()), Catalogue(apps=50, seed=seed)) as client:
            for _ in range(3):
                await status(client)
        spent.append(asyncio.get_running_loop().time())

    for seed in (1, 1, 2):
        three_requests(seed)

    assert 0.1 < spent[0] == spent[1] != spent[2]


@virtual
async def test_faults_come_by_number_by_time_and_by_chance() -> None:
    start = FIRST_DAY.timestamp()
    faults = (
        Fault("error", "search", requests=(2, 3)),
        Fault("busy", seconds=(start + 60, start + 120)),
        Fault("error", "lookup", share=0.25),
    )
    async with visiting(Manners(limits={}, latency_seconds={}, faults=faults)) as client:
        by_number = [await status(client) for _ in range(4)]
        by_chance = [(await client.get("/lookup?id=1")).status_code for _ in range(400)]
        await asyncio.sleep(60)
        by_time = await status(client)
        failed = truth_of(client).books["search"].failed

    assert [code >= 500 for code in by_number] == [False, True, True, False]
    assert 70 <= sum(code >= 500 for code in by_chance) <= 130
    assert (by_time, failed) == (429, 3)


@virtual
async def test_searches_and_look_ups_share_what_one_address_may_ask() -> None:
    async with visiting(Manners(latency_seconds={}, faults=())) as client:
        mixed = [await status(client, path=path) for _ in range(15) for path in ("/search?term=x", "/lookup?id=1")]
        old = await status(client, path="/WebObjects/MZStore.woa/wa/search?term=x")
        chart = await status(client, path="/us/rss/topfreeapplications/limit=1/json")
        truth = truth_of(client)

    assert mixed == [200] * 20 + [403] * 10
    assert (old, chart) == (403, 200)
    assert truth.limit("search", 0) == truth.limit("lookup", 0) == 20 / 60
    assert (truth.books["search"].answered, truth.books["lookup"].answered) == (10, 10)


@virtual
async def test_apples_own_manners_shut_out_who_goes_on_regardless() -> None:
    manners = Manners.apple(closed_seconds=600)
    async with visiting(manners, Catalogue(apps=300)) as client:
        answers = [await client.get("/search?term=budget") for _ in range(400)]
        refused = [answer for answer in answers if answer.status_code in (403, 429)]
        await asyncio.sleep(500)
        shut = await status(client)
        await asyncio.sleep(200)
        later = [await status(client, pause=3.2) for _ in range(60)]

    assert 20 <= sum(answer.status_code == 200 for answer in answers) <= 60
    assert not any("retry-after" in answer.headers for answer in refused)
    kinds = {(answer.status_code, answer.text.strip()) for answer in refused}
    assert kinds == {(403, ""), (429, ""), (403, '{"resultCount":0,"results":[]}')}
    assert shut in (403, 429)
    assert later.count(403) + later.count(429) == 0
    assert later.count(200) > 55


@virtual
async def test_refusals_come_in_the_kinds_and_shares_that_are_asked_for() -> None:
    manners = Manners(limits={"lookup": Limit(0.001)}, latency_seconds={}, faults=(), too_many_share=0.25)
    async with visiting(manners) as client:
        codes = [await status(client, path="/lookup?id=1") for _ in range(400)]

    assert set(codes) == {403, 429}
    assert 70 <= codes.count(429) <= 130


@virtual
async def test_a_slow_answer_comes_all_the_same_and_a_block_is_no_answer() -> None:
    faults = (
        Fault("slow", "lookup", requests=(1, 1), delay_seconds=45),
        Fault("refused", "lookup", requests=(2, 2)),
        Fault("blocked", "lookup", requests=(3, 3)),
    )
    async with visiting(faulty(*faults)) as client:
        before = asyncio.get_running_loop().time()
        slow = await client.get("/lookup?id=1")
        spent = asyncio.get_running_loop().time() - before
        refused, blocked = [await client.get("/lookup?id=1") for _ in range(2)]
        book = truth_of(client).books["lookup"]

    assert (slow.json()["resultCount"], spent) == (0, 45)
    assert (refused.status_code, refused.content) == (403, b"")
    assert (blocked.status_code, blocked.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (book.answered, book.failed) == (1, 2)


@virtual
async def test_every_endpoint_can_be_made_to_fail() -> None:
    catalogue = Catalogue(apps=300)
    index = next(i for i in range(99) if catalogue.sold(i, 0, "us"))
    id = catalogue.track_id(index)
    paths = {
        "search": "/search?term=budget",
        "lookup": f"/lookup?id={id}",
        "chart": "/us/rss/topfreeapplications/limit=1/json",
        "page": page_path(catalogue, index),
        "ratings": f"/us/customer-reviews/id{id}",
        "reviews": f"/us/rss/customerreviews/page=1/id={id}/json",
        "hints": "/WebObjects/MZSearchHints.woa/wa/hints?term=bud",
    }
    async with visiting(faulty(Fault("busy")), catalogue) as client:
        failed = {endpoint: await status(client, path=path) for endpoint, path in paths.items()}
        books = truth_of(client).books
    async with visiting(QUIET, catalogue) as client:
        answered = {endpoint: await status(client, path=path) for endpoint, path in paths.items()}

    assert set(failed.values()) == {429}
    assert set(answered.values()) == {200}
    assert {endpoint: books[endpoint].failed for endpoint in paths} == dict.fromkeys(paths, 1)
