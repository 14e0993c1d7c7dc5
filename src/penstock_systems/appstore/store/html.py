"""HTML as a tree, for the answers that have nothing better. The parser is loaded when the first of them comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock as ps
from penstock_systems.appstore.store.text import cleaned

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


def tree(body: bytes) -> LexborHTMLParser:
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise ps.BadConfig("Reading markup needs selectolax: install penstock[systems].") from error
    # Bytes that are no text would make every text of the tree unreadable.
    return LexborHTMLParser(body.decode("utf-8", "replace"))


def text_of(node: LexborNode | None) -> str | None:
    return cleaned(node.text(separator=" ")) if node is not None else None
