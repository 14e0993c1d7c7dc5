"""What people mark, collect, watch and share."""

from __future__ import annotations

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.reading import answers, people, report, sharing
from tests.systems.appstore import market_rows
from tests.systems.appstore.conftest import Opened


@pytest.mark.spec("B8-T38")
async def test_a_star_is_one_however_often_it_is_given_and_each_has_their_own(pipeline: Opened) -> None:
    async with pipeline() as it:
        await market_rows.fill(shared.app)

        await people.star(shared.app, [101_002, 101_003])
        await people.star(shared.app, [101_003, 102_000])
        await people.star(shared.app, [106_000], user="ada")
        await people.unstar(shared.app, [101_002, 5])

        assert [row["track_id"] for row in await people.stars(shared.db)] == [101_003, 102_000]
        assert [row["track_id"] for row in await people.stars(shared.db, user="ada")] == [106_000]
        assert len(await it.sql("select track_id from app_stars")) == 3


@pytest.mark.spec("B8-T39")
async def test_publishers_are_starred_beside_apps(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        await people.star(shared.app, [1_012, 7], publishers=True)
        await people.star(shared.app, [1_012], publishers=True)

        found = await people.publishers(shared.db)
        assert [(row["developer_id"], row["name"]) for row in found] == [(7, None), (1_012, "Habit Tracker Studio 2")]
        await people.unstar(shared.app, [7], publishers=True)
        assert len(await people.publishers(shared.db)) == 1
        assert await people.stars(shared.db) == []


@pytest.mark.spec("B8-T38")
async def test_a_list_begins_with_its_first_app_and_ends_with_its_last(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        await people.put_on_list(shared.app, "rivals", [101_002, 101_003])
        await people.put_on_list(shared.app, "rivals", [101_003])
        await people.put_on_list(shared.app, "ours", [101_002], user="ada")

        assert [(row["name"], row["apps"]) for row in await people.lists(shared.db)] == [("rivals", 2)]
        assert [row["track_id"] for row in await people.on_list(shared.db, "rivals")] == [101_002, 101_003]
        await people.take_off_list(shared.app, "rivals", [101_002, 101_003])
        assert await people.lists(shared.db) == []
        assert len(await people.lists(shared.db, user="ada")) == 1


@pytest.mark.spec("B8-T29")
async def test_a_tracked_keyword_need_not_have_been_searched(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        await people.track(shared.app, ["plant care", "never heard of"], user="ada")
        await people.track(shared.app, ["plant care"])

        found = await answers.keywords(shared.db, tracked=True)
        assert [(row["keyword"], row["status"], row["added_by"]) for row in found] == [
            ("never heard of", None, "ada"),
            ("plant care", "searched", "ada"),
        ]
        await people.untrack(shared.app, ["plant care", "never heard of"])
        assert await answers.keywords(shared.db, tracked=True) == []


@pytest.mark.spec("B8-T40")
async def test_a_shared_report_stays_as_it_was_and_every_look_is_noted(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)
        made = await report.gather(shared.db, title="For Ada")

        token = await sharing.share(shared.app, made, days=None)
        other = await sharing.share(shared.app, made, days=3)
        async with shared.app.unit():
            shared.db.write("update market_clusters set name = 'renamed'")

        assert token != other
        assert await sharing.opened(shared.app, token) == made
        assert await sharing.opened(shared.app, token) == made
        seen = {row["token"]: (row["opened"], row["title"]) for row in await sharing.shares(shared.db)}
        assert seen == {token: (2, "For Ada"), other: (0, "For Ada")}


@pytest.mark.spec("B8-T40")
async def test_what_is_not_shared_any_more_is_not_opened_and_not_noted(pipeline: Opened) -> None:
    async with pipeline() as it:
        made = await report.gather(shared.db)
        short = await sharing.share(shared.app, made, days=3)
        taken_back = await sharing.share(shared.app, made, days=None)
        await sharing.opened(shared.app, taken_back)

        assert await sharing.unshare(shared.app, taken_back)
        assert not await sharing.unshare(shared.app, taken_back)
        (until,) = await shared.db.column("select expires_at from shared_reports")
        assert until == "2026-01-04 00:00:00"
        async with shared.app.unit():
            shared.db.write("update shared_reports set expires_at = :now", now=await shared.db.now())

        assert await sharing.opened(shared.app, short) is None
        assert await sharing.opened(shared.app, taken_back) is None
        assert await sharing.opened(shared.app, "") is None
        assert await it.sql("select id from shared_report_access") == []
