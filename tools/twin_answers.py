"""Write twins of recorded answers: `python -m tools.twin_answers FOLDER OUT [--records 2]`.

A twin has the form of its recording to the letter: names of fields, types, dates, prices, counts, lengths. What identifies an
app, a person or a text is another one: ids are digits of the same length, names and texts filler of the same length, and the
paths of addresses random. The same recordings give the same twins.
"""

from __future__ import annotations

import argparse
import re
import sys
from itertools import cycle
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any

import msgspec

from tools.try_answers import try_answer

SUFFIXES = (".json", ".xml", ".plist", ".html")
FILLER = "loremipsumdolorsitametconsecteturadipiscingelitseddoeiusmodtemporincididuntutlaboreetdoloremagna"
TEXTS = (
    "trackName trackCensoredName artistName sellerName bundleId sellerUrl description releaseNotes title text content name "
    "summary rights"
).split()
_VALUE = re.compile(rf'"(?:{"|".join(TEXTS)})"\s*:\s*(?:\{{\s*"label"\s*:\s*)?"((?:[^"\\]|\\.)+)"')
_ELEMENT = re.compile(r"<(?:title|name|content[^>]*|uri|string|im:name)>([^<]+)</")
_ID = re.compile(r'"(?:trackId|artistId|adamId|productId|id|im:id)"\s*:\s*"?(\d{5,})|(?:/id|[?;&]id=|/id=)(\d{5,})')
_PATH = re.compile(r"(https?://(?!www\.w3\.org|www\.apple\.com|itunes\.apple\.com/rss\")[\w.-]+/)([^\"'<>\s]+)")
_SELLER = re.compile(r"https?://(?![\w.-]*(?:apple|mzstatic|w3)\.(?:com|org))[\w.-]+")
_TERM = re.compile(r"(?<=[?;&]term=)[^&<\"]+")
_TOKEN = re.compile(r"[A-Za-z]+|\d+")
_WORDS = frozenset("apps developer image thumb page reviews review customerreviews json sortby mostrecent".split())
KEPT_TEXTS = frozenset({"Suggestions", "iTunes Store", "Application"})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools.twin_answers", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--records", type=int, default=2, help="of a search or look-up that are kept")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    files = sorted(file for file in options.folder.rglob("*") if file.suffix in SUFFIXES)
    for number, file in enumerate(files, 1):
        text = twin(shortened(file, options.records))
        kind = try_answer(text.encode()).endpoint.replace(" ", "-")
        (options.out / f"{number:02}-{kind}{file.suffix}").write_text(text, encoding="utf-8", newline="\n")
    print(f"{len(files)} twins in {options.out}")
    return 0 if files else 2


def shortened(file: Path, records: int) -> str:
    """The recording, with the first records of a search alone."""
    body = file.read_bytes()
    if file.suffix != ".json":
        return body.decode()
    told: dict[str, Any] = msgspec.json.decode(body)
    if isinstance(told.get("results"), list):
        told |= {"results": told["results"][:records], "resultCount": min(records, told["resultCount"])}
    return msgspec.json.encode(told).decode()


def twin(text: str) -> str:
    """The same answer about another app."""
    chance = Random(len(text))
    ids = dict.fromkeys(first or second for first, second in _ID.findall(text))
    others = {each: str(chance.randrange(10 ** (len(each) - 1), 10 ** len(each))) for each in ids}
    text = re.sub(r"\d{5,}", lambda found: others.get(found[0], found[0]), text)
    text = _PATH.sub(lambda found: found[1] + _path(found[2], chance, set(others.values())), text)
    text = _SELLER.sub("https://seller.example", text)
    text = _TERM.sub(lambda found: _filler(found[0].replace("%20", " ")).replace(" ", "%20"), text)
    for pattern in (_VALUE, _ELEMENT):
        text = pattern.sub(lambda found: found[0].replace(found[1], _filler(found[1])), text)
    return text


def _filler(text: str) -> str:
    """As long as the text; escapes, spaces and what is no letter stay."""
    if text in KEPT_TEXTS or text.startswith(("http", "{")):
        return text
    letters = cycle(FILLER)
    for _ in range(sum(map(ord, text)) % len(FILLER)):  # so that two texts of one length differ
        next(letters)
    parts = re.split(r"(\\u[0-9a-fA-F]{4}|\\.|&\w+;)", text)
    return "".join(
        part if at % 2 else "".join(next(letters) if letter.isalpha() else letter for letter in part)
        for at, part in enumerate(parts)
    )


def _path(path: str, chance: Random, ids: set[str]) -> str:
    def other(found: re.Match[str]) -> str:
        token = found[0]
        if token in ids or token.removeprefix("id") in ids or len(token) < 4 or token in _WORDS:
            return token
        letters = "0123456789" if token.isdecimal() else ascii_lowercase
        return "".join(chance.choice(letters) for _ in token)

    address, mark, query = path.partition("?")
    return _TOKEN.sub(other, address) + mark + query


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
