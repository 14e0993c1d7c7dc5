"""The border for text: what comes from outside is made harmless here, once, and stays readable in every script."""

from __future__ import annotations

import re
import unicodedata

TITLE_CHARACTERS_MAX = 300  # the longest names of old apps have 255
PROSE_CHARACTERS_MAX = 20_000  # five times what a description may have
URL_CHARACTERS_MAX = 2_048
ACCENTS_MAX = 30  # on one letter

# Control characters, halves of characters, what is no character at all, and what is meant for the start of a file.
_UNWANTED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\ufeff\u200b\u2060"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0010fffe\U0010ffff"
    # Embeddings, overrides and isolates turn around what stands next to them, even outside the text. Letters written
    # from right to left need none of them, and the marks that a neighbour cannot feel (U+200E, U+200F, U+061C) stay.
    "\u202a-\u202e\u2066-\u2069]"
)
_HEAPED = re.compile(r"[^\w\x00-\x7f]{31,}")  # no letters: accents, or harmless pictures
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_URL = re.compile(r"https?://[^\s\"'<>\\^`{|}\x00-\x20\x7f-\xa0]+", re.IGNORECASE)


def cleaned(value: object, *, characters_max: int = TITLE_CHARACTERS_MAX, lines: bool = False) -> str | None:
    """Text without what harms a screen, a table or a neighbour; None if nothing is left that one could see.

    On one line unless `lines` keeps the line ends. Whatever is no string was not said.
    """
    if not isinstance(value, str):
        return None
    if len(value) <= characters_max and value.isascii() and value.isprintable():
        return " ".join(value.split()) or None  # as most are
    # What is taken out may shrink the text, so more is looked at than is kept, but not all of a book.
    text = value if len(value) <= 4 * characters_max else value[: 4 * characters_max]
    # Nothing that is unwanted is printable, and to ask for that takes no time.
    if not text.replace("\n", "").isprintable():
        text = _UNWANTED.sub("", _LINE_END.sub("\n", text))
    if not text.isascii():
        text = unicodedata.normalize("NFC", _thinned(text))
    text = _paragraphs(text) if lines else " ".join(text.split())
    text = _cut(text, characters_max)
    seen = bool(text) if text.isascii() else any(map(_is_seen, text))
    return text if seen else None


def prose(value: object) -> str | None:
    """A text of several lines."""
    return cleaned(value, characters_max=PROSE_CHARACTERS_MAX, lines=True)


def address(value: object) -> str | None:
    """A URL that leads to the web and nowhere else. One that is too long leads nowhere."""
    if not isinstance(value, str) or len(value) > URL_CHARACTERS_MAX:
        return None
    text = value.strip()
    return text if _URL.fullmatch(text) and text.isprintable() else None


def _paragraphs(text: str) -> str:
    """Lines without blanks around them, and at most one empty line between two."""
    text = "\n".join([" ".join(line.split()) for line in text.split("\n")]).strip()
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text


def _cut(text: str, characters_max: int) -> str:
    """Not in the middle of a letter with its accents, nor of an emoji that is put together from several."""
    if len(text) <= characters_max:
        return text
    end = characters_max
    while end > 0 and (_belongs_to_the_left(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[: end or characters_max].rstrip()


def _belongs_to_the_left(letter: str) -> bool:
    return unicodedata.combining(letter) > 0 or letter in "\u200d\ufe0e\ufe0f" or "\U0001f3fb" <= letter <= "\U0001f3ff"


def _thinned(text: str) -> str:
    """At most thirty accents on a letter, more than any language has: sorting a tower of them takes quadratic time."""
    # Every accent takes two bytes or more, so most texts need not be searched for a tower.
    tall = len(text.encode()) - len(text) > ACCENTS_MAX
    return _HEAPED.sub(_thin, text) if tall and _HEAPED.search(text) else text


def _thin(heap: re.Match[str]) -> str:
    kept: list[str] = []
    accents = 0
    for letter in heap[0]:
        accents = accents + 1 if unicodedata.combining(letter) else 0
        if accents <= ACCENTS_MAX:
            kept.append(letter)
    return "".join(kept)


def _is_seen(letter: str) -> bool:
    kind = unicodedata.category(letter)
    return kind[0] not in "ZM" and kind not in ("Cc", "Cf", "Cs")
