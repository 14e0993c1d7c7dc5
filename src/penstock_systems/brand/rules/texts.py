"""Texts as sentences, words, numbers and graphemes, and the slug of a title."""

from __future__ import annotations

import hashlib
import re
import unicodedata

SLUG_CHARACTERS_MAX = 80
SHINGLE_WORDS = 5

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)\]]*\s+(?=[\"'\u201c\u2018(\[]?[^\W_])")
_NUMBER = re.compile(r"(?<![\w.,])[$\u20ac\u00a3]?\d[\d,]*(?:\.\d+)?\s?%?")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_JOINER, _KEYCAP = "\u200d", "\u20e3"
# Neither XML nor PostgreSQL takes these.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# A reader sees none of these, and a model reads them: reordering, spaces without width, tags, selectors of variants.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
_JOINERS = re.compile("[\u200c\u200d]")  # emoji and some scripts need them; in words they only hide one


def visible(text: str) -> str:
    """Return the text without characters that a reader cannot see, and with spaces for control characters."""
    return _INVISIBLE.sub("", _CONTROL.sub(" ", text))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    plain = unicodedata.normalize("NFKC", _JOINERS.sub("", visible(text)))
    return [word.casefold().replace("\u2019", "'") for word in _WORD.findall(plain)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text. A line break ends one too."""
    return [
        sentence.strip() for line in text.splitlines() for sentence in _SENTENCE_END.split(line) if sentence.strip()
    ]


def numbers(text: str) -> list[str]:
    """Return the numbers of a text as plain digits with their sign of money or per cent: `$1,200`, `1200 %` is `1200%`."""
    found = (re.sub(r"[,\s]", "", match) for match in _NUMBER.findall(unicodedata.normalize("NFKC", text)))
    return [number.rstrip(".") for number in found]


def slug_of(title: str) -> str:
    """Return the part of an address that stands for a title. It is never empty."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    slug = _NOT_SLUG.sub("-", plain).strip("-")[:SLUG_CHARACTERS_MAX].rstrip("-")
    return slug or "article"


def article_tag(brand_slug: str, keyword: str) -> str:
    """Return the name under which all calls for one article are paid: of its research and of its writing."""
    digest = hashlib.sha256(keyword.encode()).hexdigest()[:6]
    return f"{brand_slug}/{slug_of(keyword)[:40]}-{digest}"


def shingles(text: str) -> set[tuple[str, ...]]:
    """Return each run of five words, as a set."""
    found = words(text)
    return {tuple(found[at : at + SHINGLE_WORDS]) for at in range(len(found) - SHINGLE_WORDS + 1)}


def graphemes(text: str) -> list[str]:
    """Return the characters as a reader counts them: accents, flags and joined emoji count once."""
    found: list[str] = []
    for character in text:
        if found and _extends(found[-1], character):
            found[-1] += character
        else:
            found.append(character)
    return found


def cut(text: str, most: int) -> str:
    """Return the text with at most this number of graphemes, cut at a word and marked with an ellipsis."""
    parts = graphemes(text)
    if len(parts) <= most:
        return text
    kept = "".join(parts[: most - 1])
    head, space, _ = kept.rpartition(" ")
    return f"{head if space and len(head) > len(kept) // 2 else kept}\u2026"


def _extends(grapheme: str, character: str) -> bool:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Mc"):
        return True
    if character in (_JOINER, _KEYCAP) or grapheme.endswith(_JOINER) or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if grapheme == "\r" and character == "\n":
        return True
    return _is_regional(character) and len(grapheme) == 1 and _is_regional(grapheme)


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
