"""The orchestrator of a platform: forms gangs, and answers their members from the database.

All it knows stands there, so it may be killed at any moment, and any number of them may run. Training itself needs it only to begin and
to end; ranks exchange gradients among themselves.
"""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import structlog
from anyio import to_thread
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.service import AgentActor
from gridx.core.clock import Clock, SystemClock
from gridx.core.db import Database
from gridx.core.errors import NotAuthenticated
from gridx.core.lease import LeaseLost
from gridx.core.settings import Settings
from gridx.core.wakeup import Watcher
from gridx.jobs import forming, members
from gridx.jobs.gang_models import LIVE, Gang, Member, OrchestratorState
from gridx.jobs.gang_view import rank_state
from gridx.jobs.models import Attempt, Job
from gridx.orchestrator.dashboard import show
from gridx.orchestrator.server import PortTaken, Tls, make_server
from gridx.orchestrator.view import GangView, RankLine
from gridx_protocol import orchestrator_pb2 as wire

_LOOK_AGAIN_S: Final = 1.0
_SIGN_S: Final = 5.0
_LEAST_HEARTBEAT_S: Final = 0.5
_ADVICE = "send the agent's own token as metadata: authorization: Bearer <token>"
_log = structlog.get_logger()
Result = TypeVar("Result")


class PlatformCalls:
    """The calls of agents on the ranks that they hold. Every call shows the agent's token and the lease token of the attempt."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self._database, self._settings, self._clock = database, settings, clock
        self._heartbeat_s = max(settings.heartbeat_s / 5, _LEAST_HEARTBEAT_S)

    async def admit(self, token: str | None) -> AgentActor:
        if token is None or len(token) > 256:
            raise NotAuthenticated(_ADVICE)
        return await to_thread.run_sync(self._authenticate, token)

    async def register(self, caller: AgentActor, request: wire.RegisterRequest) -> wire.RegisterReply:
        place = await self._write(
            lambda session: members.register(
                session,
                caller,
                request.task_id,
                request.lease_token,
                request.instance,
                request.address,
                request.port,
                request.handshake_port,
                self._clock.now(),
            )
        )
        if place.refused is not None:
            raise LeaseLost(place.refused)
        return wire.RegisterReply(
            rank=place.rank,
            world_size=place.world_size,
            local_rank=place.local_rank,
            master_address=place.master_address,
            master_port=place.master_port,
            heartbeat_s=self._heartbeat_s,
        )

    async def heartbeat(self, caller: AgentActor, request: wire.HeartbeatRequest) -> wire.HeartbeatReply:
        reason = await self._write(
            lambda session: members.beat(
                session,
                caller,
                request.task_id,
                request.lease_token,
                request.rank,
                epoch=min(request.epoch, 2**31),
                step=request.step,
                loss=request.loss if request.HasField("loss") else None,
                samples_per_s=request.samples_per_s if request.HasField("samples_per_s") else None,
                now=self._clock.now(),
                settings=self._settings,
            )
        )
        return wire.HeartbeatReply(stop=reason is not None, reason=reason or "")

    async def can_start(self, caller: AgentActor, request: wire.CanStartRequest) -> wire.CanStartReply:
        found = await self._write(
            lambda session: members.get_ready(
                session,
                caller,
                request.task_id,
                request.lease_token,
                list(request.reached),
                list(request.unreachable),
                self._clock.now(),
            )
        )
        return wire.CanStartReply(
            can_start=found.can_start,
            waiting_for=found.waiting_for,
            registered=found.registered,
            world_size=found.world_size,
            master_address=found.master_address,
            master_port=found.master_port,
            stop=found.stop is not None,
            reason=found.stop or "",
            peers=[wire.Peer(rank=rank, address=address, port=port) for rank, address, port in found.peers],
        )

    async def leave(self, caller: AgentActor, request: wire.LeaveRequest) -> wire.LeaveReply:
        await self._write(
            lambda session: members.leave(
                session,
                caller,
                request.task_id,
                request.lease_token,
                train_s=request.train_s,
                loss=request.loss if request.HasField("loss") else None,
                accuracy=request.accuracy if request.HasField("accuracy") else None,
                now=self._clock.now(),
            )
        )
        return wire.LeaveReply()

    async def abort(self, caller: AgentActor, request: wire.AbortRequest) -> wire.AbortReply:
        await self._write(
            lambda session: members.abort(session, caller, request.task_id, request.lease_token, request.reason, self._clock.now())
        )
        return wire.AbortReply()

    def _authenticate(self, token: str) -> AgentActor:
        with self._database.read() as session:
            return agents.authenticate(session, token)

    async def _write(self, action: Callable[[Session], Result]) -> Result:
        def run() -> Result:
            with self._database.write() as session:
                return action(session)

        return await to_thread.run_sync(run)


class Former:
    """Forms gangs and ends those that do not get together, from a thread of its own."""

    def __init__(self, database: Database, settings: Settings, clock: Clock, *, port: int, is_secure: bool) -> None:
        self._database, self._settings, self._clock = database, settings, clock
        self._port, self._is_secure = port, is_secure
        self._signed_at: datetime | None = None
        self._watcher = Watcher(database, self._look, name="former", every_s=_LOOK_AGAIN_S)

    def start(self) -> None:
        self._watcher.start()

    def stop(self) -> None:
        self._watcher.close()

    def step(self) -> bool:
        """One look. Whether a gang was formed or ended."""
        now = self._clock.now()
        with self._database.read() as session:
            waits = bool(forming.waiting_jobs(session)) or session.scalar(select(Gang.id).where(Gang.status.in_(LIVE)).limit(1)) is not None
        if not waits:
            return False
        with self._database.write() as session:
            ended = forming.look_after(session, now) + forming.dismiss_stragglers(session, now)
        try:
            with self._database.write() as session:
                formed = forming.form_next(session, now, self._settings)
        except IntegrityError:  # another orchestrator took one of the places
            return True
        if formed is not None:
            _log.info("gang formed", gang=formed.id, job=formed.job_id, number=formed.number)
        return formed is not None or ended > 0

    def _look(self) -> bool:
        now = self._clock.now()
        if self._signed_at is None or (now - self._signed_at).total_seconds() >= _SIGN_S:
            sign(self._database, now, self._port, is_secure=self._is_secure)
            self._signed_at = now
        return self.step()


class DatabaseView:
    """What the dashboard shows of a platform: its gangs at work."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def views(self) -> list[GangView]:
        now = self._clock.now()
        with self._database.read() as session:
            rows = session.execute(
                select(Gang, Job.title, Member, Attempt)
                .join(Job, Job.id == Gang.job_id)
                .join(Member, Member.gang_id == Gang.id)
                .join(Attempt, Attempt.id == Member.attempt_id)
                .where(Gang.status.in_(LIVE))
                .order_by(Gang.id, Member.rank)
            ).all()
        found: dict[int, GangView] = {}
        for gang, title, member, attempt in rows:
            state = rank_state(gang, member, attempt)
            silent_s = (now - member.seen_at).total_seconds() if member.seen_at and attempt.status == "RUNNING" else None
            line = RankLine(member.rank, attempt.agent_id, state, attempt.epoch, member.step, attempt.loss, member.samples_per_s, silent_s)
            name = f"job {gang.job_id} ({title}), gang {gang.number}"
            before = found.get(gang.id) or GangView(name, gang.status, 0, gang.reason or "", ())
            found[gang.id] = GangView(name, gang.status, before.world_size + 1, before.note, (*before.lines, line))
        return list(found.values())


async def run(
    settings: Settings,
    database: Database,
    host: str,
    port: int,
    stop: threading.Event,
    *,
    dashboard: bool = False,
    clock: Clock | None = None,
) -> None:
    """Serve until `stop` is set. A port that is taken is tried again and again, and said to those whose jobs wait."""
    clock = clock or SystemClock()
    tls = Tls(*settings.orchestrator_tls) if settings.orchestrator_tls else None
    calls = PlatformCalls(database, settings, clock)
    while not stop.is_set():
        try:
            server, bound = make_server(calls, host, port, tls)
            break
        except PortTaken as error:
            words = f"{error.detail}; end what listens there, or set GRIDX_ORCHESTRATOR_PORT to another"
            _log.error("port taken", host=host, port=port)
            await to_thread.run_sync(_sign_problem, database, clock, port, tls is not None, words)
            await _sleep(stop, _SIGN_S)
    else:
        return
    former = Former(database, settings, clock, port=bound, is_secure=tls is not None)
    await server.start()
    former.start()
    _log.info("listening", host=host, port=bound, tls=tls is not None)
    try:
        with show(DatabaseView(database, clock), enabled=dashboard):
            while not stop.is_set():
                await _sleep(stop, _LOOK_AGAIN_S)
    finally:
        await to_thread.run_sync(former.stop)
        await server.stop(1.0)


def sign(database: Database, now: datetime, port: int, *, is_secure: bool, problem: str | None = None) -> None:
    """Leave a sign of life: jobs that wait say what is wrong."""
    with database.write() as session:
        state = session.get(OrchestratorState, 1)
        if state is None:
            session.add(OrchestratorState(id=1, at=now, port=port, is_secure=is_secure, problem=problem))
        else:
            state.at, state.port, state.is_secure, state.problem = now, port, is_secure, problem


def _sign_problem(database: Database, clock: Clock, port: int, is_secure: bool, words: str) -> None:
    sign(database, clock.now(), port, is_secure=is_secure, problem=words)


async def _sleep(stop: threading.Event, seconds: float) -> None:
    """For so long, or until told to stop."""
    await to_thread.run_sync(stop.wait, seconds)
