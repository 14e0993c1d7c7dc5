"""What an app is called: in thirty characters, in several scripts, and sometimes to harm whoever shows or stores it."""

from __future__ import annotations

from penstock_systems.standins.appstore.chance import Draws
from penstock_systems.standins.appstore.words import TRANSLATIONS

TITLE_CHARACTERS_MAX = 30
OLD_TITLE_CHARACTERS_MAX = 255  # once it was that many
OLD_BEFORE = -3_400  # days from day 0: who came earlier may have kept a long title
HOSTILE_SHARE = 0.015

FORMS = ("{0}: {1} {2}", "{0} - {1} {2}", "{1} {2} {0}", "{2} {1}: {0}", "{0} {1} {2}", "{1} {2} by {0}")
SUBTITLES = ("{0} & {1} {2}", "simple {1} {2}", "{0}, {1} and more", "your {0} {2}", "{1}, {0} & {2}")
LONG = "{0} - {1} {2} for everybody who needs {1}, {2} and much more (also without a connection, and free for ever)"
# Formulas for a spreadsheet, markup, quotes, letters that turn the writing round, letters that cannot be seen, pictures.
HOSTILE = (
    '=HYPERLINK("//x","{0}")',
    "+{0}+{1}",
    "@{0} {1}",
    "-{0} {1}",
    "<script>{0}()</script>",
    "<b>{0}</b> {1} &amp;",
    "{0}' or '1'='1",
    '"{0}" {1}; --',
    "{0} \u202e{1}\u202c",
    "\u200f{0} {1}",
    "{0}\u200b {1}\ufeff",
    "{0}\a\x1b[31m {1}",
    "{0}\x00 {1}",
    "{0}\r\n{1}",
    "{0} 👩‍👩‍👧‍👦🏳️‍🌈 {1}",
    "{0} İ\u0338ß {1}",
    "{0} \\u0041 %s {{}} {1}",
)


def title(draws: Draws, brand: str, keyword: str, modifier: str, released: int) -> str:
    first, second = keyword.capitalize(), modifier.capitalize()
    if released < OLD_BEFORE and draws.share() < 0.31:
        return LONG.format(brand, first, second)[: min(OLD_TITLE_CHARACTERS_MAX, 31 + draws.below(90))].rstrip()
    # A hostile title is kept whole: cut short it would do no harm.
    if draws.share() < HOSTILE_SHARE and len(text := draws.pick(HOSTILE).format(brand, first)) <= TITLE_CHARACTERS_MAX:
        return text
    for form in (draws.pick(FORMS), "{0}: {1}", "{0}"):
        if len(text := form.format(brand, first, second)) <= TITLE_CHARACTERS_MAX:
            return text
    return brand[:TITLE_CHARACTERS_MAX]


def subtitle(draws: Draws, first: str, second: str, modifier: str) -> str | None:
    """One app in five has none."""
    if draws.share() < 0.2:
        return None
    text = draws.pick(SUBTITLES).format(first, second, modifier).capitalize()
    return text if len(text) <= TITLE_CHARACTERS_MAX else second.capitalize()


def worded(draws: Draws, modifiers: list[str], modifier: int) -> str:
    """The modifier as this app writes it: now and then in a script other than Latin."""
    if draws.share() < 0.12:
        return draws.pick(TRANSLATIONS)[modifier % len(TRANSLATIONS[0])]
    return modifiers[modifier]
