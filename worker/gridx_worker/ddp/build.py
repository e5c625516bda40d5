"""The agent's slots for ranks, made from its settings."""

from pathlib import Path

import docker

from gridx_worker.config import Config
from gridx_worker.ddp.lanes import RankLanes
from gridx_worker.ddp.sandboxes import DockerRanks, ProcessRanks, RankSandbox


def make_lanes(config: Config, folder: Path) -> RankLanes:
    """`folder`: the agent's own. Each slot gets a sandbox and a folder in it."""

    def make_sandbox(own: Path) -> RankSandbox:
        if config.sandbox == "process":
            return ProcessRanks(folder=own, limits=config.limits, python=config.python, pip=config.pip)
        return DockerRanks(
            docker.from_env(timeout=60), network=config.ddp.docker_network, agent_id=config.name, folder=own, limits=config.limits,
            image=config.image, pip=config.pip,
        )  # fmt: skip

    return RankLanes(
        config.ddp,
        agent_id=config.name,
        folder=folder,
        server=config.server,
        cache_bytes=config.cache_bytes,
        heartbeat_s=config.heartbeat_s,
        certificate=config.ddp_certificate.read_bytes() if config.ddp_certificate else None,
        make_sandbox=make_sandbox,
    )
