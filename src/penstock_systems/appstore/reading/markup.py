"""HTML that cannot be got wrong: whatever is not markup already is escaped, and what strangers wrote stands apart."""

from __future__ import annotations

from html import escape

from penstock_systems.appstore.reading.shown import calm, harmless

VOID = frozenset({"meta", "link", "br"})
ALONE = frozenset({"circle", "line", "path", "polyline", "polygon", "rect"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Inside = str | int | float | None


def tag(name: str, /, *inside: Inside, **attributes: Inside) -> Markup:
    """An element. `class_` is the attribute class, `stroke_width` is stroke-width; None leaves an attribute out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(harmless(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in ALONE and not inside:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>" + ("" if name in VOID else f"{joined(*inside)}</{name}>"))


def joined(*inside: Inside) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in inside if part is not None))


def apart(text: str, most: int | None = None) -> Markup:
    """What a stranger wrote: in its own direction, whatever it is, and without a say in that of its neighbours."""
    return tag("bdi", calm(text, most), dir="auto")


def _escaped(part: Inside) -> str:
    return escape("\n".join(map(harmless, part.split("\n")))) if isinstance(part, str) else escape(str(part))
