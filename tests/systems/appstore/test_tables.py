"""The tables of the pipeline: all there with their columns, all keyed, each written and read by somebody."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.reading.queries import ask
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import crawling, cycle

HOME = Path(shared.__file__).parent
MIGRATIONS = HOME / "migrations"
CREATED = re.compile(r"create table (\w+) \((.*?)\n\);", re.DOTALL)
KEY = re.compile(r"(?:primary key|unique) \(([^)]*)\)")
OF_ONE = re.compile(r"^  (\w+) [^,\n]*primary key", re.MULTILINE)

# Of each table: the columns that somebody relies on, and the key that makes a second insert harmless.
TABLES: dict[str, tuple[str, str]] = {
    "app_registry": (
        """
        track_id bundle_id track_name seller_name average_rating rating_count primary_genre price formatted_price artwork_url
        track_view_url description release_date version content_rating languages developer_id developer_website subtitle
        enriched_at enrichment_source rating_histogram in_app_purchases iap_scraped_at iap_scrape_status similar_apps
        competitiveness_score rating_velocity_7d rating_count_7d_ago rating_velocity_updated_at enrich_priority
        first_seen_at last_seen_at screenshots enrich_attempts next_enrich_at enrich_error data_source
        """,
        "track_id",
    ),
    "crawl_keywords": (
        """
        keyword source source_keyword depth status priority app_count last_searched_at created_at attempts next_search_at
        """,
        "keyword",
    ),
    "crawl_rankings": ("keyword track_id rank crawled_at", "keyword track_id"),
    "crawl_seeds": ("keyword note created_at", "keyword"),
    "crawl_log": ("id phase stats started_at finished_at error", "id"),
    "category_scans": (
        """
        id collection category category_name priority sort_order scanned_at apps_found attempts last_error next_scan_at
        """,
        "collection category",
    ),
    "chart_positions": ("track_id collection category rank snapshot_at", "track_id collection category"),
    "chart_position_history": (
        "track_id collection category rank snapshot_at scan_id",
        "scan_id track_id",
    ),
    "developers": ("developer_id name website first_seen_at", "developer_id"),
    "app_reviews": ("review_id track_id rating title body sentiment reviewed_at", "review_id"),
    "app_version_history": ("track_id version released_at notes", "track_id version"),
    "app_keyword_mentions": ("track_id keyword field count", "track_id keyword"),
    "agent_ledger": (
        "id agent version subject_type subject_id score explanation inputs_hash created_at",
        "agent subject_type subject_id inputs_hash",
    ),
    "agent_memory": ("agent key value updated_at", "agent key"),
    "agent_core_beliefs": ("agent belief strength updated_at", "agent belief"),
    "market_clusters": (
        "id opportunity_score name lineage_id demand competitiveness fragmentation computed_at",
        "id",
    ),
    "cluster_apps": ("cluster_id track_id weight", "cluster_id track_id"),
    "cluster_keywords": ("cluster_id keyword weight", "cluster_id keyword"),
    "cluster_snapshots": (
        "cluster_id snapshot_at opportunity_score apps keywords",
        "cluster_id snapshot_at",
    ),
    "cluster_lineages": ("lineage_id cluster_id run_at overlap", "cluster_id run_at"),
    "cluster_relations": ("a b kind weight", "a b kind"),
    "opportunity_evaluations": ("id cluster_id lineage_id verdict score run_id created_at", "id"),
    "opportunity_reference_apps": ("evaluation_id track_id role", "evaluation_id track_id"),
    "opportunity_method_scores": ("evaluation_id method_id score", "evaluation_id method_id"),
    "debate_reports": ("id evaluation_id transcript summary created_at", "id"),
    "debate_messages": ("report_id seq agent text", "report_id seq"),
    "market_tips": ("id cluster_id text created_at", "id"),
    "keyword_cache": ("key value expires_at", "key"),
    "app_cache": ("key value expires_at", "key"),
    "tracked_keywords": ("keyword added_by created_at", "keyword"),
    "keyword_snapshots": ("keyword day metrics", "keyword day"),
    "app_snapshots": ("id track_id rating_count snapshot_at average_rating rank", "track_id day"),
    "ranking_snapshots": ("keyword track_id day rank", "keyword track_id day"),
    "pipelines": ("id name status started_at", "id"),
    "pipeline_steps": ("pipeline_id name status started_at", "pipeline_id name"),
    "dfs_keyword_cache": ("keyword response fetched_at", "keyword"),
    "app_stars": ("user_id track_id", "user_id track_id"),
    "app_lists": ("user_id name track_id", "user_id name track_id"),
    "publisher_stars": ("user_id developer_id", "user_id developer_id"),
    "shared_reports": ("token report_id", "token"),
    "shared_report_access": ("token accessed_at", "id"),
    "marketing_methods": ("id name body", "id"),
    "case_studies": ("id name body", "id"),
    "marketing_playbooks": ("id evaluation_id body", "id"),
    "harness_cycles": ("id status started_at finished_at", "id"),
    "harness_processor_log": ("cycle_id processor result", "id"),
    "research_tasks": ("id kind subject status due_at", "id"),
}
# Beside those: what one stage leaves for another, and one that nobody writes any more.
OTHERS = {
    *("crawl_state", "design_concepts", "priority_boosts"),
    "scan_snapshots",
}


@cache
def created() -> dict[str, str]:
    """What stands between the brackets of each table."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))
    return dict(CREATED.findall(text))


@cache
def code() -> str:
    """Everything that runs statements, and what the migrations seed."""
    found = [path for pattern in ("*.py", "*.sql") for path in sorted(HOME.rglob(pattern))]
    seeds = re.compile(r"^insert into .*?;", re.DOTALL | re.MULTILINE)
    return "\n".join(
        "\n".join(seeds.findall(path.read_text("utf-8"))) if path.parent == MIGRATIONS else path.read_text("utf-8")
        for path in found
    )


def written(table: str) -> bool:
    return (
        re.search(rf"\b(?:insert into|update) {table}\b|\b(?:insert_many|upsert)\(\s*\"{table}\"", code()) is not None
    )


def read(table: str) -> bool:
    """By a query; what only removes or counts rows reads nothing."""
    return re.search(rf"(?<!delete )\b(?:from|join) {table}\b", code()) is not None


@pytest.mark.spec("G2-13", "A8-09")
async def test_the_migrations_apply_and_apply_no_second_time(pipeline: Opened) -> None:
    async with pipeline() as it:
        assert await it.sql("select track_id from app_registry") == []
        assert await shared.db.count("app_registry") == 0
    async with pipeline() as it:
        assert await it.sql("select keyword from crawl_keywords") == []


@pytest.mark.spec("G2-39")
@pytest.mark.slow("postgres")
def test_every_table_is_known() -> None:
    assert set(created()) == {*TABLES, *OTHERS}


@pytest.mark.slow("postgres")
@pytest.mark.parametrize(
    "table",
    [
        pytest.param("app_registry", marks=pytest.mark.spec("B8-T01")),
        pytest.param("crawl_keywords", marks=pytest.mark.spec("B8-T02")),
        pytest.param("crawl_rankings", marks=pytest.mark.spec("B8-T03")),
        pytest.param("crawl_seeds", marks=pytest.mark.spec("B8-T04")),
        pytest.param("crawl_log", marks=pytest.mark.spec("B8-T05")),
        pytest.param("category_scans", marks=pytest.mark.spec("B8-T06")),
        pytest.param("chart_positions", marks=pytest.mark.spec("B8-T07")),
        pytest.param("chart_position_history", marks=pytest.mark.spec("B8-T08")),
        pytest.param("developers", marks=pytest.mark.spec("B8-T09")),
        pytest.param("app_reviews", marks=pytest.mark.spec("B8-T10")),
        pytest.param("app_version_history", marks=pytest.mark.spec("B8-T11")),
        pytest.param("app_keyword_mentions", marks=pytest.mark.spec("B8-T12")),
        pytest.param("agent_ledger", marks=pytest.mark.spec("B8-T13")),
        pytest.param("agent_memory", marks=pytest.mark.spec("B8-T14")),
        pytest.param("agent_core_beliefs", marks=pytest.mark.spec("B8-T15")),
        pytest.param("market_clusters", marks=pytest.mark.spec("B8-T16")),
        pytest.param("cluster_apps", marks=pytest.mark.spec("B8-T17")),
        pytest.param("cluster_keywords", marks=pytest.mark.spec("B8-T18")),
        pytest.param("cluster_snapshots", marks=pytest.mark.spec("B8-T19")),
        pytest.param("cluster_lineages", marks=pytest.mark.spec("B8-T20")),
        pytest.param("cluster_relations", marks=pytest.mark.spec("B8-T21")),
        pytest.param("opportunity_evaluations", marks=pytest.mark.spec("B8-T22")),
        pytest.param("opportunity_reference_apps", marks=pytest.mark.spec("B8-T23")),
        pytest.param("opportunity_method_scores", marks=pytest.mark.spec("B8-T24")),
        pytest.param("debate_reports", marks=pytest.mark.spec("B8-T25")),
        pytest.param("debate_messages", marks=pytest.mark.spec("B8-T26")),
        pytest.param("market_tips", marks=pytest.mark.spec("B8-T27")),
        pytest.param("keyword_cache", marks=pytest.mark.spec("B8-T28")),
        pytest.param("app_cache", marks=pytest.mark.spec("B8-T28")),
        pytest.param("tracked_keywords", marks=pytest.mark.spec("B8-T29")),
        pytest.param("keyword_snapshots", marks=pytest.mark.spec("B8-T30")),
        pytest.param("app_snapshots", marks=pytest.mark.spec("B8-T31")),
        pytest.param("ranking_snapshots", marks=pytest.mark.spec("B8-T32")),
        pytest.param("pipelines", marks=pytest.mark.spec("B8-T34")),
        pytest.param("pipeline_steps", marks=pytest.mark.spec("B8-T34")),
        pytest.param("dfs_keyword_cache", marks=pytest.mark.spec("B8-T35")),
        pytest.param("app_stars", marks=pytest.mark.spec("B8-T38")),
        pytest.param("app_lists", marks=pytest.mark.spec("B8-T38")),
        pytest.param("publisher_stars", marks=pytest.mark.spec("B8-T39")),
        pytest.param("shared_reports", marks=pytest.mark.spec("B8-T40")),
        pytest.param("shared_report_access", marks=pytest.mark.spec("B8-T40")),
        pytest.param("marketing_methods", marks=pytest.mark.spec("B8-T41")),
        pytest.param("case_studies", marks=pytest.mark.spec("B8-T41")),
        pytest.param("marketing_playbooks", marks=pytest.mark.spec("B8-T42")),
        pytest.param("research_tasks", marks=pytest.mark.spec("B8-T43")),
        pytest.param("harness_cycles", marks=pytest.mark.spec("B8-T45")),
        pytest.param("harness_processor_log", marks=pytest.mark.spec("B8-T45")),
    ],
)
def test_a_table_has_a_key_a_writer_and_a_reader(table: str) -> None:
    _, key = TABLES[table]
    body = created()[table]

    keys = [set(found.replace(",", " ").split()) for found in KEY.findall(body)]
    assert set(key.split()) in [*keys, *({name} for name in OF_ONE.findall(body))]
    assert written(table), f"nobody writes {table}"
    assert read(table), f"nobody reads {table}"


@pytest.mark.spec(
    "B8-T01",
    "B8-T02",
    "B8-T03",
    "B8-T04",
    "B8-T05",
    "B8-T06",
    "B8-T07",
    "B8-T08",
    "B8-T09",
    "B8-T10",
    "B8-T11",
    "B8-T12",
    "B8-T13",
    "B8-T14",
    "B8-T15",
    "B8-T16",
    "B8-T17",
    "B8-T18",
    "B8-T19",
    "B8-T20",
    "B8-T21",
    "B8-T22",
    "B8-T23",
    "B8-T24",
    "B8-T25",
    "B8-T26",
    "B8-T27",
    "B8-T28",
    "B8-T29",
    "B8-T30",
    "B8-T31",
    "B8-T32",
    "B8-T34",
    "B8-T35",
    "B8-T38",
    "B8-T39",
    "B8-T40",
    "B8-T41",
    "B8-T42",
    "B8-T43",
    "B8-T45",
)
async def test_the_database_has_the_columns_of_every_table(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        for table, (columns, _) in TABLES.items():
            await it.sql(f"select {', '.join(columns.split())} from {table} limit 1")


@pytest.mark.spec("B8-T33", "B8-T48")
async def test_what_was_paid_and_what_ran_is_read_like_tables(pipeline: Opened) -> None:
    paid = "id, service, provider, operation, units, cost, correlation_id, created_at"
    ran = "id, task, cron, started_at, finished_at, status, phase, rows_read, rows_written, error, created_at"
    async with crawling(pipeline) as it:
        assert await it.sql(f"select {paid} from api_calls_ledger limit 1") == []
        await cycle(it)
        (row,) = await it.sql(f"select {ran} from pipeline_log where task = 'crawl' limit 2")

    assert (row.cron, row.status, row.error) == ("*/5 * * * *", "idle", None)
    assert row.created_at <= row.started_at <= row.finished_at


@pytest.mark.slow("postgres")
@pytest.mark.spec("B8-T37", "A10-05", "F-06")
def test_nothing_writes_or_reads_the_old_health_snapshots() -> None:
    assert "scan_snapshots" in created()
    assert "scan_snapshots" not in code()


@pytest.mark.spec("B8-T41")
async def test_every_seeded_method_has_an_example_that_is_shown_beside_it(pipeline: Opened) -> None:
    async with pipeline() as it:
        methods = [row.id for row in await it.sql("select id from marketing_methods order by id")]
        async with it.running.unit():
            shared.db.insert_many(
                "opportunity_method_scores",
                [{"evaluation_id": "e", "method_id": id, "score": 50.0, "reason": "r"} for id in methods],
            )
        shown = await ask(shared.db, "methods", id="e", most=100)

    assert [each["method_id"] for each in shown] == methods
    assert len(methods) == 10
    assert all(each["example"].startswith("An example, not a report. ") for each in shown)


@pytest.mark.spec("F-09")
def test_what_was_processed_is_a_time_and_never_a_boolean() -> None:
    migrations = Path(shared.__file__).parent / "migrations"
    columns = re.findall(
        r"^  ([a-z_]+) ([a-z]+)", "\n".join(each.read_text("utf-8") for each in migrations.glob("*.sql")), re.MULTILINE
    )

    assert len(columns) > 200
    assert [name for name, kind in columns if kind.startswith("bool") or re.match(r"(is|was|has)_", name)] == []
    assert {"enriched_at", "scanned_at", "last_searched_at"} <= {name for name, _ in columns}
