"""Agents that take ranks, and an orchestrator driven by hand."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from gridx.agents.service import AgentActor, authenticate
from gridx.background.seal import seal_next
from gridx.jobs import members
from gridx.orchestrator.platform import Former, sign
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import FakeAgent, World, pth, weights

PLACE = "machine:one"
DDP_SCRIPT = "import torch\nimport torch.distributed as dist\ndist.init_process_group()\ntorch.save({'w': torch.zeros(2)}, 'model.pth')\n"


@dataclass
class RankAgent:
    """One slot of an agent."""

    world: World
    agent: FakeAgent
    slot: int = 1
    place: str = PLACE
    address: str = ""
    instance: str = "first"
    task: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def rank(self) -> int:
        return self.task["gang"]["rank"]

    @property
    def who(self) -> tuple[AgentActor, int, str]:
        with self.world.database.read() as session:
            return authenticate(session, self.agent.token), self.task["task_id"], self.task["lease_token"]

    def ask(self) -> bool:
        """Offer the slot; whether a rank was given."""
        answer = self.agent.call("request_rank", slot=self.slot, place=self.place, address=self.address)
        assert answer.status_code == 200, answer.text
        if answer.json()["task_id"] is not None:
            self.task = self.agent.task = answer.json()
            return True
        return False

    def register(self, port: int = 29500, handshake_port: int = 0) -> members.Rank:
        with self.world.database.write() as session:
            return members.register(session, *self.who, self.instance, self.address, port, handshake_port, self.world.clock.now())

    def ready(self, reached: list[int] | None = None, unreachable: list[int] | None = None) -> members.Readiness:
        with self.world.database.write() as session:
            return members.get_ready(session, *self.who, reached or [], unreachable or [], self.world.clock.now())

    def beat(self, step: int = 1) -> str | None:
        with self.world.database.write() as session:
            return members.beat(
                session, *self.who, self.rank, epoch=1, step=step, loss=0.5, samples_per_s=10.0,
                now=self.world.clock.now(), settings=self.world.settings,
            )  # fmt: skip

    def leave(self) -> None:
        with self.world.database.write() as session:
            members.leave(session, *self.who, train_s=1.0, loss=0.25, accuracy=0.75, now=self.world.clock.now())

    def save(self, number: int, state: Any) -> int:
        """Upload a checkpoint; the last status code."""
        data = state if isinstance(state, bytes) else pth(state)
        link = self.agent.about("checkpoint_url", number=number, size=len(data))
        if link.status_code != 200:
            return link.status_code
        assert self.world.api.put(link.json()["url"], content=data, headers=link.json()["headers"]).status_code == 204
        sha256 = hashlib.sha256(data).hexdigest()
        return self.agent.about("checkpoint", number=number, size=len(data), sha256=sha256).status_code


class Play:
    """A world with an orchestrator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.former = Former(world.database, world.settings, world.clock, port=50051, is_secure=False)
        self.sign()

    def sign(self, problem: str | None = None) -> None:
        sign(self.world.database, self.world.clock.now(), 50051, is_secure=False, problem=problem)

    def agent(
        self, name: str, owner: Person | None = None, slots: int = 1, place: str = PLACE, address: str = "", **hardware: Any
    ) -> list[RankAgent]:
        """An agent that offers slots and has asked for ranks."""
        made = self.world.agent(name, owner, **hardware)
        ranks = [RankAgent(self.world, made, slot, place, address) for slot in range(1, slots + 1)]
        for each in ranks:
            assert not each.ask()
        return ranks

    def agents(self, names: str, **options: Any) -> list[RankAgent]:
        return [each for name in names.split() for each in self.agent(name, **options)]

    def job(self, buyer: Person, ranks: int, **options: Any) -> int:
        return self.world.job(buyer, script=DDP_SCRIPT, mode="ddp", chunks=ranks, **options)

    def form(self) -> bool:
        """One look of the former."""
        return self.former.step()

    def start(self, agents: list[RankAgent]) -> list[RankAgent]:
        """Form a gang and let all its members come and get ready; in the order of their ranks."""
        for each in agents:
            each.ask()
        assert self.form()
        gang = sorted((each for each in agents if each.ask()), key=lambda each: each.rank)
        for each in gang:
            assert each.register().refused is None
        for each in gang:
            each.ready()
        assert all(each.ready().can_start for each in gang)
        return gang

    def finish(self, gang: list[RankAgent], state: Any = None) -> None:
        """All end well, and rank 0's model is verified."""
        for each in gang[1:]:
            each.leave()
        gang[0].agent.finish(state if state is not None else weights(), loss=0.25)
        self.drain()

    def drain(self) -> None:
        self.world.drain()
        while seal_next(self.world.work):
            pass

    def pause(self, seconds: float = 31.0) -> None:
        """Let the pause after a broken gang pass; agents that still ask stay online."""
        self.world.clock.advance(seconds)
        self.sign()
