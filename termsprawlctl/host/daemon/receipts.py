"""What was done for a request id, so that a repeat does nothing and gets the same answer."""

from __future__ import annotations

from collections import OrderedDict

from ...base.errors import CtlError

MAX_RECEIPTS = 1_000  # far more than a client repeats; a restart of the host forgets them all


class Receipts:
    """Receipts by caller and request id. The terminal's turn keeps two of one request apart."""

    def __init__(self) -> None:
        self._kept: OrderedDict = OrderedDict()

    def find(self, caller: str, request_id: str, request: object) -> dict | None:
        """The receipt of an earlier request with this id. Raises CtlError when that one asked for something else."""
        known = self._kept.get((caller, request_id))
        if known is None:
            return None
        if known[0] != request:
            raise CtlError(
                f"The requestId {request_id[:40]!r} belongs to another request; nothing was typed.",
                "Choose a new one.",
            )
        return known[1]

    def keep(self, caller: str, request_id: str, request: object, receipt: dict) -> dict:
        """Remember a receipt; returns it."""
        self._kept[caller, request_id] = (request, receipt)
        while len(self._kept) > MAX_RECEIPTS:
            self._kept.popitem(last=False)
        return receipt
