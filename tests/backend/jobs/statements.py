"""Which statements write: those of the batch that says when agents were seen, and all others."""

from typing import Any

from sqlalchemy import event

from gridx.core.db import Database

_READS = ("SELECT", "PRAGMA", "BEGIN", "NOTIFY")
_BATCH = "UPDATE agents SET last_seen_at"


class Writes:
    """What one process's engine sent. The batch may come at any moment: its thread follows the real clock."""

    def __init__(self, database: Database) -> None:
        self.batches: list[str] = []
        self.others: list[str] = []
        event.listen(database.engine, "before_cursor_execute", self._note)

    def clear(self) -> None:
        self.batches.clear()
        self.others.clear()

    def _note(self, _connection: Any, _cursor: Any, statement: str, _parameters: Any, _context: Any, is_many: bool) -> None:
        if statement.lstrip().upper().startswith(_READS):
            return
        is_batch = _BATCH in statement and (is_many or statement.startswith("WITH"))
        (self.batches if is_batch else self.others).append(statement)
