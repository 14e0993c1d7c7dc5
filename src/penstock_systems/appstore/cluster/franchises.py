"""Franchises: a market whose users look for a name that somebody owns. A name is written with a capital in the middle of a
sentence, by whoever writes it; a word like "budget" is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from penstock_systems.appstore.app import db
from penstock_systems.appstore.cluster.market import Market

MARKETS_LOOKED_AT = 300  # the best ones
NAMES_TRIED = 3  # of a market
TEXTS_READ = 15  # descriptions of a market's most rated apps
TEXTS_LEAST, USES_LEAST = 3, 4  # in which a name is, and how often it is used in a sentence
CAPITAL_SHARE = 0.8
# Names that nobody owns. Abbreviations such as GPS are not taken for names at all.
COMMON_NAMES = frozenset(
    """
    american android arabic bible brazilian british chinese christmas easter english european french german greek halloween
    hebrew hindi indian internet ipad iphone islamic italian italy japanese korean latin london monday muslim olympic olympics
    paris portuguese quran ramadan russian santa saturday spanish sunday thanksgiving turkish vegas vietnamese york
    """.split()
)

DESCRIBED = """
select track_id, track_name, description
from app_registry
where track_id in (:id0, :id1, :id2, :id3, :id4, :id5, :id6, :id7, :id8, :id9, :id10, :id11, :id12, :id13, :id14)
and description is not null
"""


async def with_franchises(markets: Sequence[Market]) -> list[Market]:
    """The same markets, each with the franchise that it belongs to, if there is one."""
    best = sorted(range(len(markets)), key=lambda at: -markets[at].score.opportunity)[:MARKETS_LOOKED_AT]
    found = list(markets)
    for at in best:
        if markets[at].names:
            texts = await _texts(markets[at])
            found[at] = owner(markets[at], texts.get)
    return found


def owner(market: Market, text: Callable[[int], str | None]) -> Market:
    """The same market with its franchise, if it has one. `text` is what an app's maker writes, without the app's title."""
    read = [said for each in list(market.apps)[:TEXTS_READ] if (said := text(each))] if market.names else []
    return replace(market, franchise=next((name for name in market.names[:NAMES_TRIED] if is_owned(name, read)), None))


def is_owned(name: str, texts: Iterable[str]) -> bool:
    """Whether these texts write it like a name wherever it stands in a sentence."""
    if name in COMMON_NAMES:
        return False
    # After a word in lower case: neither a beginning, nor a heading, nor the end of a longer name.
    used = re.compile(rf"(?<![^\s(])[a-z]+,? ({re.escape(name)})\b", re.IGNORECASE)
    capital = uses = holding = 0
    for text in texts:
        said = [match[1] for match in used.finditer(text) if match[0][0].islower()]
        holding += bool(said)
        uses += len(said)
        capital += sum(word[0].isupper() and not word.isupper() for word in said)
    return holding >= TEXTS_LEAST and uses >= USES_LEAST and capital >= CAPITAL_SHARE * uses


async def _texts(market: Market) -> dict[int, str]:
    """What their makers write of the most visible apps, without the apps' own titles."""
    ids = list(market.apps)[:TEXTS_READ]
    padded = ids + ids[-1:] * (TEXTS_READ - len(ids))
    rows = await db.rows(DESCRIBED, {f"id{place}": each for place, each in enumerate(padded)})
    return {row.track_id: row.description.replace(row.track_name, " ") for row in rows}
