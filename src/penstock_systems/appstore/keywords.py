"""Keywords out of titles: one tokenizer and one list of stop words, and the two rules that put words together."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any, Literal

Letters = Literal["latin", "any"]

STOP_WORDS = frozenset(
    "the and for with your you app free pro lite plus premium new top best get now ios iphone ipad by my de".split()
)
KEYWORD_CHARACTERS_MAX = 60  # nobody types more
KEYWORDS_A_TITLE = 25  # of the best kind first; a title of thirty characters gives ten
WORDS_MAX = 12  # of one text; what follows is no title any more
SHARED_LEAST = 3  # keywords of several developers that a market needs for the others to be left out
TEXT_CHARACTERS_MAX = 300  # looked at: store titles have thirty, the longest old ones 255

SHORT_WORD = 2  # letters: a Latin word of so few says nothing
# Letters that a word needs to be a keyword of its own. A Chinese or Korean word has two, and one in another script than
# a to z, or with an accent, is rarer than its length tells.
ALONE_LATIN, ALONE_OTHER, ALONE_DENSE = 5, 4, 2

# Scripts that put no space between words. What is written in one run stays one keyword: it is found by search as it is.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x312F),  # kana, bopomofo
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),  # the rarer Chinese characters
)
_ASCII, _LATIN = (
    re.compile("[a-z0-9]+"),
    re.compile("[a-z]+"),
)  # what the rules below come to where there is nothing else
_HANGUL = (0xAC00, 0xD7AF)
_APOSTROPHES = "'\u2019\u02bc\uff07"
_DOTTED_I = "i\u0307"  # what the Turkish capital becomes in lower case
# What typesetting puts into plain text: bullets, dashes, dots and quotation marks, which part words, and the apostrophe.
_TYPESET = str.maketrans({"\u2019": "'"} | dict.fromkeys("\u2022\u2013\u2014\u2026\u201c\u201d", " "))


def words(text: str, letters: Letters = "any") -> list[str]:
    """The words of a text that say something, in its order: folded, without stop words and without very short ones."""
    return [word for word in tokens(text, letters) if word not in STOP_WORDS and _says_something(word)][:WORDS_MAX]


def normal(text: str, letters: Letters = "any") -> str | None:
    """What somebody typed, as a keyword is kept. Stop words stay: a person may mean them. None if nothing is left."""
    keyword = " ".join(tokens(text, letters))
    return keyword if 0 < len(keyword) <= KEYWORD_CHARACTERS_MAX else None


def discovered(title: str, letters: Letters = "any") -> list[str]:
    """What the title of an app that was just found is worth searching for: long words, pairs, and a short title whole."""
    said = words(title, letters)
    whole = [" ".join(said)] if 2 <= len(said) <= 4 else []
    return _kept([*_alone(said), *_pairs(said), *whole])


def of_app(title: str, subtitle: str | None = None, letters: Letters = "any") -> list[str]:
    """What an app should rank for, the likeliest first: its title, its subtitle, pairs, words of both, long words."""
    said, more = words(title, letters), words(subtitle or "", letters)
    whole = [" ".join(said)] if 1 <= len(said) <= 5 else []
    whole += [" ".join(more)] if 2 <= len(more) <= 5 else []
    crossed = [f"{first} {second}" for first, second in product(said[:3], more[:3]) if first != second]
    return _kept([*whole, *_pairs(said), *_pairs(more), *crossed, *_alone(said), *_alone(more)])


def of_several(keywords: Sequence[Any], apps: Iterable[Any]) -> Sequence[Any]:
    """Rows of keywords without those that are a single developer's name: no other one has all of their words in titles, and
    users do not type them. All of them, where fewer than three are left."""
    sellers: dict[str, set[object]] = defaultdict(set)
    for app in apps:
        for word in tokens(app.track_name):
            sellers[word].add(app.seller_name or app.track_id)
    shared = [row for row in keywords if row.typed or all(len(sellers[word]) > 1 for word in row.keyword.split())]
    return shared if len(shared) >= SHARED_LEAST else keywords


# -- putting words together -------------------------------------------------------------------------------


def _alone(said: Iterable[str]) -> Iterator[str]:
    return (word for word in said if len(word) >= _letters_needed(word) and not word.isdecimal())


def _pairs(said: list[str]) -> Iterator[str]:
    return (f"{first} {second}" for first, second in pairwise(said))


def _kept(made: Iterable[str]) -> list[str]:
    short = (keyword for keyword in made if len(keyword) <= KEYWORD_CHARACTERS_MAX)
    return list(dict.fromkeys(short))[:KEYWORDS_A_TITLE]


def _says_something(word: str) -> bool:
    """A number may be short: it tells one part of a series from the next."""
    return len(word) > SHORT_WORD or not word.isascii() or word.isdecimal()


def _letters_needed(word: str) -> int:
    if word.isascii():
        return ALONE_LATIN
    first = word[0]
    return ALONE_DENSE if _is_unspaced(first) or _HANGUL[0] <= ord(first) <= _HANGUL[1] else ALONE_OTHER


# -- telling words apart ----------------------------------------------------------------------------------


def tokens(text: str, letters: Letters = "any") -> list[str]:
    """All words of a text, folded: those too that say nothing."""
    text = text[:TEXT_CHARACTERS_MAX]
    plain = text if text.isascii() else text.translate(_TYPESET)
    if plain.isascii():
        return (_LATIN if letters == "latin" else _ASCII).findall(plain.lower().replace("'", ""))
    folded = _folded(text, letters)
    keeps = _is_latin if letters == "latin" else _is_letter
    made: list[str] = []
    word = ""
    for letter in folded:
        if keeps(letter) or (word and letters == "any" and unicodedata.category(letter).startswith("M")):
            if word and _parts(word[-1], letter):
                made.append(word)
                word = ""
            word += letter
        elif word:
            made.append(word)
            word = ""
    return [*made, word] if word else made


def _folded(text: str, letters: Letters) -> str:
    """One spelling for what reads the same. With a to z alone an accent is dropped instead of its letter."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).replace(_DOTTED_I, "i")
    if letters == "latin":
        plain = unicodedata.normalize("NFKD", plain)
    # What is invisible (joiners, marks of direction) and an apostrophe part no word.
    return "".join(letter for letter in plain if not _is_silent(letter, letters))


def _is_silent(letter: str, letters: Letters) -> bool:
    if letter in _APOSTROPHES:
        return True
    kind = unicodedata.category(letter)
    return kind == "Cf" or (letters == "latin" and kind == "Mn")


def _is_latin(letter: str) -> bool:
    return "a" <= letter <= "z"


def _is_letter(letter: str) -> bool:
    return letter.isalnum()


def _parts(before: str, letter: str) -> bool:
    """Where a script without spaces meets another one, a word ends. Marks belong to what stands before them."""
    if unicodedata.category(before).startswith("M") or unicodedata.category(letter).startswith("M"):
        return False
    return _is_unspaced(before) != _is_unspaced(letter)


def _is_unspaced(letter: str) -> bool:
    code = ord(letter)
    return code >= _UNSPACED[0][0] and any(first <= code <= last for first, last in _UNSPACED)
