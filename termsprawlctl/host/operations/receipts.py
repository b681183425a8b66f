"""What was done for a request id, so that a repeat does nothing and gets the same answer."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from ...base.errors import CtlError

MAX_RECEIPTS = 1_000  # far more than a client repeats; a restart of the host forgets them all


@dataclass(frozen=True)
class Receipt:
    """What was asked for, and the answer."""

    request: object
    answer: dict[str, Any]


class Receipts:
    """Receipts by caller and request id. The terminal's turn keeps two of one request apart."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Receipt] = OrderedDict()

    def find(self, caller: str, request_id: str, request: object) -> dict[str, Any] | None:
        """The answer to an earlier request with this id. Raises CtlError when that one asked for something else."""
        known = self._kept.get((caller, request_id))
        if known is None:
            return None
        if known.request != request:
            raise CtlError(
                f"The requestId {request_id[:40]!r} belongs to another request; nothing was typed.",
                "Choose a new one.",
            )
        return known.answer

    def keep(self, caller: str, request_id: str, request: object, answer: dict[str, Any]) -> dict[str, Any]:
        """Remember an answer; returns it."""
        self._kept[caller, request_id] = Receipt(request, answer)
        while len(self._kept) > MAX_RECEIPTS:
            self._kept.popitem(last=False)
        return answer
