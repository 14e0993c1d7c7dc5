"""Search hints: what people go on to type after a few letters. The answer is a property list."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import urlencode

import penstock as ps
from penstock_systems.appstore.store.decoding import Read
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.appstore.store.xml_tree import xml_tree

CLIENT = "29"  # the kind of client that gets hints; without the header the list is empty
HINTS_MAX = 50


def hints_url(base: str, prefix: str) -> str:
    asked = urlencode({"clientApplication": "Software", "term": prefix[:200]})
    return f"{base}/WebObjects/MZSearchHints.woa/wa/hints?{asked}"


def parse_hints(body: bytes) -> Read[list[str]]:
    """The terms in their order, each once."""
    root = xml_tree(body, "The hints")
    if root.tag != "plist":
        raise ps.Unparsable("The hints are not a property list.", reason="bad_shape")
    terms: dict[str, None] = {}
    skipped = 0
    for hint in root.iterfind("./dict/array/dict"):
        keys = list(hint)
        values = (value for key, value in pairwise(keys) if (key.tag, key.text) == ("key", "term"))
        term = cleaned(next((value.text for value in values if value.tag == "string"), None))
        if term is None:
            skipped += 1
        else:
            terms[term] = None
    return Read(list(terms)[:HINTS_MAX], skipped)
