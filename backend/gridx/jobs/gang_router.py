"""The agents' routes about ranks: asking for one, and checkpoints. All else goes to the orchestrator, by gRPC."""

import time

from anyio import to_thread
from fastapi import APIRouter, Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from gridx.agents import service as agents
from gridx.agents.deps import CurrentAgent
from gridx.agents.service import AgentActor
from gridx.core.clock import Clock
from gridx.core.db import Database
from gridx.core.deps import ClockDep, DatabaseDep, SettingsDep
from gridx.core.errors import TooLarge
from gridx.core.http import ERRORS
from gridx.core.settings import Settings
from gridx.jobs import checkpoints, claims, dispatch
from gridx.jobs.agent_router import LINK_GRACE_S, MAX_WAIT_S, NothingUploaded, task_reply
from gridx.jobs.board import Board
from gridx.jobs.claims import Claim
from gridx.jobs.gang_models import Checkpoint, Gang, Member, OrchestratorState, RankSlot
from gridx.jobs.models import Attempt, Job
from gridx.jobs.schemas import Message
from gridx.storage.base import ObjectStore
from gridx.storage.deps import StoreDep
from gridx_protocol import CheckpointRequest, CheckpointUrlRequest, GangTask, RankRequest, TaskReply, UploadUrlReply

router = APIRouter(prefix="/agent", tags=["agents"], responses=ERRORS)


@router.post("/request_rank")
async def request_rank(
    body: RankRequest, request: Request, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, clock: ClockDep, settings: SettingsDep
) -> TaskReply:
    """A rank that was reserved for one of the agent's slots. With `wait_s` the call stays open, with no session, until there is one."""
    board: Board = request.app.state.rank_board
    end = time.monotonic() + min(body.wait_s, MAX_WAIT_S)
    while True:
        ticket = board.join()
        try:
            reply = await to_thread.run_sync(_ask, body, agent, database, store, clock, settings)
            left = end - time.monotonic()
            if reply.task_id is not None or left <= 0 or board.is_dismissed:
                return reply
            await ticket.wait(left)
        finally:
            board.leave(ticket)
        if await request.is_disconnected():
            return reply


@router.post("/checkpoint_url")
def checkpoint_url(
    body: CheckpointUrlRequest, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, settings: SettingsDep
) -> UploadUrlReply:
    """Where rank 0 puts a checkpoint."""
    if body.size > settings.max_update_bytes:
        raise TooLarge(f"the checkpoint has {body.size} bytes; at most {settings.max_update_bytes} are taken")
    with database.read() as session:
        key = checkpoints.upload_key(session, agent, body.task_id, body.lease_token, body.number)
    url, headers = store.signed_put(key, LINK_GRACE_S, settings.max_update_bytes)
    return UploadUrlReply(url=url, headers=headers, expires_s=LINK_GRACE_S)


@router.post("/checkpoint")
def checkpoint(body: CheckpointRequest, agent: CurrentAgent, database: DatabaseDep, store: StoreDep, clock: ClockDep) -> Message:
    """The checkpoint is uploaded: it is checked and written anew, and the next gang starts from it."""
    with database.read() as session:
        key = checkpoints.upload_key(session, agent, body.task_id, body.lease_token, body.number)
    info = store.stat(key)
    if info is None or info.size != body.size:
        found = "nothing" if info is None else f"{info.size} bytes"
        raise NothingUploaded(f"upload the checkpoint first: {body.size} bytes were announced, {found} arrived")
    with database.write() as session:
        checkpoints.add(session, agent, body, key, clock.now())
    return Message(message="noted")


def _ask(body: RankRequest, agent: AgentActor, database: Database, store: ObjectStore, clock: Clock, settings: Settings) -> TaskReply:
    now = clock.now()
    with database.read() as session:
        is_there = claims.holds_attempt(session, agent, body.slot)
        ended = dispatch.ended_jobs(session, body.warm_job_ids)
    claim: Claim | None = None
    gang: GangTask | None = None
    with database.write() as session:
        agents.lock(session, agent.id, now)
        session.merge(RankSlot(agent_id=agent.id, slot=body.slot, place=body.place, address=body.address, asked_at=now))
        if is_there and (claim := claims.held_claim(session, agent, body.slot, now, settings)) is not None:
            gang = _gang_task(session, claim, store)
    if claim is None:
        return TaskReply(task_id=None, poll_after_s=0.0 if body.wait_s else settings.poll_s, ended_job_ids=ended)
    reply = task_reply(claim, store, settings, max(0.0, (claim.deadline_at - now).total_seconds()), ended)
    return reply.model_copy(update={"gang": gang})


def _gang_task(session: Session, claim: Claim, store: ObjectStore) -> GangTask:
    attempt, member, gang, needs_gpus = session.execute(
        select(Attempt, Member, Gang, Job.needs_gpus)
        .join(Member, Member.attempt_id == Attempt.id)
        .join(Gang, Gang.id == Member.gang_id)
        .join(Job, Job.id == Attempt.job_id)
        .where(Attempt.subtask_id == claim.subtask_id, Attempt.lease_token == claim.lease_token)
    ).one()
    attempt.phase = attempt.phase or "DOWNLOADING"
    kept = session.get(Checkpoint, gang.checkpoint_id) if gang.checkpoint_id else None
    state = session.get(OrchestratorState, 1)
    seconds = claim.time_limit_s + LINK_GRACE_S
    return GangTask(
        gang_id=gang.id,
        rank=member.rank,
        world_size=claim.chunks,
        orchestrator_port=state.port if state else 0,
        orchestrator_is_secure=state.is_secure if state else False,
        secret=gang.secret,
        backend="nccl" if needs_gpus else "gloo",
        checkpoint_url=store.signed_get(kept.key, seconds, "checkpoint.pth") if kept and kept.key else None,
        checkpoint_sha256=kept.sha256 if kept else None,
    )
