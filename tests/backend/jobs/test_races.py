"""Contested paths: many threads, and two processes, want the same thing at once; one gets it, and no credit is made or lost."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Barrier
from typing import Any

from tests.backend.conftest import Person
from tests.backend.jobs.conftest import SCRIPT, FakeAgent, World, pth, weights
from tests.backend.jobs.race_processes import (
    cancel_in_process,
    claim_in_process,
    complete_in_process,
    either,
    in_two_processes,
    submit_in_process,
)


def together(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Run `action(0..count-1)` in threads that start at the same moment."""
    barrier = Barrier(count)

    def run(index: int) -> Any:
        barrier.wait(30)
        return action(index)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def poor(world: World, person: Person, credits: int) -> None:
    """Leave a buyer with so many credits."""
    from gridx.ledger import accounts, transfers

    with world.database.write() as session:
        transfers.transfer(
            session,
            reference=f"test:{person.id}",
            source=accounts.wallet_code(person.id),
            target="mint",
            amount=100 - credits,
            reason="test",
            now=world.clock.now(),
        )


def dataset(world: World, buyer: Person) -> int:
    csv = b"x,y\n" + b"".join(b"%d,1\n" % n for n in range(50))
    return world.api.post("/datasets", content=csv, headers=buyer.headers).json()["id"]


class TestSubmit:
    def test_twenty_submits_with_five_credits_make_one_job(self, world: World, buyer: Person) -> None:
        dataset_id = dataset(world, buyer)
        poor(world, buyer, 5)
        body = {"title": "t", "script": SCRIPT, "dataset_id": dataset_id}
        statuses = together(20, lambda _: world.api.post("/jobs", json=body, headers=buyer.headers).status_code)
        assert sorted(statuses) == [201] + [402] * 19
        assert world.wallet(buyer) == {"user_id": buyer.id, "credits": 0, "held": 5, "role": "buyer"}
        assert len(world.api.get(f"/jobs/list/{buyer.id}", headers=buyer.headers).json()) == 1

    def test_the_same_from_two_processes(self, world: World, buyer: Person) -> None:
        dataset_id = dataset(world, buyer)
        poor(world, buyer, 5)
        one = (world.database.engine.url.render_as_string(hide_password=False), str(world.settings.home), buyer.id, dataset_id, 10)
        codes = list(chain.from_iterable(in_two_processes(submit_in_process, one, one)))
        assert sorted(codes) == ["insufficient_funds"] * 19 + ["made"]
        assert world.wallet(buyer)["held"] == 5

    def test_twenty_with_one_idempotency_key_make_one_job(self, world: World, buyer: Person) -> None:
        dataset_id = dataset(world, buyer)
        body = {"title": "t", "script": SCRIPT, "dataset_id": dataset_id}
        headers = buyer.headers | {"Idempotency-Key": "k"}
        answers = together(20, lambda _: world.api.post("/jobs", json=body, headers=headers))
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.json()["job_id"] for answer in answers}) == 1
        assert world.credits(buyer) == 95


class TestClaim:
    def test_eight_agents_get_one_subtask_once(self, world: World, buyer: Person) -> None:
        agents = [world.agent(f"a{index}") for index in range(8)]
        world.job(buyer, chunks=1)
        tasks = together(8, lambda index: agents[index].request())
        assert [task["task_id"] for task in tasks].count(None) == 7

    def test_eight_agents_share_five_subtasks_without_overlap(self, world: World, buyer: Person) -> None:
        agents = [world.agent(f"a{index}") for index in range(8)]
        world.job(buyer, chunks=5)
        got: list[Any] = []
        for _ in range(3):  # a skipped row is not lost: who got nothing asks again
            got = [task["task_id"] for task in together(8, lambda index: agents[index].request())]
        given = [task for task in got if task is not None]
        assert len(given) == len(set(given)) == 5

    def test_the_same_from_two_processes(self, world: World, buyer: Person) -> None:
        # These processes read the system's clock, so the leases must be young by that clock as well.
        agents = [world.agent(f"a{index}") for index in range(8)]
        world.job(buyer, chunks=5)
        url, home = world.database.engine.url.render_as_string(hide_password=False), str(world.settings.home)
        halves = [(url, home, [agent.token for agent in agents[start::2]]) for start in (0, 1)]
        got = list(chain.from_iterable(in_two_processes(claim_in_process, *halves)))
        assert len({subtask for subtask, _ in got}) == len(got) <= 5

    def test_one_agent_asking_eight_times_at_once_gets_one_attempt(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=5)
        answers = together(8, lambda _: agent.call("request_task"))
        tokens = {answer.json().get("lease_token") for answer in answers if answer.status_code == 200} - {None}
        assert len(tokens) == 1


class TestComplete:
    def test_ten_times_at_once_pays_once(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        data = pth(weights())
        agent.upload(data)
        answers = together(10, lambda _: agent.complete(data))
        assert {answer.status_code for answer in answers} == {200}
        world.drain()
        assert {agent.complete(data).json()["status"] for _ in range(3)} == {"COMPLETED"}
        assert world.credits(agent.owner) == 101
        assert world.credits(buyer) == 99

    def test_five_times_from_each_of_two_processes_pays_once(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, chunks=1)
        agent.request()
        data = pth(weights())
        agent.upload(data)
        url, home = world.database.engine.url.render_as_string(hide_password=False), str(world.settings.home)
        body = {
            "task_id": agent.task["task_id"],
            "lease_token": agent.task["lease_token"],
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
        }
        one = (url, home, agent.token, body, 5)
        assert list(chain.from_iterable(in_two_processes(complete_in_process, one, one))) == ["VERIFYING"] * 10
        world.drain()
        assert (world.credits(agent.owner), world.credits(buyer)) == (101, 99)

    def test_verified_by_many_threads_at_once_it_is_paid_once(self, world: World, buyer: Person) -> None:
        from gridx.background.aggregate import aggregate_next
        from gridx.background.verify import verify_next

        agents = [world.agent(f"a{index}") for index in range(3)]
        job_id = world.job(buyer, chunks=3)
        for agent in agents:
            agent.request()
            agent.finish(weights())

        def work(_: int) -> None:
            while verify_next(world.work) or aggregate_next(world.work):
                pass

        together(4, work)
        world.drain()
        assert world.view(buyer, job_id)["status"] == "COMPLETED"
        assert [world.credits(agent.owner) for agent in agents] == [101] * 3

    def test_a_stale_attempt_gets_409_and_its_bytes_are_never_used(self, world: World, buyer: Person) -> None:
        agents = [world.agent("a"), world.agent("b")]
        job_id = world.job(buyer, chunks=1)
        old = agents[0].request()
        agents[0].upload(pth(weights(9.0)))
        agents[0].fail("shutdown", "going down")
        agents[1].request()
        agents[1].upload(pth(weights(1.0)))
        assert agents[0].complete(pth(weights(9.0))).status_code == 409
        # Not even with the other's upload in place: the token holds its own attempt alone.
        agents[0].task = old
        assert agents[0].complete(pth(weights(1.0))).status_code == 409
        agents[1].complete(pth(weights(1.0)))
        world.drain()
        import io

        import torch

        model = torch.load(io.BytesIO(world.model(buyer, job_id)), weights_only=True)
        assert torch.equal(model["fc.bias"], torch.full((3,), 1.0))


class TestCancelAgainstComplete:
    def test_never_both_refunds_and_pays(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        for _ in range(8):
            before = (world.credits(buyer), world.credits(agent.owner))
            job_id = world.job(buyer, chunks=1)
            agent.request()
            data = pth(weights())
            agent.upload(data)
            actions: list[Callable[[], Any]] = [
                lambda data=data: agent.complete(data),
                lambda job_id=job_id: world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers),
            ]
            completed, cancelled = together(2, lambda index, actions=actions: actions[index]())
            assert completed.status_code in (200, 409)
            assert cancelled.status_code == 200
            world.drain()
            paid = world.credits(agent.owner) - before[1]
            assert before[0] - world.credits(buyer) == paid
            assert paid == (1 if completed.status_code == 200 else 0)
            assert world.wallet(buyer)["held"] == 0

    def test_the_same_from_two_processes(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        job_id = world.job(buyer, chunks=1)
        agent.request()
        data = pth(weights())
        agent.upload(data)
        url, home = world.database.engine.url.render_as_string(hide_password=False), str(world.settings.home)
        body = {
            "task_id": agent.task["task_id"],
            "lease_token": agent.task["lease_token"],
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
        }
        answers = in_two_processes(
            either,
            (complete_in_process, url, home, agent.token, body, 3),
            (cancel_in_process, url, home, buyer.id, job_id, 3),
        )
        [completions] = [codes for codes in answers if "CANCELLED" not in codes]
        world.drain()
        paid = world.credits(agent.owner) - 100
        assert len(set(completions)) == 1, "all the same: before the cancellation, or after it"
        assert paid == (1 if completions[0] == "VERIFYING" else 0)
        assert world.credits(buyer) == 100 - paid
        assert world.wallet(buyer)["held"] == 0

    def test_cancel_against_claim_leaves_no_attempt_running(self, world: World, buyer: Person) -> None:
        agents: list[FakeAgent] = [world.agent(f"a{index}") for index in range(3)]
        for _ in range(5):
            job_id = world.job(buyer, chunks=3)
            actions: list[Callable[[], Any]] = [*(agent.request for agent in agents)]
            actions.append(lambda job_id=job_id: world.api.post(f"/jobs/{job_id}/cancel", headers=buyer.headers))
            assert together(4, lambda index, actions=actions: actions[index]())[-1].status_code == 200
            assert {agent.request()["task_id"] for agent in agents} == {None}
            assert world.credits(buyer) == 100
            assert {row["status"] for row in world.view(buyer, job_id)["subtasks"]} <= {"CANCELLED"}
