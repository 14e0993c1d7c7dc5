"""What an app is called: in thirty characters, in several scripts, and sometimes to harm whoever shows or stores it."""

from __future__ import annotations

from penstock_systems.standins.appstore.words import MODIFIERS, TRANSLATIONS

TITLE_CHARACTERS_MAX = 30
OLD_TITLE_CHARACTERS_MAX = 255  # once it was that many
OLD_BEFORE = -3_400  # days from day 0: who came earlier may have kept a long title
OLD_SHARE = 0.31  # of them did
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


def title(luck: int, brand: str, keyword: str, modifier: str, released: int) -> str:
    first, second = keyword.capitalize(), modifier.capitalize()
    part = (luck & 0xFFFF) / 0x10000
    if released < OLD_BEFORE and part < OLD_SHARE:
        return LONG.format(brand, first, second)[: min(OLD_TITLE_CHARACTERS_MAX, 31 + (luck >> 16) % 90)].rstrip()
    # A hostile title is kept whole: cut short it would do no harm.
    if part > 1 - HOSTILE_SHARE:
        text = HOSTILE[(luck >> 16) % len(HOSTILE)].format(brand, first)
        if len(text) <= TITLE_CHARACTERS_MAX:
            return text
    for form in (FORMS[(luck >> 16) % len(FORMS)], "{0}: {1}", "{0}"):
        if len(text := form.format(brand, first, second)) <= TITLE_CHARACTERS_MAX:
            return text
    return brand[:TITLE_CHARACTERS_MAX]


def subtitle(luck: int, first: str, second: str, modifier: str) -> str | None:
    """One app in five has none."""
    if luck % 5 == 0:
        return None
    text = SUBTITLES[(luck >> 8) % len(SUBTITLES)].format(first, second, modifier).capitalize()
    return text if len(text) <= TITLE_CHARACTERS_MAX else second.capitalize()


def worded(luck: int, modifier: int) -> str:
    """The modifier as an app writes it: now and then in a script other than Latin."""
    if luck % 100 < 12:
        return TRANSLATIONS[(luck >> 8) % len(TRANSLATIONS)][modifier % len(TRANSLATIONS[0])]
    return MODIFIERS[modifier]
