"""The graph of an app as an SVG: a column for each step of a chain, a box for each part, coloured by its service."""

from __future__ import annotations

from html import escape
from typing import Any

from penstock.views.graph import KINDS
from penstock.views.view import Row

WIDTH, HEIGHT, GAP, ACROSS, MARGIN = 190, 44, 16, 90, 24
SHOWN = 26  # characters of a name
COLOURS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#cffafe", "#ffedd5", "#e2e8f0")
OF_THE_APP = "#f1f5f9"


def svg(row: Row) -> str:
    """Return a drawing that needs no script and no font of its own."""
    names = [f"{kind}:{each['name']}" for kind in KINDS for each in row[f"{kind}s"]]
    edges = [(each["from"], each["to"]) for each in row["edges"] if each["from"] in names and each["to"] in names]
    calls = [
        (each["from"], _first_of(row, names, each["to"].partition(":")[2]))
        for each in row["edges"]
        if each["from"] in names and each["to"].startswith("service:")
    ]
    columns = _columns(names, edges)
    colours = {each["name"]: COLOURS[at % len(COLOURS)] for at, each in enumerate(row["services"])}
    order = list(colours)
    places: dict[str, tuple[int, int]] = {}
    for at, column in enumerate(columns):
        owner = row["owners"].get
        column.sort(key=lambda name: (order.index(owner(name)) if owner(name) in order else -1, names.index(name)))
        for line, name in enumerate(column):
            places[name] = (MARGIN + at * (WIDTH + ACROSS), 2 * MARGIN + 20 + line * (HEIGHT + GAP))
    width = 2 * MARGIN + len(columns) * (WIDTH + ACROSS) - ACROSS
    height = 3 * MARGIN + 20 + max((len(column) for column in columns), default=0) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{MARGIN}" y="{MARGIN + 4}" font-size="15" font-weight="600" fill="#0f172a">{escape(row["app"])}</text>',
        *_legend(colours, MARGIN + 24 + 10 * len(row["app"])),
        *(_arrow(places[one], places[two], dashed=False) for one, two in edges),
        *(_arrow(places[one], places[two], dashed=True) for one, two in calls if two is not None),
        *(_box(name, places[name], colours.get(row["owners"].get(name, ""), OF_THE_APP)) for name in places),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _first_of(row: Row, names: list[str], service: str) -> str | None:
    """Return a part that stands for a service: its first route, else its first part."""
    own = [name for name in names if row["owners"].get(name) == service]
    return next((name for name in own if name.startswith("route:")), own[0] if own else None)


def _columns(names: list[str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Put each part right of what uses it. A circle is cut where it is met again."""
    depth: dict[str, int] = {}

    def place(name: str, before: tuple[str, ...]) -> None:
        at = len(before)
        if name in before or depth.get(name, -1) >= at:
            return
        depth[name] = at
        for one, two in edges:
            if one == name:
                place(two, (*before, name))

    targets = {two for _, two in edges}
    for name in [*(each for each in names if each not in targets), *names]:
        if name not in depth:
            place(name, ())
    return [[name for name in names if depth[name] == at] for at in range(max(depth.values(), default=-1) + 1)]


def _legend(colours: dict[str, str], x: int) -> list[str]:
    parts: list[str] = []
    for name, colour in colours.items():
        parts.append(f'<rect x="{x}" y="{MARGIN - 7}" width="12" height="12" rx="2" fill="{colour}" stroke="#94a3b8"/>')
        parts.append(f'<text x="{x + 17}" y="{MARGIN + 4}" fill="#334155">{escape(name)}</text>')
        x += 34 + 7 * len(name)
    return parts


def _box(name: str, place: tuple[int, int], colour: str) -> str:
    kind, _, text = name.partition(":")
    x, y = place
    shown = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
    return (
        f'<g><title>{escape(kind)} {escape(text)}</title><rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
        f'fill="{colour}" stroke="#94a3b8"/><text x="{x + 10}" y="{y + 17}" font-size="10" fill="#475569">{kind}</text>'
        f'<text x="{x + 10}" y="{y + 33}" fill="#0f172a">{escape(shown)}</text></g>'
    )


def _arrow(one: tuple[int, int], two: tuple[int, int], *, dashed: bool) -> str:
    right = two[0] > one[0]
    x1, y1 = one[0] + (WIDTH if right or two[0] == one[0] else 0), one[1] + HEIGHT // 2
    x2, y2 = two[0] + (0 if right else WIDTH), two[1] + HEIGHT // 2
    bend: Any = (x2 - x1) // 2 if right else 46 if two[0] == one[0] else -46
    middle = f"{x1 + bend} {y1} {x2 - bend if right else x2 + 46} {y2}"
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<path d="M{x1} {y1}C{middle} {x2} {y2}" fill="none" stroke="#64748b"{dashes} marker-end="url(#arrow)"/>'
