"""XML from outside as a tree: without entities, which can grow a line into gigabytes."""

from __future__ import annotations

from xml.etree import ElementTree

import penstock as ps


def xml_tree(body: bytes, what: str) -> ElementTree.Element:
    # A zero byte would be UTF-16, in which the search would find nothing.
    if b"<!ENTITY" in body or b"\0" in body:
        raise ps.Unparsable(f"{what} declares entities.", reason="bad_xml")
    try:
        return ElementTree.fromstring(body.strip())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ps.Unparsable(f"{what} cannot be read: {str(error)[:200]}.", reason="bad_xml") from error
