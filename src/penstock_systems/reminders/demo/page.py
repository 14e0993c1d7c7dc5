"""The page of the demonstration: one HTML file without anything from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any
from zoneinfo import ZoneInfo

from penstock_systems.reminders.demo import world

STYLE = """
:root{color-scheme:light dark;--ink:#1d2430;--dim:#5d6878;--line:#d9dee6;--back:#fff;--card:#f5f7fa;--good:#127a4b;
--bad:#b3261e;--bar:#2f6fdb}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#9aa5b4;--line:#323a46;--back:#14181e;--card:#1c222b;--good:#5fce97;
--bad:#ff8a80;--bar:#7aa7f7}}
*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);margin:0}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.15rem;margin:2.2rem 0 .6rem}p.lead{color:var(--dim);margin:.2rem 0 1.2rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.8rem}
.tile{background:var(--card);border-radius:.6rem;padding:.8rem 1rem}.tile b{display:block;font-size:1.7rem;line-height:1.2}
.tile span{color:var(--dim);font-size:.9rem}.good b{color:var(--good)}.bad b{color:var(--bad)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--line);white-space:nowrap}
td.n,th.n{text-align:right}th{color:var(--dim);font-weight:600;font-size:.85rem}
pre{background:var(--card);padding:.8rem 1rem;border-radius:.6rem;white-space:pre-wrap;
overflow-wrap:anywhere;font-size:.85rem}
svg{width:100%;height:auto}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
"""
COLUMNS = ("promised", "delivered", "retrying", "given_up", "unknown", "suppressed")


def html(found: dict[str, Any]) -> str:
    """The page of what `report` has gathered."""
    figures, truth = found["figures"], found["truth"]
    tiles = [
        (truth["doubled"], "delivered twice", "good" if not truth["doubled"] else "bad"),
        (truth["lost"], "recorded as sent and never arrived", "good" if not truth["lost"] else "bad"),
        (len(found["kills"]), "kills of the process that sends", ""),
        (truth["arrived"], "arrived, by the receivers' count", ""),
        (sum(row["unknown"] for row in figures["channels"].values()), "of unknown outcome, all shown", ""),
    ]
    ends = world.START + timedelta(days=world.DAYS)
    parts = [
        f"<h1>{world.DAYS} days of reminders, and {len(found['kills'])} kills</h1>",
        f'<p class="lead">{figures["reminders"]} reminders of {figures["people"]} people in 12 time zones, '
        f"{world.START:%d %B} to {ends:%d %B %Y} in virtual time, over the change of clocks on 29 March. The receivers are "
        "fake servers with faults from a seed, and write down what arrives before they answer.</p>",
        '<div class="tiles">',
        *(f'<div class="tile {tone}"><b>{number:,}</b><span>{text}</span></div>' for number, text, tone in tiles),
        "</div>",
        "<h2>What became of every notice</h2>",
        _table(
            ["channel", *(name.replace("_", " ") for name in COLUMNS)],
            [[channel, *(f"{row[name]:,}" for name in COLUMNS)] for channel, row in figures["channels"].items()],
        ),
        '<p class="lead">Given up: receivers that are gone, redirect, or have a wrong clock, and what an endpoint missed '
        "while it was switched off. Unknown: receivers that take a notice and never answer.</p>",
        "<h2>Arrivals by day</h2>",
        _bars(found["days"], found["kills"]),
        '<p class="lead">Triangles: the process was killed, half of the times right after a notice had arrived.</p>',
        "<h2>The day on which clocks leap: daily reminders at 2:30</h2>",
        _table(
            ["zone", "local time", "UTC", "channel", "result", "notices"],
            [_fire(row) for row in found["leap_day"][:14]],
        ),
        "<h2>An endpoint was switched off, and its owner told by mail</h2>",
        _table(["endpoint", "last error"], [[row["url"], row["last_error"]] for row in found["switched_off"][:6]]),
        _mail(found["owner_mail"]),
        "<h2>A digest</h2>",
        _mail(found["digest"]),
        "<h2>Why?</h2>",
        f"<pre>$ penstock reminders why ...\n{escape(chr(10).join(found['why']))}</pre>",
        f'<p class="lead">Seed {found["seed"]}. It took {found["seconds"]:.0f} seconds. The figures: report.json.</p>',
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
    title = "<title>Reminders: what arrived</title>"
    body = f"<body><main>{''.join(parts)}</main></body>"
    return f'<!doctype html><html lang="en"><head>{head}{title}<style>{STYLE}</style></head>{body}</html>'


def _table(columns: list[str], rows: list[list[str]]) -> str:
    def cell(tag: str, text: str) -> str:
        number = text.replace(",", "").isdigit() or text.replace(" ", "_") in COLUMNS
        return f"<{tag}{' class=n' if number else ''}>{escape(text)}</{tag}>"

    head = "".join(cell("th", column) for column in columns)
    body = "".join("<tr>" + "".join(cell("td", text) for text in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _fire(row: dict[str, Any]) -> list[str]:
    at = datetime.fromtimestamp(row["occurrence_at"] / 1000, UTC)
    local = at.astimezone(ZoneInfo(row["timezone"]))
    return [
        row["timezone"],
        f"{local:%H:%M %Z}",
        f"{at:%d %B %H:%M}",
        row["channel"],
        row["status"],
        str(row["notices"]),
    ]


def _mail(mail: dict[str, str] | None) -> str:
    if mail is None:
        return "<p>None in this run.</p>"
    head = f"{mail['at']}  to {mail['to']}\nSubject: {mail['subject']}"
    return f"<pre>{escape(head)}\n\n{escape(mail['text'])}</pre>"


def _bars(days: list[int], kills: list[dict[str, Any]]) -> str:
    most, width, height, left = max(1, *days), 900, 170, 34
    step = (width - left) / len(days)
    drawn = [f'<svg viewBox="0 0 {width} {height + 34}" role="img" aria-label="Arrivals by day">']
    drawn.append(f'<text x="0" y="12">{most}</text><text x="0" y="{height}">0</text>')
    for day, number in enumerate(days):
        tall, x = number / most * (height - 8), left + day * step
        drawn.append(
            f'<rect x="{x + 2:.1f}" y="{height - tall:.1f}" width="{step - 4:.1f}" height="{tall:.1f}" rx="2" '
            'fill="var(--bar)"/>'
        )
        if day in (0, 7, 14, 20, 26):
            drawn.append(f'<text x="{x + 2:.1f}" y="{height + 30}">{world.START + timedelta(days=day):%d %b}</text>')
    for kill in kills:
        passed = (datetime.fromisoformat(str(kill["at"])) - world.START) / timedelta(days=1)
        x = left + passed * step
        drawn.append(f'<path d="M{x:.1f} {height + 3} l5 9 l-10 0 z" fill="var(--bad)"/>')
    return "".join([*drawn, "</svg>"])
