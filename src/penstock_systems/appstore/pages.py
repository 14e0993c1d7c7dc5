"""The pages of the App Store system in the dashboard: its report, one opportunity, one market."""

from __future__ import annotations

import penstock as ps
from penstock.pages import Column, Section
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.reading.shown import calm

OPPORTUNITIES = [
    Column("name", "market", of=lambda row: calm(row["name"], 60), link="/opportunities/{id}"),
    Column("score", "score", "number"),
    Column("verdict", "verdict", "state"),
    Column("reason", "why", "prose"),
]
MARKETS = [
    Column("name", "market", of=lambda row: calm(row["name"], 60), link="/markets/{id}"),
    Column("opportunity_score", "score", "number"),
    Column("demand", "demand", "number"),
    Column("competitiveness", "rivals", "number"),
    Column("fragmentation", "spread", "number"),
    Column("apps", "apps", "count"),
    Column("keywords", "keywords", "count"),
]
APPS = [
    Column("track_name", "app", of=lambda row: calm(row["track_name"], 60)),
    Column("rating_count", "ratings", "count"),
    Column("average_rating", "stars", "number"),
    Column("rating_velocity_7d", "ratings a day", "number"),
]
FACTS = [
    *(Column("score", "score", "number"), Column("verdict", "verdict", "state"), Column("made_by", "made by")),
    *(Column("reason", "why", "prose"), Column("created_at", "at", "exact_time")),
    Column("market", "market", of=lambda row: row["cluster_id"], link="/markets/{cluster_id}"),
]


@app.page("/report", "Report", OPPORTUNITIES, every=10, group="App Store")
async def show_report() -> list[Section]:
    moved = await answers.trends(db, most=10)
    none = "No market has been evaluated yet. The best markets are evaluated after each clustering."
    return [
        Section(title="Opportunities", rows=await answers.opportunities(db, most=20), empty=none),
        Section(
            title="Markets",
            rows=await answers.clusters(db, most=50),
            columns=MARKETS,
            empty="Nothing was clustered yet.",
        ),
        Section(title="Apps that win ratings", rows=moved["rising_apps"], columns=APPS, empty="No app moved yet."),
    ]


@app.page("/opportunities/{id}", "Opportunity", FACTS, group="App Store")
async def show_opportunity(id: str) -> list[Section]:
    found = await answers.opportunity(db, id)
    if found is None:
        raise ps.HttpError(404, f"There is no evaluation {id[:60]!r}.")
    methods = [Column("name", "way to market it"), Column("score", "score", "number"), Column("reason", "why", "prose")]
    parts = [
        Section(title=calm(found["name"], 120), facts=found),
        Section(title="Reference apps", rows=found["reference_apps"], columns=APPS, empty="It names no app."),
    ]
    tips = [{"text": each["text"]} for each in found["tips"]]
    parts.append(Section(title="Tips", rows=tips, columns=[Column("text", "tip", "prose")], empty="There are none."))
    if found["methods"]:
        parts.append(Section(title="Ways to market it", rows=found["methods"], columns=methods))
    parts += [Section(title="Playbook", body=each["body"]) for each in found["playbooks"]]
    return parts


@app.page("/markets/{id}", "Market", MARKETS, group="App Store")
async def show_market(id: int) -> list[Section]:
    found = await answers.cluster(db, id)
    if found is None:
        raise ps.HttpError(404, f"There is no market {id}.")
    words = [Column("keyword", "keyword"), Column("demand", "demand", "number"), Column("app_count", "apps", "count")]
    return [
        Section(title=calm(found["name"], 120), facts=found),
        Section(title="Apps", rows=found["members"], columns=APPS),
        Section(title="Keywords", rows=found["words"], columns=words),
    ]
