"""The ledger, the memory and the beliefs of the agents: nothing twice, nothing lost, nothing from chance."""

from __future__ import annotations

import asyncio

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.evaluate import beliefs, ledger, memory
from penstock_systems.appstore.evaluate.memory import Most
from tests.systems.appstore.conftest import START, Opened
from tests.systems.appstore.crawling import crawling, insert, insert_apps

NOW = f"{START:%Y-%m-%d %H:%M:%S}"
ROWS = "select id, agent, version, subject_type, subject_id, score, explanation, inputs, created_at from agent_ledger"


async def note(version: str = "1", **inputs: object) -> None:
    async with shared.app.unit():
        await ledger.note("judge", version, "app", "7", 12.5, "because", inputs)


@pytest.mark.spec("B4-08", "G2-19")
async def test_a_judgement_names_its_inputs_its_version_its_score_and_its_time(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await note(track_id=7, ratings=3)
        [row] = await it.sql(ROWS)
        assert tuple(row)[1:] == (
            "judge", "1", "app", "7", 12.5, "because", '{"track_id":7,"ratings":3}', NOW
        )  # fmt: skip
        assert len(row.id) == 32


@pytest.mark.spec("B4-04", "B4-08")
async def test_the_same_inputs_leave_no_second_row_and_others_do(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await note(a=1, b=2)
        await note(b=2, a=1)
        assert len(await it.sql(ROWS)) == 1
        await note(a=1, b=3)
        await note("2", a=1, b=2)
        assert len({row.id for row in await it.sql(ROWS)}) == 3


async def test_the_same_judgement_has_the_same_id_everywhere(pipeline: Opened) -> None:
    seen = []
    for _ in range(2):
        async with crawling(pipeline) as it:
            await note(a=1)
            seen.append((await it.sql(ROWS))[0].id)
    assert seen[0] == seen[1]


async def test_hostile_explanations_are_cut_and_kept(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        async with shared.app.unit():
            await ledger.note("judge", "1", "keyword", "'; drop table x; --", None, "👩‍👩‍👧=1+1" * 300, {"a": "\u202e"})
        [row] = await it.sql(ROWS)
        assert (row.score, len(row.explanation) <= 500, row.subject_id) == (None, True, "'; drop table x; --")


@pytest.mark.spec("B4-08")
async def test_an_agent_remembers_the_largest_in_whatever_order_it_was_seen(pipeline: Opened) -> None:
    async with crawling(pipeline):
        assert await memory.recall_most("demand", "strongest") is None

        async def seen(amount: float, subject: str) -> None:
            async with shared.app.unit():
                memory.remember_most("demand", "strongest", Most(amount, subject), NOW)

        await asyncio.gather(seen(3.0, "c"), seen(50.0, "a"), seen(20.0, "b"), seen(50.0, "a"))
        assert await memory.recall_most("demand", "strongest") == Most(50.0, "a")
        assert await memory.recall_most("other", "strongest") is None


@pytest.mark.spec("B4-08")
async def test_what_is_believed_follows_the_charts_and_not_the_number_of_events(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        async with shared.app.unit():
            assert await beliefs.learn_from_charts(NOW) is None
        assert await memory.strength("competitiveness", beliefs.RATINGS_EXPLAIN_RANK) is None

        counts = [10_000 - 10 * rank for rank in range(1, 41)]
        counts[5], counts[20] = counts[20], counts[5]
        await insert_apps(
            it,
            *(
                {"track_id": rank, "rating_count": count, "enrichment_source": "scraper"}
                for rank, count in enumerate(counts, 1)
            ),
        )
        chart = {"collection": "topfreeapplications", "category": "6015", "snapshot_at": NOW}
        await insert(it, "chart_positions", *({"track_id": rank, "rank": rank, **chart} for rank in range(1, 41)))
        for _ in range(3):
            async with shared.app.unit():
                await beliefs.learn_from_charts(NOW)
            believed = await memory.strength("competitiveness", beliefs.RATINGS_EXPLAIN_RANK)
            # Two of forty changed places, fifteen apart.
            assert believed == pytest.approx(1 - 6 * (2 * 15**2) / (40 * (40**2 - 1)), abs=1e-4)


@pytest.mark.slow("postgres")
def test_charts_that_say_nothing_are_not_believed() -> None:
    rising = [(rank, 1_000 * rank) for rank in range(1, 31)]
    falling = [(rank, 1_000 - rank) for rank in range(1, 31)]
    assert beliefs.explained({}) is None
    assert beliefs.explained({"short": falling[:19]}) is None
    assert beliefs.explained({"a": falling}) == pytest.approx(1.0)
    assert beliefs.explained({"a": rising}) == 0.0
    assert beliefs.explained({"a": falling, "b": rising}) == pytest.approx(0.0)
    assert beliefs.explained({"a": [(rank, 7) for rank in range(30)]}) == 0.0
