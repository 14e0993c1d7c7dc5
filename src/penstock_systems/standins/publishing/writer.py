"""What the fake model answers: a summary, or an article of sentences from the sources that it was given."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

SENTENCES_A_SOURCE = 6
FALSE = "A famous study proves that nobody ever needs any receipts again."


def write_reply(false_citations: Collection[int] = ()) -> Callable[[dict[str, Any]], str]:
    """Return a reply for `Chat`. The keywords with these numbers, counted from 1, cite a sentence that no page has."""
    written: list[str] = []

    def reply(asked: dict[str, Any]) -> str:
        system, prompt, *_ = (message["content"] for message in asked["messages"])
        given = json.loads(prompt)
        sources = [(each["url"], _sentences(each["text"])) for each in given["sources"]]
        headings = [each.get("title") or given["keyword"].capitalize() for each in given["sources"]]
        if "Summarise" in system:
            return json.dumps({"summary": " ".join(lines[0] for _, lines in sources if lines)})
        if given["keyword"] not in written:
            written.append(given["keyword"])
        return json.dumps(
            _article(
                given["keyword"], sources, headings, is_false=written.index(given["keyword"]) + 1 in false_citations
            )
        )

    return reply


def _sentences(text: str) -> list[str]:
    return [f"{line}." for line in text.replace("\n", " ").split(". ") if len(line.split()) > 5]


def _article(
    keyword: str, sources: list[tuple[str, list[str]]], headings: list[str], *, is_false: bool
) -> dict[str, Any]:
    parts, citations = [f"Here is what the sources say about {keyword}."], []
    for (url, lines), heading in zip(sources, headings, strict=True):
        chosen = [line.rstrip(".") + "." for line in lines[1 : SENTENCES_A_SOURCE + 1]]
        parts.append(f"## {heading}\n\n{' '.join(chosen)}")
        citations += [{"url": url, "quote": line} for line in chosen[:2]]
    if is_false:
        parts.insert(1, f"> {FALSE}")
        citations.append({"url": sources[0][0], "quote": FALSE})
    return {
        "title": f"{keyword.capitalize()}: what to know",
        "description": f"A short guide to {keyword}, from {len(sources)} pages.",
        "body": "\n\n".join(parts),
        "key_points": [citations[0]["quote"]],
        "citations": citations,
    }
