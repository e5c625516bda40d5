"""The agents' routes about work, and the sellers' routes that end it. Every call about a task carries its lease token."""

import asyncio
import secrets
import time
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request

from gridx.accounts.deps import SellerUser
from gridx.agents import service as agents
from gridx.agents.deps import CurrentAgent, PresenceDep
from gridx.agents.service import AgentActor
from gridx.aggregation.strategies.options import parse_options
from gridx.core.clock import Clock
from gridx.core.db import Database
from gridx.core.deps import ClockDep, DatabaseDep, SettingsDep, WriteSession
from gridx.core.errors import GridxError, TooLarge
from gridx.core.http import ERRORS
from gridx.core.settings import Settings
from gridx.core.streams import stream_to_file
from gridx.core.text import Text
from gridx.jobs import claims, dispatch, outputs, reports, standing
from gridx.jobs.claims import Claim
from gridx.jobs.line import Line, Ticket
from gridx.jobs.schemas import Message
from gridx.storage.base import ObjectStore
from gridx.storage.deps import StoreDep
from gridx_protocol import (
    CompleteReply,
    CompleteRequest,
    FailRequest,
    HeartbeatReply,
    HeartbeatRequest,
    Limits,
    LogsReply,
    LogsRequest,
    MetricsReply,
    MetricsRequest,
    Needs,
    OutputUrlRequest,
    Profile,
    ProfileReply,
    TaskReply,
    TaskRequest,
    UploadUrlReply,
    UploadUrlRequest,
)

router = APIRouter(prefix="/agent", tags=["agents"], responses=ERRORS)

MAX_WAIT_S = 25.0
"""Shorter than the idle limits of common proxies."""
LINK_GRACE_S = 600.0
"""Links outlive the deadline, so that an upload which began in time can end."""


class NothingUploaded(GridxError):
    status = 400
    code = "nothing_uploaded"


async def get_line(request: Request) -> Line:
    return request.app.state.line


LineDep = Annotated[Line, Depends(get_line)]


@router.post("/heartbeat")
async def heartbeat(
    body: HeartbeatRequest, agent: CurrentAgent, database: DatabaseDep, clock: ClockDep, settings: SettingsDep
) -> HeartbeatReply:
    """An idle agent's is noted, no more: most of a server's calls are these."""

    def extend() -> str | None:
        with database.write() as session:
            return dispatch.heartbeat(session, agent, body, clock.now(), settings)

    reason = await to_thread.run_sync(extend) if body.task_id is not None else None
    return HeartbeatReply(heartbeat_s=settings.heartbeat_s, poll_s=settings.poll_s, cancel=reason is not None, cancel_reason=reason)


@router.post("/profile")
def profile(body: Profile, agent: CurrentAgent, session: WriteSession, clock: ClockDep) -> ProfileReply:
    """What a machine takes and how it stands, as it says; and how the server sees it."""
    agents.set_profile(session, agent.id, body, clock.now())
    return standing.of(session, agent, body, clock.now())


@router.post("/request_task")
async def request_task(
    body: TaskRequest,
    request: Request,
    agent: CurrentAgent,
    presence: PresenceDep,
    line: LineDep,
    database: DatabaseDep,
    store: StoreDep,
    clock: ClockDep,
    settings: SettingsDep,
) -> TaskReply:
    """Work for an agent. With `wait_s` the call stays open, with no session, until there is some."""
    if not body.wait_s:
        return await to_thread.run_sync(_ask, body, agent, database, store, clock, settings)
    end, asked_at = time.monotonic() + min(body.wait_s, MAX_WAIT_S), 0.0
    with presence.open_call(agent.id):
        while True:
            ticket = line.join(agent, body.warm_job_ids, asked_at=asked_at)
            try:
                reply = await to_thread.run_sync(_ask, body, agent, database, store, clock, settings)
                if reply.task_id is not None:
                    return reply
                is_there = await _wait(request, ticket, end - time.monotonic())
            finally:
                line.leave(ticket)
            if ticket.is_refused:
                raise agents.ended_token()
            if ticket.claim is not None:
                left_s = max(0.0, (ticket.claim.deadline_at - clock.now()).total_seconds())
                return await to_thread.run_sync(task_reply, ticket.claim, store, settings, left_s, reply.ended_job_ids)
            if line.is_dismissed or not is_there or time.monotonic() >= end:
                return reply if not line.is_dismissed else reply.model_copy(update={"poll_after_s": settings.poll_s})
            asked_at = ticket.asked_at


@router.post("/metrics")
def metrics(body: MetricsRequest, agent: CurrentAgent, session: WriteSession, clock: ClockDep) -> MetricsReply:
    attempt = dispatch.held_attempt(session, agent, body.task_id, body.lease_token)
    return MetricsReply(stored=reports.store_metrics(session, attempt, body.points, clock.now()))


@router.post("/logs")
def logs(body: LogsRequest, agent: CurrentAgent, session: WriteSession) -> LogsReply:
    attempt = dispatch.held_attempt(session, agent, body.task_id, body.lease_token)
    return LogsReply(offset=reports.store_log(session, attempt, body.offset, body.text))


@router.post("/upload_url")
def upload_url(
    body: UploadUrlRequest, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, clock: ClockDep, settings: SettingsDep
) -> UploadUrlReply:
    if body.size > settings.max_update_bytes:
        raise TooLarge(f"model.pth has {body.size} bytes; at most {settings.max_update_bytes} are taken")
    with database.read() as session:
        attempt = dispatch.held_attempt(session, agent, body.task_id, body.lease_token)
        expires_s = max(0.0, (attempt.deadline_at - clock.now()).total_seconds()) + LINK_GRACE_S
    url, headers = store.signed_put(attempt.upload_key, expires_s, settings.max_update_bytes)
    return UploadUrlReply(url=url, headers=headers, expires_s=expires_s)


@router.post("/output_url")
def output_url(body: OutputUrlRequest, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, clock: ClockDep) -> UploadUrlReply:
    """Where to put a file that the script left in outputs/."""
    with database.write() as session:
        attempt = dispatch.held_attempt(session, agent, body.task_id, body.lease_token)
        key = outputs.announce(session, attempt, body.name, body.size, body.sha256, clock.now())
        expires_s = max(0.0, (attempt.deadline_at - clock.now()).total_seconds()) + LINK_GRACE_S
    url, headers = store.signed_put(key, expires_s, body.size)
    return UploadUrlReply(url=url, headers=headers, expires_s=expires_s)


@router.post("/upload_result")
async def upload_result(
    request: Request,
    agent: CurrentAgent,
    database: DatabaseDep,
    store: StoreDep,
    settings: SettingsDep,
    task_id: Annotated[int, Query(ge=1, le=2**53)],
    lease_token: Annotated[str, Header(alias="Gridx-Lease-Token", max_length=128)],
) -> Message:
    """Upload model.pth through the server itself, as the raw body: for agents that cannot reach the storage's links."""

    def held_key() -> str:
        with database.read() as session:
            return dispatch.held_attempt(session, agent, task_id, lease_token).upload_key

    key = await to_thread.run_sync(held_key)
    folder = settings.home / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    # A name of its own: the call may be repeated while the first one is still being received, or after a server died over it.
    path = folder / f"result-{secrets.token_hex(16)}"
    try:
        size, _ = await stream_to_file(request, path, settings.max_update_bytes)
        await to_thread.run_sync(store.put_file, key, path)
    finally:
        path.unlink(missing_ok=True)
    return Message(message=f"{size} bytes were stored")


@router.post("/complete_task")
def complete_task(
    body: CompleteRequest, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, clock: ClockDep, settings: SettingsDep
) -> CompleteReply:
    with database.read() as session:
        key = dispatch.upload_key(session, agent, body.task_id, body.lease_token)
    if key is not None:
        info = store.stat(key)
        if info is None or info.size != body.size:
            found = "nothing" if info is None else f"{info.size} bytes"
            raise NothingUploaded(f"upload model.pth first: {body.size} bytes were announced, {found} arrived")
        if info.size > settings.max_update_bytes:  # not every store's links can refuse it
            store.delete(key)
            raise TooLarge(f"model.pth has {info.size} bytes; at most {settings.max_update_bytes} are taken")
    with database.write() as session:
        status = dispatch.complete(session, agent, body, clock.now(), settings)
    return CompleteReply(status={"VERIFYING": "VERIFYING", "ACCEPTED": "COMPLETED"}.get(status, "REFUSED"))  # pyright: ignore[reportArgumentType]


@router.post("/fail_task")
def fail_task(body: FailRequest, agent: CurrentAgent, session: WriteSession, clock: ClockDep, settings: SettingsDep) -> Message:
    dispatch.fail(session, agent, body, clock.now(), settings)
    return Message(message="noted")


@router.delete("/keys/{key_id}")
def revoke_key(
    key_id: Annotated[int, Path(ge=1, le=2**53)], actor: SellerUser, session: WriteSession, clock: ClockDep, settings: SettingsDep
) -> Message:
    """End a key, the tokens of the machines that registered with it, and what they are working on."""
    agent_ids = agents.revoke_key(session, actor.id, key_id, clock.now())
    dispatch.end_leases(session, agent_ids, "its provider revoked the machine's key", clock.now(), settings)
    return Message(message=f"the key is revoked; {len(agent_ids)} machines lost their tokens")


@router.delete("/{agent_id}")
def remove_agent(
    agent_id: Annotated[Text, Path(max_length=64)], actor: SellerUser, session: WriteSession, clock: ClockDep, settings: SettingsDep
) -> Message:
    """Take a machine off the list; its token and its work end."""
    agents.remove(session, actor.id, agent_id, clock.now())
    dispatch.end_leases(session, [agent_id], "its provider removed the machine", clock.now(), settings)
    return Message(message=f"{agent_id} is removed")


async def _wait(request: Request, ticket: Ticket, seconds: float) -> bool:
    """Until the ticket is called, the agent hangs up, or so many seconds. Returns whether the agent is still there."""
    has_gone = False

    async def listen() -> None:
        nonlocal has_gone
        while (await request.receive())["type"] != "http.disconnect":
            pass
        has_gone = True
        ticket.call()

    listening = asyncio.create_task(listen())
    try:
        async with asyncio.timeout(seconds):
            await ticket.wait()
    except TimeoutError:
        pass
    finally:
        listening.cancel()
    return not has_gone


def _ask(body: TaskRequest, agent: AgentActor, database: Database, store: ObjectStore, clock: Clock, settings: Settings) -> TaskReply:
    now = clock.now()
    with database.read() as session:
        idle = not dispatch.has_work(session, now) and not claims.holds_attempt(session, agent)
        ended = dispatch.ended_jobs(session, body.warm_job_ids)
    claim: Claim | None = None
    if not idle:
        with database.write() as session:
            claim = claims.claim(session, agent, body.warm_job_ids, now, settings)
    if claim is None:
        return TaskReply(task_id=None, poll_after_s=0.0 if body.wait_s else settings.poll_s, ended_job_ids=ended)
    return task_reply(claim, store, settings, max(0.0, (claim.deadline_at - now).total_seconds()), ended)


def task_reply(claim: Claim, store: ObjectStore, settings: Settings, deadline_s: float, ended: list[int]) -> TaskReply:
    """An attempt as its agent is told of it, with signed links."""
    expires_s = deadline_s + LINK_GRACE_S
    return TaskReply(
        task_id=claim.subtask_id,
        ended_job_ids=ended,
        job_id=claim.job_id,
        title=claim.title,
        kind=claim.kind,  # pyright: ignore[reportArgumentType] - the column holds no other
        attempt=claim.number,
        lease_token=claim.lease_token,
        lease_s=settings.lease_s,
        deadline_s=deadline_s,
        code_url=store.signed_get(claim.script_key, expires_s, "train.py"),
        code_sha256=claim.script_sha256,
        requirements_url=store.signed_get(claim.requirements_key, expires_s, "requirements.txt") if claim.requirements_key else None,
        schema_url=store.signed_get(claim.schema_key, expires_s, "schema.json") if claim.schema_key else None,
        chunk_data_url=store.signed_get(claim.chunk_key, expires_s, "data.csv"),
        chunk_sha256=claim.chunk_sha256,
        chunk_bytes=claim.chunk_bytes,
        global_model_url=store.signed_get(claim.global_model_key, expires_s, "global_model.pth") if claim.global_model_key else None,
        global_model_sha256=claim.global_model_sha256,
        arguments=claim.arguments,
        hyperparameters=parse_options(claim.strategy, claim.strategy_options).for_script() | claim.hyperparameters,
        round=claim.round_number,
        rounds=claim.rounds,
        chunk=claim.chunk_index,
        chunks=claim.chunks,
        rows=claim.rows,
        seed=(claim.job_seed + claim.round_number - 1) % 2**31,
        limits=Limits(output_bytes=settings.max_update_bytes),
        needs=Needs.model_validate(claim.needs),
    )
