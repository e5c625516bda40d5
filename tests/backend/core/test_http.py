"""The shape of every error, the headers of every answer, the size of every body."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel, StringConstraints

from gridx.core.errors import TooManyAttempts
from gridx.core.http import HttpGuard, install_error_handlers
from gridx.core.text import Id, Text


class Thing(BaseModel):
    name: Annotated[Text, StringConstraints(max_length=10)]
    size: int = 0
    loss: float | None = None


@pytest.fixture
def client() -> Iterator[TestClient]:
    app = FastAPI()

    @app.post("/things")
    def make(thing: Thing) -> Thing:
        return thing

    @app.get("/things/{thing_id}")
    def look(thing_id: Id) -> int:
        return thing_id

    @app.get("/fails")
    def fails() -> None:
        raise RuntimeError("the password is swordfish")

    @app.get("/fails-late")
    def fails_late() -> StreamingResponse:
        def content() -> Iterator[bytes]:
            yield b"some"
            raise RuntimeError("half way")

        return StreamingResponse(content())

    @app.get("/busy")
    def busy() -> None:
        raise TooManyAttempts("slower, please", 30)

    @app.get("/own-headers")
    def own_headers() -> JSONResponse:
        return JSONResponse({}, headers={"Content-Security-Policy": "sandbox", "Cache-Control": "max-age=60"})

    @app.post("/stream")
    @app.post("/below/{name}")
    async def stream(request: Request) -> int:
        return sum([len(block) async for block in request.stream()])

    install_error_handlers(app)
    app.add_middleware(HttpGuard, streaming={"/stream": 2_000_000, "/below/": None}, is_https=True)
    with TestClient(app) as client:
        yield client


def send(client: TestClient, body: str | bytes, path: str = "/things") -> Any:
    return client.post(path, content=body, headers={"Content-Type": "application/json"})


class TestErrors:
    def test_a_malformed_body_names_every_field_and_repeats_nothing(self, client: TestClient) -> None:
        answer = client.post("/things", json={"name": "swordfish-and-more", "size": "swordfish"})
        assert answer.status_code == 422
        assert answer.json() == {
            "code": "invalid",
            "detail": "name: string should have at most 10 characters; "
            "size: input should be a valid integer, unable to parse string as an integer",
        }

    @pytest.mark.parametrize("name", ["a\0b", "\ud800"])
    def test_text_no_database_can_store_is_malformed(self, client: TestClient, name: str) -> None:
        answer = send(client, json.dumps({"name": name}))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert answer.json()["detail"].startswith("name: ")

    def test_a_key_that_is_half_a_character_does_no_harm(self, client: TestClient) -> None:
        assert send(client, json.dumps({"\ud800": 1, "\0": 2})).status_code == 422

    @pytest.mark.parametrize("body", ["{", "", "nothing", "{'a': 1}", b"\xff\xfe", "[" * 100_000, '{"size": ' + "9" * 5000 + "}"])
    def test_what_is_no_json_is_said_to_be_none(self, client: TestClient, body: str | bytes) -> None:
        answer = send(client, body)
        assert answer.status_code in (400, 422)
        assert set(answer.json()) == {"code", "detail"}

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
    def test_numbers_that_are_none_are_refused(self, client: TestClient, number: str) -> None:
        answer = send(client, '{"name": "a", "loss": ' + number + "}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
        assert "is not JSON" in answer.json()["detail"]

    def test_their_names_inside_text_are_fine(self, client: TestClient) -> None:
        assert client.post("/things", json={"name": "NaN"}).json()["name"] == "NaN"

    def test_an_unknown_route_is_named(self, client: TestClient) -> None:
        answer = client.get("/nothing?token=swordfish")
        assert (answer.status_code, answer.json()) == (404, {"code": "not_found", "detail": "there is no GET /nothing"})

    def test_an_unknown_method_is_named(self, client: TestClient) -> None:
        answer = client.put("/things", json={})
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        assert answer.headers["allow"] == "POST"

    def test_an_error_of_ours_keeps_its_headers(self, client: TestClient) -> None:
        answer = client.get("/busy")
        assert (answer.status_code, answer.json()) == (429, {"code": "too_many_attempts", "detail": "slower, please"})
        assert answer.headers["retry-after"] == "30"

    def test_an_unexpected_one_says_nothing_of_its_cause(self, client: TestClient) -> None:
        with TestClient(client.app, raise_server_exceptions=False) as quiet:
            answer = quiet.get("/fails")
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert "swordfish" not in answer.text

    def test_one_in_the_middle_of_an_answer_breaks_it_off(self, client: TestClient) -> None:
        with pytest.raises(RuntimeError, match="half way"):
            client.get("/fails-late")

    @pytest.mark.parametrize("thing", ["0", "-1", str(2**53 + 1), "9" * 100, "1e3", "x"])
    def test_ids_out_of_range_are_malformed(self, client: TestClient, thing: str) -> None:
        assert client.get(f"/things/{thing}").status_code == 422
        assert client.get(f"/things/{2**53}").status_code == 200


class TestHeaders:
    @pytest.mark.parametrize("path", ["/things/1", "/nothing", "/busy"])
    def test_every_answer_has_them(self, client: TestClient, path: str) -> None:
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["strict-transport-security"] == "max-age=31536000"
        assert headers["cache-control"] == "no-store"

    def test_also_a_failure(self, client: TestClient) -> None:
        with TestClient(client.app, raise_server_exceptions=False) as quiet:
            assert quiet.get("/fails").headers["x-content-type-options"] == "nosniff"

    def test_a_route_may_set_its_own(self, client: TestClient) -> None:
        headers = client.get("/own-headers").headers
        assert (headers["content-security-policy"], headers["cache-control"]) == ("sandbox", "max-age=60")


class TestBodies:
    @pytest.mark.parametrize("is_announced", [True, False])
    def test_over_the_cap_they_are_refused(self, client: TestClient, is_announced: bool) -> None:
        block = b" " * 65536
        body: Any = block * 17 if is_announced else iter([block] * 17)
        answer = client.post("/things", content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert answer.headers["x-content-type-options"] == "nosniff"

    def test_just_under_it_they_pass(self, client: TestClient) -> None:
        body = b'{"name": "a"}'
        assert send(client, body + b" " * ((1 << 20) - len(body))).status_code == 200

    @pytest.mark.parametrize(
        ("path", "size", "status"),
        [
            ("/stream", 2_000_000, 200),
            ("/stream", 2_000_001, 413),
            ("/below/x", 3_000_000, 200),
            ("/stream/", 1_100_000, 413),
            ("/streamer", 1_100_000, 413),
        ],
    )
    def test_routes_that_stream_have_caps_of_their_own(self, client: TestClient, path: str, size: int, status: int) -> None:
        assert client.post(path, content=b"x" * size, follow_redirects=False).status_code == status

    @pytest.mark.parametrize("length", ["-1", "x", "1" * 30])
    def test_a_nonsensical_length_opens_no_door(self, client: TestClient, length: str) -> None:
        answer = client.post("/things", content=b'{"name": "a"}', headers={"Content-Length": length, "Content-Type": "application/json"})
        assert answer.status_code in (200, 400, 413, 422)
