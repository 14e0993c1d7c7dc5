"""A small market as the stages would leave it: apps, keywords, markets that moved, evaluations, and hostile titles.

Everything follows from the numbers below, so two fillings are the same to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import penstock as ps

NOW = "2026-01-06 18:00:00"
DAYS = [f"2026-01-{day:02d}" for day in range(1, 7)]

# What strangers call their apps. Each has to be stored as it is, and shown so that it does nothing.
HOSTILE = (
    "<script>alert('habit')</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("https://evil.example","free")',
    "+1 habit -2 @cmd|' /C calc'!A0",
    "عادات يومية",
    "abc\u202edcba\u2066 habits",
    "bell\x07 and \x1b[31mred\x1b[0m",
    "👩‍👩‍👧 habits 🇯🇵",
    'two\r\nlines, "quoted"',
    "[bold red]habits[/] & more",
    "]]><!-- habit --></svg></style>",
    "W" * 300,
)


@dataclass(frozen=True)
class Theme:
    """A market: its number, name and words, and what its agents found."""

    id: int
    name: str
    words: tuple[str, ...]
    demand: float
    competitiveness: float
    fragmentation: float
    apps: int

    @property
    def score(self) -> float:
        return round(0.4 * self.demand + 0.35 * (100 - self.competitiveness) + 0.25 * self.fragmentation, 2)


THEMES = (
    Theme(101, "habit tracker", ("habit tracker", "daily habits", "routine planner", "streak"), 88, 41, 86, 16),
    Theme(102, "plant care", ("plant care", "water reminder plants", "plant identifier"), 74, 38, 83, 11),
    Theme(103, "budget planner", ("budget planner", "expense tracker", "bills organizer", "money"), 93, 78, 70, 14),
    Theme(104, "sleep sounds", ("sleep sounds", "white noise", "rain sounds"), 81, 66, 74, 12),
    Theme(105, "guitar tuner", ("guitar tuner", "ukulele tuner", "chromatic tuner"), 58, 71, 41, 8),
    Theme(106, "dog training", ("dog training", "puppy clicker"), 52, 29, 88, 6),
    Theme(107, "intermittent fasting", ("intermittent fasting", "fasting timer", "16 8 fasting"), 79, 74, 52, 10),
    Theme(108, "birdsong identification", ("bird identifier", "birdsong"), 47, 55, 38, 5),
)
NEIGHBOURS = (
    (101, 103, 0.42),
    (101, 104, 0.31),
    (101, 107, 0.55),
    (102, 106, 0.18),
    (104, 107, 0.27),
    (102, 108, 0.22),
)
METHODS = (
    ("search", "Store search", "Own the words that people type."),
    ("short-video", "Short videos", "Show the first minute of use."),
    ("community", "Communities", "Answer where people ask already."),
)
EVALUATED = {101: "build", 102: "build", 106: "explore", 103: "avoid"}


def everything() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Rows by table, in an order in which they can be inserted."""
    apps = list(_apps())
    yield "app_registry", apps
    yield "developers", list(_developers(apps))
    yield "crawl_keywords", list(_keywords())
    yield "crawl_rankings", list(_rankings(apps))
    yield from _charts(apps)
    yield "app_reviews", list(_reviews(apps))
    yield "app_version_history", list(_versions(apps))
    yield "app_snapshots", list(_days(apps))
    yield "agent_ledger", list(_findings())
    yield from _markets(apps)
    yield from _evaluations(apps)
    yield "crawl_log", [
        {"id": f"crawl-{day}", "phase": "category_scan", "stats": "{}", "started_at": f"{day} 06:00:00",
         "finished_at": f"{day} 06:00:41"}
        for day in DAYS
    ]  # fmt: skip


async def fill(app: ps.App) -> None:
    """Puts it all into the app's database, in one unit."""
    async with app.unit():
        for table, rows in everything():
            for alike in {tuple(row): None for row in rows}:  # a column that a row leaves out has its default
                app.db.insert_many(table, [row for row in rows if tuple(row) == alike])


def ids_of(theme: Theme) -> list[int]:
    return [theme.id * 1_000 + number for number in range(theme.apps)]


def _apps() -> Iterator[dict[str, Any]]:
    for theme in THEMES:
        for number, id in enumerate(ids_of(theme)):
            hostile = HOSTILE[number - 2] if theme.id == 101 and 2 <= number < 2 + len(HOSTILE) else None
            ratings = int(theme.demand * 900 / (number + 1) ** 1.3) + 3
            title = (
                hostile
                or f"{theme.words[number % len(theme.words)].title()} {'Pro Go Lite Now Plus'.split()[number % 5]}"
            )
            yield {
                "track_id": id,
                "bundle_id": f"com.example.a{id}",
                "track_name": title,
                "seller_name": f"{theme.name.title()} Studio {number % 4}",
                "average_rating": round(4.8 - 0.11 * number, 2),
                "rating_count": ratings,
                "primary_genre": "Health & Fitness" if theme.id % 2 else "Lifestyle",
                "price": 0.0 if number % 3 else 2.99,
                "formatted_price": "Free" if number % 3 else "$2.99",
                "track_view_url": f"https://apps.example.com/us/app/id{id}" if number % 5 else "javascript:alert(1)",
                "description": f"A {theme.name} for every day.\nWith reminders.",
                "developer_id": theme.id * 10 + number % 4,
                "subtitle": theme.name,
                "rating_histogram": json.dumps(
                    [ratings // 2, ratings // 4, ratings // 8, ratings // 16, ratings // 16]
                ),
                "similar_apps": json.dumps(ids_of(theme)[:3]),
                "languages": '["en", "de"]',
                "version": f"{1 + number % 3}.{number}",
                "first_seen_at": f"{DAYS[number % 5]} 0{number % 10}:12:00",
                "last_seen_at": f"{DAYS[5]} 17:30:00",
                "enriched_at": f"{DAYS[5]} 03:00:00",
                "enrichment_source": "failed" if number == 9 else "scraper" if number % 4 else "itunes",
                "competitiveness_score": round(max(2.0, theme.competitiveness + 22 - 5 * number), 2),
                "scored_at": f"{DAYS[5]} 03:05:00",
                "rating_velocity_7d": round(ratings / 90 - number, 2),
            }
    for number in range(20):  # found, and not looked at yet
        yield {
            "track_id": 900_000 + number,
            "track_name": f"Found Yesterday {number}",
            "rating_count": number * 7,
            "first_seen_at": f"{DAYS[5]} 12:00:00",
            "last_seen_at": f"{DAYS[5]} 12:00:00",
        }


def _developers(apps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen = {app["developer_id"]: app["seller_name"] for app in apps if "developer_id" in app}
    for id, name in seen.items():
        yield {"developer_id": id, "name": name, "first_seen_at": f"{DAYS[0]} 08:00:00"}


def _keywords() -> Iterator[dict[str, Any]]:
    for theme in THEMES:
        for number, word in enumerate(theme.words):
            yield {
                "keyword": word,
                "source": "seed" if number == 0 else "title",
                "status": "searched",
                "priority": 10 - number,
                "demand": round(theme.demand - 9 * number, 2),
                "app_count": theme.apps - number,
                "last_searched_at": f"{DAYS[4]} 09:00:00",
                "created_at": f"{DAYS[0]} 07:0{number}:00",
            }
    yield {"keyword": "=2+5", "source": "hints", "status": "pending", "created_at": f"{DAYS[5]} 07:00:00"}
    yield {
        "keyword": "عادات",
        "source": "title",
        "status": "pending",
        "priority": 3,
        "created_at": f"{DAYS[5]} 07:00:00",
    }


def _rankings(apps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for theme in THEMES:
        for shift, word in enumerate(theme.words):
            ranked = ids_of(theme)[shift:] + ids_of(theme)[:shift]
            for rank, id in enumerate(ranked[:10], start=1):
                yield {"keyword": word, "track_id": id, "rank": rank, "crawled_at": f"{DAYS[4]} 09:00:00"}


def _charts(apps: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    listed = [app["track_id"] for app in apps if app.get("enrichment_source") == "scraper"][:30]
    history: list[dict[str, Any]] = []
    for day_number, day in enumerate(DAYS):
        for place, id in enumerate(listed):
            rank = (place * 7 + day_number * 3) % len(listed) + 1
            history.append(
                {"scan_id": f"scan-{day}", "track_id": id, "collection": "topfreeapplications", "category": "6013",
                 "rank": rank, "snapshot_at": f"{day} 06:00:00"}
            )  # fmt: skip
    yield "chart_position_history", history
    yield (
        "chart_positions",
        [
            {name: row[name] for name in row if name != "scan_id"}
            for row in history
            if row["scan_id"] == f"scan-{DAYS[5]}"
        ],
    )


def _reviews(apps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for app in apps[:5]:
        for number, text in enumerate(("Keeps me going.", "Crashes when I add a fifth habit.", "<b>too</b> many ads")):
            yield {
                "review_id": f"r-{app['track_id']}-{number}", "track_id": app["track_id"], "rating": 5 - 2 * number,
                "title": "Review", "body": text, "sentiment": round(0.6 - 0.5 * number, 2),
                "reviewed_at": f"{DAYS[number]} 10:00:00", "seen_at": f"{DAYS[5]} 03:00:00",
            }  # fmt: skip


def _versions(apps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for app in apps[:3]:
        for number in range(3):
            yield {
                "track_id": app["track_id"], "version": f"1.{number}", "released_at": f"{DAYS[number]} 00:00:00",
                "notes": "Bugs were fixed.",
            }  # fmt: skip


def _days(apps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for app in apps[:10]:
        for number, day in enumerate(DAYS):
            yield {
                "track_id": app["track_id"], "day": day, "rating_count": app["rating_count"] - 40 * (5 - number),
                "average_rating": app["average_rating"], "rank": 9 - number, "snapshot_at": f"{day} 06:00:00",
            }  # fmt: skip


def _findings() -> Iterator[dict[str, Any]]:
    for theme in THEMES:
        for agent, score in (("demand", theme.demand), ("fragmentation", theme.fragmentation)):
            yield {
                "id": f"{agent}-{theme.id}", "agent": agent, "version": "1", "subject_type": "cluster",
                "subject_id": str(theme.id), "score": score, "explanation": f"{agent} of {theme.name} is {score}",
                "inputs": "{}", "inputs_hash": f"{agent}{theme.id}", "created_at": f"{DAYS[5]} 12:10:00",
            }  # fmt: skip


def _markets(apps: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    measures = ("demand", "competitiveness", "fragmentation")
    yield "market_clusters", [
        {
            "id": theme.id, "lineage_id": theme.id, "name": theme.name, "opportunity_score": theme.score,
            "apps": theme.apps, "keywords": len(theme.words), "first_seen_at": f"{DAYS[0]} 12:00:00",
            "computed_at": f"{DAYS[5]} 12:00:00", "ended_at": None,
        } | {name: getattr(theme, name) for name in measures}
        for theme in THEMES
    ] + [
        {
            "id": 190, "lineage_id": 190, "name": "not scored yet", "opportunity_score": None, "apps": 2, "keywords": 1,
            "first_seen_at": f"{DAYS[5]} 12:00:00", "computed_at": f"{DAYS[5]} 12:00:00", "ended_at": None,
        },
        {
            "id": 191, "lineage_id": 191, "name": "gone", "opportunity_score": 99.0, "apps": 2, "keywords": 1,
            "first_seen_at": f"{DAYS[0]} 12:00:00", "computed_at": f"{DAYS[1]} 12:00:00",
            "ended_at": f"{DAYS[2]} 12:00:00",
        },
    ]  # fmt: skip
    yield (
        "cluster_apps",
        [
            {"cluster_id": theme.id, "track_id": id, "weight": round(1 / (number + 1), 4)}
            for theme in THEMES
            for number, id in enumerate(ids_of(theme))
        ],
    )
    yield (
        "cluster_keywords",
        [
            {"cluster_id": theme.id, "keyword": word, "weight": round(1 / (number + 1), 4)}
            for theme in THEMES
            for number, word in enumerate(theme.words)
        ],
    )
    yield "cluster_snapshots", [
        {
            "cluster_id": theme.id, "snapshot_at": f"{day} {hour:02d}:00:00",
            "opportunity_score": round(theme.score + (theme.id % 3 - 1) * 20 * (1 - (3 * number + hour // 6) / 17), 2),
            "apps": theme.apps, "keywords": len(theme.words),
        } | {name: getattr(theme, name) for name in measures}
        for theme in THEMES
        for number, day in enumerate(DAYS)
        for hour in (0, 6, 12)
    ]  # fmt: skip
    yield "cluster_relations", [{"a": a, "b": b, "kind": "overlap", "weight": weight} for a, b, weight in NEIGHBOURS]
    yield "design_concepts", [
        {
            "id": f"concept-{theme.id}", "cluster_id": theme.id, "title": f"A quieter {theme.name}",
            "body": "One screen, no account, done in ten seconds.", "made_by": "offline analyst 1",
            "created_at": f"{DAYS[5]} 12:20:00",
        }
        for theme in THEMES if theme.fragmentation > 70
    ]  # fmt: skip


def _evaluations(apps: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    themes = [theme for theme in THEMES if theme.id in EVALUATED]
    ids = {theme.id: f"evaluation-{theme.id}" for theme in themes}
    at = f"{DAYS[5]} 13:00:00"
    yield "marketing_methods", [{"id": id, "name": name, "body": body} for id, name, body in METHODS]
    yield "opportunity_evaluations", [
        {
            "id": f"{ids[theme.id]}{suffix}", "cluster_id": theme.id, "lineage_id": theme.id, "name": theme.name,
            "verdict": EVALUATED[theme.id] if not suffix else "explore", "score": theme.score - off,
            "reason": f"Many ask for it (demand {theme.demand:.0f}), and {theme.apps} apps share the ratings: none of them "
            f"leads. The strongest competitor scores {theme.competitiveness + 22:.0f} of 100.",
            "facts": json.dumps({"demand": theme.demand, "apps": theme.apps}), "made_by": "offline analyst 1",
            "run_id": f"run-{theme.id}", "created_at": when,
        }
        for theme in themes
        for suffix, off, when in (("-earlier", -20, f"{DAYS[1]} 13:00:00"), ("", 0, at))
    ]  # fmt: skip
    yield (
        "opportunity_reference_apps",
        [
            {"evaluation_id": ids[theme.id], "track_id": id, "role": role}
            for theme in themes
            for id, role in zip(ids_of(theme)[:4], ("leader", "challenger", "newcomer", "newcomer"), strict=True)
        ],
    )
    yield "opportunity_method_scores", [
        {
            "evaluation_id": ids[theme.id], "method_id": id, "score": 80.0 - 20 * number,
            "reason": f"{len(theme.words)} words are asked for.",
        }
        for theme in themes
        for number, (id, _, _) in enumerate(METHODS)
    ]  # fmt: skip
    yield "debate_reports", [
        {
            "id": f"debate-{theme.id}", "evaluation_id": ids[theme.id], "transcript": "for ... against ...",
            "summary": f"For: demand for {theme.name} is steady. Against: the first page is taken. For won by a little.",
            "created_at": at,
        }
        for theme in themes
    ]  # fmt: skip
    yield (
        "debate_messages",
        [
            {"report_id": f"debate-{theme.id}", "seq": seq, "agent": agent, "text": text}
            for theme in themes
            for seq, (agent, text) in enumerate(
                (("advocate", "People ask for it every day."), ("sceptic", "<i>So does everybody else.</i>"))
            )
        ],
    )
    yield "market_tips", [
        {
            "id": f"tip-{theme.id}-{number}", "cluster_id": theme.id, "evaluation_id": ids[theme.id], "text": text,
            "created_at": at,
        }
        for theme in themes
        for number, text in enumerate((f"Put “{theme.words[0]}” into the subtitle.", "Ask for a rating on the third day."))
    ]  # fmt: skip
    yield "marketing_playbooks", [
        {"id": f"playbook-{theme.id}", "evaluation_id": ids[theme.id], "body": "Week 1: one page.\nWeek 2: ten users.",
         "created_at": at}
        for theme in themes
    ]  # fmt: skip
