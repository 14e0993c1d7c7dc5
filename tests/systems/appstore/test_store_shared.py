"""The one store that all stages share, in the running app: its paces, its cache, and answers that agree with each other."""

from __future__ import annotations

import asyncio

from penstock_systems.appstore.outside import feeding, searching
from penstock_systems.appstore.outside import store as shared_store
from tests.systems.appstore.conftest import Opened


async def test_the_store_that_all_stages_share_answers_every_question(pipeline: Opened) -> None:
    async with pipeline(apps=400) as it:
        chart = await shared_store.chart("topfreeapplications", 6014, limit=20)
        ids = [app.track_id for app in chart]
        assert [app.rank for app in chart] == list(range(1, len(ids) + 1))
        assert len(ids) > 10

        looked_up = await asyncio.gather(*map(shared_store.lookup, ids))
        pages = await asyncio.gather(*map(shared_store.page, ids))
        histograms = await asyncio.gather(*map(shared_store.ratings, ids))
        assert it.store.truth().books["lookup"].requests == 1

        for listed, app, page, ratings in zip(chart, looked_up, pages, histograms, strict=True):
            assert app is not None
            assert (app.track_id, app.title, app.genre_id) == (listed.track_id, listed.title, listed.genre_id)
            # The feed writes the day of the release, the record its minute.
            assert (app.released or "")[:10] == (listed.released or "")[:10]
            assert (page.title, page.developer, page.bundle_id) == (app.title, app.developer, app.bundle_id)
            assert ratings is not None
            assert ratings.total == app.ratings
            assert page.ratings is None or page.ratings == ratings
            assert page.versions[0].version == app.version
            assert page.versions[0].released == app.version_released
        assert any(page.ratings for page in pages)
        assert any(page.purchases for page in pages)

        best = max(looked_up, key=lambda app: (app and app.ratings) or 0)
        assert best is not None
        assert best.title is not None
        assert best.track_id in [app.track_id for app in await shared_store.search(best.title)]
        assert best.developer_id is not None
        portfolio = await shared_store.portfolio(best.developer_id)
        assert portfolio.name == best.developer
        assert best.track_id in [app.track_id for app in portfolio.apps]
        assert searching.rate_per_second
        assert feeding.rate_per_second
    assert not shared_store.skipped
