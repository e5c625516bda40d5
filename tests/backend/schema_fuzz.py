"""Calls made up from the OpenAPI schema, right ones and wrong ones: no answer is a 5xx, and each is as the schema says."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from pydantic import SecretStr
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gridx.core.db import Database
from gridx.core.settings import Settings
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock
from tests.backend.jobs.conftest import CSV, FakeAgent, World, make_world
from tests.support import databases

_IS_LONG = os.environ.get("GRIDX_HYPOTHESIS") == "long"
EXAMPLES = 200 if _IS_LONG else 5
"""Calls of each operation, by each caller, for each of: what the schema allows, what it does not."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ON_ERRORS = [not_a_server_error, status_code_conformance]
ENDS_ITS_CALLER = {("post", "/auth/logout_all")}


class Caller:
    """Somebody with a token and things of their own, so that some calls find what they name."""

    def __init__(self, world: World, token: str, own: dict[str, Any]) -> None:
        self.world, self.token, self.own = world, token, own
        self.answers: Counter[int] = Counter()

    def check(self, case: Case, is_own: bool) -> None:
        if is_own:
            for where in (case.path_parameters, case.query, case.body):
                if isinstance(where, dict):
                    where.update({name: self.own[name] for name in where if name in self.own})
        if isinstance(case.body, dict) and isinstance(case.body.get("wait_s"), int | float):
            case.body["wait_s"] = 0  # nobody has to be kept waiting for it
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = case.call(headers=headers)
        self.answers[int(answer.status_code)] += 1
        if answer.status_code >= 400:  # one shape for all, also where the right answer is plain text
            assert answer.headers["content-type"] == ["application/json"], case.operation.label
            assert set(answer.json()) == {"code", "detail"}, answer.text
        case.validate_response(answer, checks=ON_ERRORS if answer.status_code >= 400 else CHECKS, headers=headers)


def fuzz(caller: Caller, wanted: Callable[[str, str], bool]) -> int:
    """Call each wanted operation with right and wrong data. Returns how many operations there are."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", caller.world.api.app)
    count = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if not wanted(operation.method.lower(), operation.path):
            continue
        count += 1
        is_sent_something = bool(list(operation.iter_parameters()) or operation.body)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE) if is_sent_something else (GenerationMode.POSITIVE,):

            @hypothesis.settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                suppress_health_check=list(cast("Iterable[HealthCheck]", HealthCheck)),
                phases=[Phase.explicit, Phase.generate],
            )
            @given(case=operation.as_strategy(generation_mode=mode), is_own=st.booleans())
            def call(case: Case, is_own: bool) -> None:
                caller.check(case, is_own)

            try:
                call()
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE, operation.label  # where any bytes are right, none are wrong
    return count


@pytest.mark.slow
@pytest.mark.timeout(3600 if _IS_LONG else 300)
class SchemaFuzz:
    """The search, for the test module of each database to inherit: pytest-xdist runs a file on one core."""

    kind: databases.Kind

    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[World]:
        clock, url = FakeClock(), databases.create(self.kind, tmp_path)
        settings = Settings(home=tmp_path, jwt_secret_key=SecretStr(SECRET), _env_file=None)  # pyright: ignore[reportCallIssue]
        made = make_world(Database(url), settings, clock, LocalStore(tmp_path / "objects", SECRET, clock=clock))
        with made.api:
            yield made
            assert made.ledger_problems() == []
        made.work.keeper.close()
        made.database.dispose()
        databases.drop(url)

    @pytest.fixture
    def user(self, world: World) -> Caller:
        """A buyer and seller with a dataset, a job and a machine."""
        person = world.person("ada@example.com", "both")
        dataset_id = world.api.post("/datasets", content=CSV, headers=person.headers).json()["id"]
        job_id = world.job(person)
        world.agent("own", person)
        return Caller(world, person.token, {"user_id": person.id, "job_id": job_id, "dataset_id": dataset_id, "agent_id": "own"})

    @pytest.fixture
    def agent(self, world: World, user: Caller) -> Caller:
        """A machine at work on the user's job."""
        made: FakeAgent = world.agent("a", world.person("sam@example.com", "seller"))
        task = made.request()
        return Caller(world, made.token, {"task_id": task["task_id"], "lease_token": task["lease_token"]})

    def test_by_a_user(self, user: Caller, record_property: Callable[[str, object], None]) -> None:
        count = fuzz(user, lambda method, path: (method, path) not in ENDS_ITS_CALLER)
        still = user.world.api.get("/auth/me", headers={"Authorization": f"Bearer {user.token}"})
        assert still.status_code == 200, "no call has ended the user's own token, else the rest was refused at the door"
        record_property("counted", f"{count} operations, {user.answers.total()} calls by a user: {dict(sorted(user.answers.items()))}")

    def test_by_an_agent(self, agent: Caller, record_property: Callable[[str, object], None]) -> None:
        count = fuzz(agent, lambda method, path: path.startswith("/agent/"))
        record_property("counted", f"{count} operations, {agent.answers.total()} calls by an agent: {dict(sorted(agent.answers.items()))}")
