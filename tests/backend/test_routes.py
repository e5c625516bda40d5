"""Who may call what: every route of the application, with every kind of token but its own.

A route that is not in `ROUTES` fails `TestList`: whoever adds one says there for whom it is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from fastapi.routing import iter_route_contexts
from httpx import Response
from jose import jwt
from passlib.hash import bcrypt_sha256  # pyright: ignore[reportAttributeAccessIssue] - made at run time
from pydantic import SecretStr
from sqlalchemy import func, select, text

from gridx.accounts import passwords
from gridx.accounts.deps import SESSION_COOKIE
from gridx.app import create_app
from gridx.core.db import Base, Database
from gridx.core.settings import Settings
from gridx.core.tokens import issue_jwt
from gridx.storage.local import LocalStore
from tests.backend.conftest import SECRET, FakeClock, Person
from tests.backend.jobs.conftest import CSV, HARDWARE, SCRIPT, FakeAgent, World, make_world, pth, weights

Who = Literal["public", "user", "buyer", "seller", "agent", "key", "link"]

# `user`: anybody who is logged in. `link`: the address carries its own permission.
ROUTES: dict[tuple[str, str], Who] = {
    ("GET", "/health"): "public",
    ("GET", "/metrics"): "public",
    ("GET", "/openapi.json"): "public",
    ("HEAD", "/openapi.json"): "public",
    ("GET", "/docs"): "public",
    ("GET", "/docs/start.js"): "public",
    ("MOUNT", "/docs/assets"): "public",
    ("MOUNT", "/assets"): "public",
    ("GET", "/"): "public",
    ("GET", "/app"): "public",
    ("GET", "/app/{path:path}"): "public",
    ("GET", "/stats/summary"): "public",
    ("GET", "/install.sh"): "public",
    ("GET", "/downloads/worker"): "public",
    ("GET", "/downloads/{file}"): "public",
    ("POST", "/auth/register"): "public",
    ("POST", "/auth/login"): "public",
    ("POST", "/auth/logout"): "public",
    ("POST", "/auth/logout_all"): "user",
    ("GET", "/auth/me"): "user",
    ("POST", "/auth/password"): "user",
    ("GET", "/auth/wallet/{user_id}"): "user",
    ("GET", "/auth/wallet/{user_id}/transfers"): "user",
    ("GET", "/stats/agents"): "user",
    ("GET", "/stats/agents/online"): "user",
    ("GET", "/stats/agents/{agent_id}"): "user",
    ("GET", "/stats/my-agents/{user_id}"): "user",
    ("GET", "/stats/seller-tasks/{user_id}"): "user",
    ("POST", "/datasets"): "buyer",
    ("GET", "/datasets"): "buyer",
    ("POST", "/datasets/uploads"): "buyer",
    ("GET", "/datasets/uploads/{upload_id}"): "buyer",
    ("HEAD", "/datasets/uploads/{upload_id}"): "buyer",
    ("PATCH", "/datasets/uploads/{upload_id}"): "buyer",
    ("DELETE", "/datasets/uploads/{upload_id}"): "buyer",
    ("GET", "/datasets/{dataset_id}"): "buyer",
    ("GET", "/datasets/{dataset_id}/preview"): "buyer",
    ("DELETE", "/datasets/{dataset_id}"): "buyer",
    ("POST", "/jobs"): "buyer",
    ("POST", "/jobs/upload"): "buyer",
    # The role may have changed since: whoever owns a job may look at it and end it.
    ("GET", "/jobs/list/{user_id}"): "user",
    ("GET", "/jobs/download/{job_id}"): "user",
    ("GET", "/jobs/{job_id}"): "user",
    ("POST", "/jobs/{job_id}/cancel"): "user",
    ("DELETE", "/jobs/{job_id}"): "user",
    ("GET", "/jobs/{job_id}/results"): "user",
    ("GET", "/jobs/{job_id}/artifacts"): "user",
    ("GET", "/jobs/{job_id}/script"): "user",
    ("GET", "/jobs/{job_id}/requirements"): "user",
    ("GET", "/jobs/{job_id}/card"): "user",
    ("GET", "/jobs/{job_id}/card.md"): "user",
    ("GET", "/jobs/{job_id}/metrics.csv"): "user",
    ("GET", "/jobs/{job_id}/metrics"): "user",
    ("GET", "/jobs/{job_id}/logs"): "user",
    ("POST", "/agent/keys"): "seller",
    ("GET", "/agent/keys"): "seller",
    ("DELETE", "/agent/keys/{key_id}"): "seller",
    ("DELETE", "/agent/{agent_id}"): "seller",
    ("POST", "/agent/register"): "key",
    ("POST", "/agent/heartbeat"): "agent",
    ("POST", "/agent/profile"): "agent",
    ("POST", "/agent/request_task"): "agent",
    ("POST", "/agent/request_rank"): "agent",
    ("POST", "/agent/checkpoint_url"): "agent",
    ("POST", "/agent/checkpoint"): "agent",
    ("POST", "/agent/metrics"): "agent",
    ("POST", "/agent/logs"): "agent",
    ("POST", "/agent/output_url"): "agent",
    ("POST", "/agent/upload_url"): "agent",
    ("POST", "/agent/upload_result"): "agent",
    ("POST", "/agent/complete_task"): "agent",
    ("POST", "/agent/fail_task"): "agent",
    ("GET", "/files/{key:path}"): "link",
    ("HEAD", "/files/{key:path}"): "link",
    ("PUT", "/files/{key:path}"): "link",
}
WITH_WEB_APP = {("MOUNT", "/assets"), ("GET", "/"), ("GET", "/app"), ("GET", "/app/{path:path}")}
# 404 until `make wheels` has run; test_downloads.py asks them.
WITH_WHEELS = {("GET", "/install.sh"), ("GET", "/downloads/worker"), ("GET", "/downloads/{file}")}
BY_USER = [route for route, who in ROUTES.items() if who in ("user", "buyer", "seller")]
BY_BUYER = [route for route, who in ROUTES.items() if who == "buyer"]
BY_SELLER = [route for route, who in ROUTES.items() if who == "seller"]
BY_AGENT = [route for route, who in ROUTES.items() if who == "agent"]
BY_LINK = [route for route, who in ROUTES.items() if who == "link"]
OF_OBJECTS = [(method, path) for method, path in BY_USER if "{" in path and path != "/stats/agents/{agent_id}"]
_OF_THE_MACHINE = ("/agent/profile", "/agent/request_task", "/agent/request_rank", "/agent/heartbeat")
ABOUT_TASK = [route for route in BY_AGENT if route[1] not in _OF_THE_MACHINE]


@dataclass
class Scene:
    """A world in which every route has something to act on, and strangers who may not."""

    world: World
    buyer: Person
    seller: Person
    other_buyer: Person
    other_seller: Person
    agent: FakeAgent
    other_agent: FakeAgent
    enrolment_key: str
    known: dict[str, Any]
    """Values for the parts of paths."""
    bodies: dict[str, dict[str, Any]]
    """Path -> how httpx is told the body of a call that its rightful caller could make."""

    def call(self, route: tuple[str, str], token: str | None, **more: Any) -> Response:
        method, path = route
        options = self.bodies.get(f"{method} {path}", {}) | more
        headers = options.pop("headers", {})
        if token is not None:
            headers = headers | {"Authorization": f"Bearer {token}"}
        path = path.replace(":path", "").format(**self.known)
        return self.world.api.request(method, path, headers=headers, **options)

    def rows(self) -> dict[str, int]:
        """How many rows each table has, and what the statuses and tokens are: a refused call changes none of it."""
        with self.world.database.read() as session:
            counts = {table.name: session.scalar(select(func.count()).select_from(table)) or 0 for table in Base.metadata.sorted_tables}
            for name, column in (("jobs", "status"), ("attempts", "status"), ("agents", "token_hash"), ("datasets", "deleted_at")):
                values = [str(row[0]) for row in session.execute(text(f"SELECT {column} FROM {name} ORDER BY id"))]
                counts[f"{name}.{column} {values}"] = len(values)
        return counts


def make_scene(world: World) -> Scene:
    buyer, other_buyer = world.person("ada@buyers.example.com"), world.person("bob@buyers.example.com")
    seller, other_seller = world.person("sam@sellers.example.com", "seller"), world.person("bea@sellers.example.com", "seller")
    made = world.api.post("/agent/keys", json={"label": "k"}, headers=seller.headers).json()
    registered = world.api.post(
        "/agent/register", json={"agent_id": "a", "hardware": HARDWARE}, headers={"Authorization": f"Bearer {made['key']}"}
    )
    agent = FakeAgent(world.api, "a", registered.json()["token"], seller)
    other_agent = world.agent("b", other_seller)
    dataset_id = world.api.post("/datasets", content=CSV, headers=buyer.headers).json()["id"]
    upload_id = world.api.post("/datasets/uploads", json={"name": "d.csv", "bytes": 10}, headers=buyer.headers).json()["upload_id"]
    job_id = world.job(buyer)
    task = agent.request()
    link = agent.about("upload_url", size=10).json()["url"].partition("?")[0]
    of_task = {"task_id": task["task_id"], "lease_token": task["lease_token"]}
    sha256 = "0" * 64
    bodies: dict[str, dict[str, Any]] = {
        "POST /auth/password": {"json": {"old": "correct horse", "new": "another horse"}},
        "POST /datasets": {"content": CSV, "headers": {"Content-Type": "text/csv"}},
        "POST /datasets/uploads": {"json": {"name": "d.csv", "bytes": 10}},
        "PATCH /datasets/uploads/{upload_id}": {"content": b"x,y\n", "headers": {"Upload-Offset": "0"}},
        "POST /jobs": {"json": {"title": "t", "script": SCRIPT, "dataset_id": dataset_id}},
        "POST /jobs/upload": {"data": {"title": "t", "dataset_id": str(dataset_id)}, "files": {"file_code": ("train.py", SCRIPT.encode())}},
        "POST /agent/keys": {"json": {"label": "k"}},
        "POST /agent/register": {"json": {"agent_id": "c", "hardware": HARDWARE}},
        "POST /agent/heartbeat": {"json": of_task},
        "POST /agent/profile": {"json": {"paused": "working hours"}},
        "POST /agent/request_task": {"json": {}},
        "POST /agent/request_rank": {"json": {"slot": 1, "place": "machine:one"}},
        "POST /agent/checkpoint_url": {"json": of_task | {"number": 1, "size": 10}},
        "POST /agent/checkpoint": {"json": of_task | {"number": 1, "size": 10, "sha256": sha256}},
        "POST /agent/metrics": {"json": of_task | {"points": [{"seq": 0, "loss": 0.5}]}},
        "POST /agent/logs": {"json": of_task | {"offset": 0, "text": "hello"}},
        "POST /agent/output_url": {"json": of_task | {"name": "x", "size": 10, "sha256": "0" * 64}},
        "POST /agent/upload_url": {"json": of_task | {"size": 10}},
        "POST /agent/upload_result": {
            "params": {"task_id": task["task_id"]},
            "headers": {"Gridx-Lease-Token": task["lease_token"]},
            "content": pth(weights()),
        },
        "POST /agent/complete_task": {"json": of_task | {"sha256": sha256, "size": 10, "metrics": {}}},
        "POST /agent/fail_task": {"json": of_task | {"kind": "agent", "reason": "the disk is full"}},
        "PUT /files/{key:path}": {"content": b"x" * 10},
    }
    known = {
        "user_id": buyer.id,
        "job_id": job_id,
        "dataset_id": dataset_id,
        "upload_id": upload_id,
        "agent_id": "a",
        "key_id": made["id"],
        "key": link.removeprefix("/files/"),
        "path": "x",
    }
    return Scene(world, buyer, seller, other_buyer, other_seller, agent, other_agent, made["key"], known, bodies)


def open_world(url: str, folder: Path) -> World:
    clock = FakeClock()
    settings = Settings(home=folder, jwt_secret_key=SecretStr(SECRET), _env_file=None)  # pyright: ignore[reportCallIssue]
    return make_world(Database(url), settings, clock, LocalStore(folder / "objects", SECRET, clock=clock))


@pytest.fixture(scope="module")
def scene(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One scene for all refusals: none of them changes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "bcrypt_sha256", bcrypt_sha256.using(rounds=4))
        world = open_world(module_database_url, tmp_path_factory.mktemp("home"))
        with world.api:
            yield make_scene(world)
    world.work.keeper.close()
    world.database.dispose()


@pytest.fixture
def unchanged(scene: Scene) -> Iterator[None]:
    before = scene.rows()
    yield
    assert scene.rows() == before


def refused(answer: Response, *statuses: int) -> None:
    assert answer.status_code in statuses, f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    if answer.request.method != "HEAD":
        assert set(answer.json()) == {"code", "detail"}, answer.text
        assert answer.json()["code"]
        assert answer.json()["detail"]
    if answer.status_code == 401:
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def name_of(route: object) -> str:
    return " ".join(route) if isinstance(route, tuple) else str(route)


class TestList:
    def test_every_route_is_classified_and_no_other(self, tmp_path: Path) -> None:
        app = create_app(Settings(home=tmp_path, jwt_secret_key=SecretStr(SECRET), _env_file=None))  # pyright: ignore[reportCallIssue]
        found: set[tuple[str, str]] = set()
        for route in iter_route_contexts(app.routes):
            assert route.path is not None
            found |= {(method, route.path) for method in (route.methods or {"MOUNT"})}
        assert sorted(found - set(ROUTES)) == [], "say in ROUTES for whom these are"
        assert sorted(set(ROUTES) - found - WITH_WEB_APP) == [], "these are gone"
        kinds = {
            who: sum(1 for kind in ROUTES.values() if kind == who) for who in ("public", "user", "buyer", "seller", "agent", "key", "link")
        }
        print(f"{len(found)} routes: {kinds}")


class TestPublic:
    @pytest.mark.parametrize(
        "route", [route for route, who in ROUTES.items() if who == "public" and route not in WITH_WEB_APP | WITH_WHEELS], ids=name_of
    )
    def test_needs_no_token(self, scene: Scene, route: tuple[str, str]) -> None:
        method, path = route
        if method != "MOUNT":
            assert scene.world.api.request(method, path).status_code in (200, 204, 401, 422)
        for token in ("garbage", scene.agent.token):
            if path not in ("/auth/register", "/auth/login") and method != "MOUNT":
                assert scene.call(route, token).status_code in (200, 204)


def _altered(token: str) -> str:
    head, body, signature = token.split(".")
    return f"{head}.{body}.{signature[:-2]}{'AA' if signature[-2:] != 'AA' else 'BB'}"


NO_USERS: dict[str, Callable[[Scene], str | None]] = {
    "none": lambda scene: None,
    "empty": lambda scene: "",
    "garbage": lambda scene: "garbage",
    "three garbage parts": lambda scene: "a.b.c",
    "very long": lambda scene: "x" * 10_000,
    "an agent's": lambda scene: scene.agent.token,
    "an enrolment key": lambda scene: scene.enrolment_key,
    "altered": lambda scene: _altered(scene.buyer.token),
    "expired": lambda scene: issue_jwt(
        SECRET, "gridx:user", str(scene.buyer.id), scene.world.clock.now() - timedelta(days=30), timedelta(days=1), epoch=0
    ),
    "of another server": lambda scene: issue_jwt(
        "another secret" * 4, "gridx:user", str(scene.buyer.id), scene.world.clock.now(), timedelta(days=1), epoch=0
    ),
    "for another audience": lambda scene: jwt.encode(
        {"sub": str(scene.buyer.id), "aud": "gridx:link", "exp": 2**40, "epoch": 0}, SECRET, algorithm="HS256"
    ),
    "unsigned": lambda scene: (
        "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0."  # {"alg":"none","typ":"JWT"}
        + jwt.encode({"sub": str(scene.buyer.id), "aud": "gridx:user", "exp": 2**40, "epoch": 0}, SECRET, algorithm="HS256").split(".")[1]
        + "."
    ),
    "of an earlier epoch": lambda scene: issue_jwt(
        SECRET, "gridx:user", str(scene.buyer.id), scene.world.clock.now(), timedelta(days=1), epoch=-1
    ),
    "of nobody": lambda scene: issue_jwt(SECRET, "gridx:user", "999999", scene.world.clock.now(), timedelta(days=1), epoch=0),
    "of a strange subject": lambda scene: issue_jwt(SECRET, "gridx:user", "٣' OR 1=1", scene.world.clock.now(), timedelta(days=1), epoch=0),
}


@pytest.mark.usefixtures("unchanged")
class TestUsersRoutes:
    @pytest.mark.parametrize("route", BY_USER, ids=name_of)
    def test_no_token_but_a_users_counts(self, scene: Scene, route: tuple[str, str]) -> None:
        for make in NO_USERS.values():
            refused(scene.call(route, make(scene)), 401)
        # Nor does another scheme, or a token in the address.
        refused(scene.call(route, None, headers={"Authorization": f"Basic {scene.buyer.token}"}), 401)
        refused(scene.call(route, None, params={"token": scene.buyer.token, "access_token": scene.buyer.token}), 401)

    @pytest.mark.parametrize("route", BY_USER, ids=name_of)
    def test_the_caller_is_known_before_the_body_is_looked_at(self, scene: Scene, route: tuple[str, str]) -> None:
        method, path = route
        path = path.format(**scene.known)
        refused(scene.world.api.request(method, path, headers={"Authorization": "Bearer garbage"}), 401)

    @pytest.mark.parametrize("route", BY_BUYER, ids=name_of)
    def test_sellers_are_no_buyers(self, scene: Scene, route: tuple[str, str]) -> None:
        refused(scene.call(route, scene.seller.token), 403)

    @pytest.mark.parametrize("route", BY_SELLER, ids=name_of)
    def test_buyers_are_no_sellers(self, scene: Scene, route: tuple[str, str]) -> None:
        refused(scene.call(route, scene.buyer.token), 403)

    @pytest.mark.parametrize("route", OF_OBJECTS, ids=name_of)
    def test_somebody_elses_object_looks_like_none(self, scene: Scene, route: tuple[str, str]) -> None:
        stranger = scene.other_seller if ROUTES[route] == "seller" else scene.other_buyer
        if route == ("DELETE", "/datasets/uploads/{upload_id}"):  # ending what is not there is fine, and ends nothing of others
            assert scene.call(route, stranger.token).status_code == 204
            assert scene.call(("GET", route[1]), scene.buyer.token).status_code == 200
            return
        answer = scene.call(route, stranger.token)
        refused(answer, 404)
        there = dict(scene.known)
        scene.known.update(user_id=987654, job_id=987654, dataset_id=987654, upload_id="f" * 32, agent_id="nobody", key_id=987654)
        nowhere = scene.call(route, stranger.token)
        scene.known.update(there)
        assert nowhere.status_code == 404
        if route[0] != "HEAD":
            assert answer.json()["code"] == nowhere.json()["code"], "an id cannot be probed"

    @pytest.mark.parametrize("route", [("POST", "/jobs"), ("POST", "/jobs/upload")], ids=name_of)
    def test_somebody_elses_dataset_trains_no_job(self, scene: Scene, route: tuple[str, str]) -> None:
        refused(scene.call(route, scene.other_buyer.token), 404)

    @pytest.mark.parametrize("route", BY_USER, ids=name_of)
    def test_a_cookie_counts_for_our_own_pages_alone(self, scene: Scene, route: tuple[str, str]) -> None:
        if route[0] in ("GET", "HEAD"):
            return
        for headers in ({"Origin": "https://evil.example.com"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {}):
            cookie = {"Cookie": f"{SESSION_COOKIE}={scene.buyer.token}"}
            given = scene.bodies.get(" ".join(route), {}).get("headers", {})
            refused(scene.call(route, None, headers=given | cookie | headers), 401)

    def test_a_cookie_does_not_help_a_wrong_token(self, scene: Scene) -> None:
        headers = {"Cookie": f"{SESSION_COOKIE}={scene.buyer.token}"}
        refused(scene.call(("GET", "/auth/me"), "garbage", headers=headers), 401)


@pytest.mark.usefixtures("unchanged")
class TestAgentsRoutes:
    @pytest.mark.parametrize("route", BY_AGENT, ids=name_of)
    def test_no_token_but_an_agents_counts(self, scene: Scene, route: tuple[str, str]) -> None:
        for token in (
            None,
            "",
            "garbage",
            "x" * 10_000,
            scene.seller.token,
            scene.buyer.token,
            scene.enrolment_key,
            scene.agent.token + "x",
        ):
            refused(scene.call(route, token), 401)
        given = scene.bodies[" ".join(route)].get("headers", {})
        refused(scene.call(route, None, headers=given | {"Authorization": f"Basic {scene.agent.token}"}), 401)
        # A page in a browser never acts as an agent.
        cookie = {"Cookie": f"{SESSION_COOKIE}={scene.seller.token}", "Sec-Fetch-Site": "same-origin"}
        refused(scene.call(route, None, headers=given | cookie), 401)

    @pytest.mark.parametrize("route", ABOUT_TASK, ids=name_of)
    def test_another_agent_has_no_say_in_a_task(self, scene: Scene, route: tuple[str, str]) -> None:
        answer = scene.call(route, scene.other_agent.token)
        refused(answer, 409)
        assert answer.json()["code"] == "lease_lost"

    def test_a_heartbeat_for_anothers_task_is_told_to_stop(self, scene: Scene) -> None:
        answer = scene.call(("POST", "/agent/heartbeat"), scene.other_agent.token)
        assert (answer.status_code, answer.json()["cancel"]) == (200, True)

    def test_registering_takes_an_enrolment_key_alone(self, scene: Scene) -> None:
        route = ("POST", "/agent/register")
        for token in (None, "", "garbage", scene.seller.token, scene.buyer.token, scene.agent.token, scene.enrolment_key.swapcase()):
            refused(scene.call(route, token), 401)


@pytest.mark.usefixtures("unchanged")
class TestLinks:
    @pytest.mark.parametrize("route", BY_LINK, ids=name_of)
    def test_no_token_opens_a_file(self, scene: Scene, route: tuple[str, str]) -> None:
        query = {"expires": 2**40, "method": "PUT" if route[0] == "PUT" else "GET", "max": 100, "name": "x", "sig": "0" * 64}
        for token in (None, "garbage", scene.buyer.token, scene.agent.token, scene.enrolment_key):
            refused(scene.call(route, token, params=query), 403)
            refused(scene.call(route, token), 422)

    @pytest.mark.parametrize("route", BY_LINK, ids=name_of)
    def test_a_link_is_good_for_what_was_signed_alone(self, scene: Scene, route: tuple[str, str]) -> None:
        url = _link(scene, route)
        other = _link(scene, ("GET", "") if route[0] == "PUT" else ("PUT", ""))
        body = {"content": b"x"} if route[0] == "PUT" else {}
        altered = [
            url.replace("expires=", "expires=9"),
            url.replace("max=", "max=9"),
            url.replace("name=", "name=x"),
            url.replace("/jobs/", "/jobs/9"),
            url.replace("method=GET", "method=PUT") if route[0] != "PUT" else url.replace("method=PUT", "method=GET"),
            url[:-4] + "0000",
            other,
        ]
        for bad in altered:
            refused(scene.world.api.request(route[0], bad, **body), 403)

    def test_a_link_ends(self, scene: Scene) -> None:
        url = scene.world.store.signed_get("jobs/1/x", -1, "x")
        refused(scene.world.api.get(url), 403)


def _link(scene: Scene, route: tuple[str, str]) -> str:
    if route[0] == "PUT":
        return scene.world.store.signed_put(f"jobs/{scene.known['job_id']}/uploads/0000.pth", 60, 10)[0]
    return scene.world.store.signed_get(f"jobs/{scene.known['job_id']}/chunks/x/0.csv", 60, "data.csv")


class TestRightful:
    """The same calls by those whom the routes are for: not the token is what they fail by. Else the refusals above would show nothing."""

    @pytest.fixture
    def own_scene(self, make_database: Callable[..., str], tmp_path: Path) -> Iterator[Scene]:
        world = open_world(make_database("sqlite"), tmp_path / "home")
        with world.api:
            yield make_scene(world)
        world.work.keeper.close()
        world.database.dispose()

    def test_everybody_gets_through(self, own_scene: Scene) -> None:
        # What ends tokens or work comes last, and a new password before the end of all sessions.
        order = ("cancel", "/agent/complete_task", "/agent/fail_task", "{agent_id}", "{key_id}", "/auth/password", "/auth/logout_all")
        closed = [route for route, who in ROUTES.items() if who not in ("public", "link")]
        closed.sort(key=lambda route: next((place for place, part in enumerate(order, 2) if part in route[1]), route[0] == "DELETE"))
        tokens = {"seller": own_scene.seller.token, "agent": own_scene.agent.token, "key": own_scene.enrolment_key}
        buyer_token = own_scene.buyer.token
        for route in closed:
            answer = own_scene.call(route, tokens.get(ROUTES[route], buyer_token))
            assert answer.status_code < 500, f"{route}: {answer.status_code} {answer.text}"
            assert answer.status_code not in (401, 403, 404, 405, 422), f"{route}: {answer.status_code} {answer.text}"
            if route[1] == "/auth/password":
                buyer_token = answer.json()["access_token"]
        assert own_scene.world.api.get(_link(own_scene, ("GET", ""))).status_code == 404
        assert own_scene.world.api.put(_link(own_scene, ("PUT", "")), content=b"x" * 10).status_code == 204

    def test_tokens_end_with_what_gave_them(self, own_scene: Scene) -> None:
        scene = own_scene
        assert scene.call(("DELETE", "/agent/keys/{key_id}"), scene.seller.token).status_code == 200
        refused(scene.call(("POST", "/agent/heartbeat"), scene.agent.token), 401)
        refused(scene.call(("POST", "/agent/register"), scene.enrolment_key), 401)
        scene.known["agent_id"] = "b"
        assert scene.call(("DELETE", "/agent/{agent_id}"), scene.other_seller.token).status_code == 200
        refused(scene.call(("POST", "/agent/request_task"), scene.other_agent.token), 401)
        assert scene.call(("POST", "/auth/logout_all"), scene.buyer.token).status_code == 204
        refused(scene.call(("GET", "/auth/me"), scene.buyer.token), 401)
