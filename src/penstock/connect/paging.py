"""Which page comes next: a pure object that is asked, and that sees each answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.connect.fields import Find
from penstock.connect.spec import Paginator, Spec

Asked = tuple[str, Mapping[str, Any]]  # a URL, or "" for the base, and parameters


class Paging:
    """One request and no more: a single page."""

    def __init__(self, pager: Paginator) -> None:
        self.pager = pager
        self.waiting: deque[Asked] = deque([("", {})])
        self.asked: Asked | None = None
        self.pages = 0
        self.is_whole = True  # nothing was left out
        self._seen: set[str] = set()

    def next(self) -> Asked | None:
        if not self.waiting:
            return None
        if self.pages >= self.pager.pages:
            self.is_whole = False
            self.waiting.clear()
            return None
        self.pages += 1
        self.asked = self.waiting.popleft()
        return self.asked

    @property
    def has_more(self) -> bool:
        """Whether another page follows the one that was seen last."""
        if self.waiting and self.pages >= self.pager.pages:
            self.is_whole = False
            return False
        return bool(self.waiting)

    def saw(self, whole: Any, count: int, ids: Sequence[str], find: Find) -> None:
        """Take note of an answer: the whole of it, how many records it has, and their ids."""
        repeated = bool(ids) and self._seen.issuperset(ids)
        self._seen.update(ids)
        self.follow(whole, count, repeated, find)

    def follow(self, whole: Any, count: int, repeated: bool, find: Find) -> None: ...

    def comes_again(self, count: int) -> bool:
        """Return whether the records of this answer are asked for again, in parts."""
        return False


class _Numbered(Paging):
    """By offset or by number of the page, until a page is not full."""

    def __init__(self, pager: Paginator) -> None:
        super().__init__(pager)
        first = 1 if pager.kind == "page" else 0
        self._at = first if pager.start is None else pager.start
        self.waiting = deque([self._request()])

    def _request(self) -> Asked:
        size = {self.pager.size_param: self.pager.size} if self.pager.size_param else {}
        return "", {str(self.pager.param): self._at, **size}

    def follow(self, whole: Any, count: int, repeated: bool, find: Find) -> None:
        full = count >= self.pager.size if self.pager.size else count > 0
        if full and not repeated:
            self._at += self.pager.size - self.pager.overlap if self.pager.kind == "offset" else 1
            self.waiting.append(self._request())


class _Links(Paging):
    """By the link to the next page. A link that was followed before ends the list."""

    def __init__(self, pager: Paginator) -> None:
        super().__init__(pager)
        self._followed: set[str] = set()

    def follow(self, whole: Any, count: int, repeated: bool, find: Find) -> None:
        link = find(whole, self.pager.path) if whole is not None else None
        if isinstance(link, str) and link and link not in self._followed and not repeated:
            self._followed.add(link)
            self.waiting.append((link, {}))


class _Bisecting(Paging):
    """By halves of a range, while an answer is as large as the source's answers get."""

    def __init__(self, pager: Paginator) -> None:
        super().__init__(pager)
        self._ranges: deque[tuple[int, int]] = deque([pager.range])
        self._asked = pager.range

    def _request(self, low: int, high: int) -> Asked:
        first, second = str(self.pager.param[0]), str(self.pager.param[1])
        return "", {first: low, second: high} if (low, high) != self.pager.range else {}

    def next(self) -> Asked | None:
        found = super().next()
        self._asked = self._ranges.popleft() if found is not None else self._asked
        return found

    def comes_again(self, count: int) -> bool:
        return count >= self.pager.size and self._asked[1] - self._asked[0] > self.pager.least

    def follow(self, whole: Any, count: int, repeated: bool, find: Find) -> None:
        low, high = self._asked
        if not self.comes_again(count):
            self.is_whole = self.is_whole and count < self.pager.size
            return
        middle = (low + high) // 2
        for part in ((low, middle), (middle + 1, high)):
            self._ranges.append(part)
            self.waiting.append(self._request(*part))


def paging_of(spec: Spec) -> Paging:
    match spec.paginator.kind:
        case "offset" | "page":
            return _Numbered(spec.paginator)
        case "next_link":
            return _Links(spec.paginator)
        case "bisect":
            return _Bisecting(spec.paginator)
        case _:
            return Paging(spec.paginator)
