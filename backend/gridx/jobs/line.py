"""The line of agents that wait for work with their call held open, and its watcher: one per server process, which deals what appears.

Nobody polls, and a thousand waiting agents do not race for one row: the watcher knows what is due and who waits, and claims for those
whom it suits. Where a claim has to weigh more (a subtask that failed before), it tells as many agents as there are such subtasks to ask.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.db import Database
from gridx.core.wakeup import Watcher
from gridx.jobs.claims import Claim
from gridx.jobs.dealing import Dealt, Waiting

_LOOK_AGAIN_S = 1.0
"""Wake-ups are hints, and a subtask may become due by the clock alone."""
_PAUSE_S = 0.01
"""Between two looks: many commits in a row are looked at together."""
_CHECK_TOKENS_S = 0.25
_ASK_AGAIN_S = 1.0
"""Who asked in vain is not told to ask again before."""


@dataclass(eq=False)
class Ticket(Waiting):
    """A place in the line. What comes before anybody waits for it is not lost."""

    loop: asyncio.AbstractEventLoop = field(kw_only=True)
    asked_at: float = 0.0
    claim: Claim | None = None
    is_refused: bool = False
    """The agent's token ended while it waited."""
    _called: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self) -> None:
        """End the waiting. From any thread."""
        self.loop.call_soon_threadsafe(self._called.set)

    async def wait(self) -> None:
        """Until the ticket is called: with a claim, to be refused, or to ask."""
        await self._called.wait()


class Line:
    """`deal` is asked in the watcher's thread, with those who wait, first come first."""

    def __init__(self, database: Database, deal: Callable[[Sequence[Waiting]], Dealt]) -> None:
        self._database = database
        self._deal = deal
        self._tickets: dict[Ticket, None] = {}
        self._lock = threading.Lock()
        self._watcher = Watcher(database, self._look, name="line", every_s=_LOOK_AGAIN_S, pause_s=_PAUSE_S)
        self._dismissed = False
        self._checked_at = 0.0

    def join(self, agent: AgentActor, warm_job_ids: Sequence[int] = (), *, asked_at: float = 0.0) -> Ticket:
        """Take a place at the end of the line. `asked_at`: when (monotonic) the agent last asked in vain because it was told to."""
        ticket = Ticket(agent, frozenset(warm_job_ids), loop=asyncio.get_running_loop(), asked_at=asked_at)
        with self._lock:
            self._tickets[ticket] = None
            if not self._dismissed:
                self._watcher.start()
        if self._dismissed:
            ticket.call()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place up. One that was called already is no longer in the line."""
        with self._lock:
            self._tickets.pop(ticket, None)

    @property
    def waiting(self) -> int:
        return len(self._tickets)

    @property
    def is_dismissed(self) -> bool:
        return self._dismissed

    def dismiss(self) -> None:
        """The server is about to end: nobody waits any more. May be called from a signal handler, so it takes no lock."""
        self._dismissed = True
        for ticket in list(self._tickets):
            ticket.call()

    def close(self) -> None:
        self._watcher.close()

    def _look(self) -> bool:
        """Deal what is there to the line. Returns whether there may be more."""
        with self._lock:
            waiting = list(self._tickets)
        if not waiting:
            return False
        now = time.monotonic()
        if now - self._checked_at >= _CHECK_TOKENS_S:
            self._checked_at = now
            waiting = self._without_ended(waiting)
        for ticket in waiting:
            ticket.may_ask = now - ticket.asked_at >= _ASK_AGAIN_S
        dealt = self._deal(waiting)
        called: list[Ticket] = []
        for ticket in waiting:
            claim = dealt.claims.pop(ticket.agent.id, None)
            if claim is not None or ticket.agent.id in dealt.to_ask:
                dealt.to_ask.discard(ticket.agent.id)
                ticket.claim, ticket.asked_at = claim, now
                called.append(ticket)
        self._call(called)
        return dealt.is_more

    def _without_ended(self, waiting: list[Ticket]) -> list[Ticket]:
        """Refuse those whose token was revoked while they waited."""
        with self._database.read() as session:
            valid = agents.valid_tokens(session, {ticket.agent.token_hash for ticket in waiting if ticket.agent.token_hash is not None})
        ended = [ticket for ticket in waiting if ticket.agent.token_hash not in valid]
        for ticket in ended:
            ticket.is_refused = True
        self._call(ended)
        return [ticket for ticket in waiting if not ticket.is_refused]

    def _call(self, tickets: Sequence[Ticket]) -> None:
        with self._lock:
            for ticket in tickets:
                self._tickets.pop(ticket, None)
        for ticket in tickets:
            ticket.call()
