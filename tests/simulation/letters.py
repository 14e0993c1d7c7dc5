"""Dead letters in one commit: one that is marked as sent back was sent, and nothing comes from nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simulation.model import PURGED, Name, Row

if TYPE_CHECKING:
    from tests.simulation.invariants import Law


class Letters:
    def __init__(self, law: Law) -> None:
        self._law = law
        self.buried: dict[Name, dict[str, Any]] = {}
        self._sent_back: dict[Name, tuple[Row, dict[str, Any]]] = {}
        self._replayed: list[dict[str, Any]] = []

    def changed(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        law = self._law
        if new is None:
            law.expect(False, "a dead letter is gone")
        elif old is None:
            self.buried[(bytes(new["id"]), new["handler"])] = new
        elif old["resolution"] is not None:
            law.expect(False, f"letter {new['seq']} was dealt with twice: {old['resolution']}, {new['resolution']}")
        elif new["resolution"] == "replayed":
            self._replayed.append(old)
        elif new["resolution"] is not None:
            law.counts.dealt_with(new["queue"], PURGED)
            law.dealt_with += 1

    def sent_back(self, row: Row, new: dict[str, Any]) -> None:
        """A row that says it was dead once."""
        self._sent_back[(row.origin, row.handler)] = (row, new)

    def close(self) -> None:
        law = self._law
        law.expect(not self.buried, "a dead letter was written and its message is still there")
        for letter in self._replayed:
            origin = bytes(letter["replay_of"] or letter["id"])
            row, new = self._sent_back.pop((origin, letter["handler"]), (None, {}))
            key = law.rows[(bytes(letter["id"]), letter["handler"])].key
            law.expect(row is not None, f"{key} was marked as replayed and was not sent")
            if row is not None:
                right = bytes(new["body"]) == bytes(letter["body"]) and new["queue"] == letter["queue"]
                law.expect(right, f"{key} was sent back as something else")
                anew = (new["attempts"], new["crashes"], new["replays"]) == (0, 0, letter["replay_count"] + 1)
                law.expect(anew, f"{key} was sent back and did not begin anew")
            law.counts.dealt_with(letter["queue"], None)
            law.dealt_with += 1
        for row, _ in self._sent_back.values():
            law.expect(False, f"{row.key} was sent back, and its letter stays unresolved")
