"""The /datasets routes as a client sees them."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi.testclient import TestClient

from gridx.core.settings import Settings
from gridx.storage.local import LocalStore
from tests.backend.conftest import FakeClock, Person

LogIn = Callable[..., Person]
CSV = b"x,y\n1,2\n3,4\n5,6\n"


def leftovers(settings: Settings) -> list[Path]:
    return [path for path in settings.home.rglob("*") if path.is_file()]


class Pulled:
    """A body that knows how many of its blocks were asked for."""

    def __init__(self, blocks: int) -> None:
        self.blocks, self.count = blocks, 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.blocks):
            self.count += 1
            yield b"x" * 65536


class TestUploadDataset:
    def test_of_a_raw_body_answers_what_was_found(self, api: TestClient, log_in: LogIn, store: LocalStore) -> None:
        answer = api.post("/datasets", params={"name": "digits.csv"}, content=CSV, headers=log_in().headers)
        assert answer.status_code == 201
        body = answer.json()
        assert {name: body[name] for name in ("id", "name", "rows", "columns", "delimiter", "bytes", "warnings", "sha256")} == {
            "id": 1,
            "name": "digits.csv",
            "rows": 3,
            "columns": ["x", "y"],
            "delimiter": ",",
            "bytes": len(CSV),
            "warnings": [],
            "sha256": hashlib.sha256(CSV).hexdigest(),
        }
        (stored,) = store.list("datasets/")
        with store.open(stored.key) as stream:
            assert stream.read() == CSV

    def test_of_a_form_takes_the_name_of_the_file(self, api: TestClient, log_in: LogIn) -> None:
        answer = api.post("/datasets", files={"file_data": ("C:\\data\\digits.csv", CSV)}, headers=log_in().headers)
        assert (answer.status_code, answer.json()["name"]) == (201, "digits.csv")

    def test_a_name_that_is_given_wins(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        answer = api.post("/datasets", files={"file_data": ("a.csv", CSV)}, data={"name": "Digits"}, headers=person.headers)
        assert answer.json()["name"] == "Digits"
        answer = api.post("/datasets?name=More", files={"file_data": ("a.csv", CSV)}, headers=person.headers)
        assert answer.json()["name"] == "More"

    def test_without_any_name_it_gets_one(self, api: TestClient, log_in: LogIn) -> None:
        assert api.post("/datasets", content=CSV, headers=log_in().headers).json()["name"] == "dataset.csv"

    def test_a_large_one_streams_through(self, api: TestClient, log_in: LogIn) -> None:
        body = b"x,y\n" + b"1,2\n" * 1_500_000
        person = log_in()
        answer = api.post("/datasets", content=body, headers=person.headers)
        assert (answer.json()["rows"], answer.json()["sha256"]) == (1_500_000, hashlib.sha256(body).hexdigest())
        answer = api.post("/datasets", files={"file_data": ("a.csv", body)}, headers=person.headers)
        assert (answer.json()["rows"], answer.json()["sha256"]) == (1_500_000, hashlib.sha256(body).hexdigest())

    @pytest.mark.parametrize("is_form", [False, True])
    @pytest.mark.parametrize(
        ("content", "words"), [(b"", "empty"), (b"x,y\n", "no records"), (b"x,y\n1,2\n3\n", "line 3"), (b'x\n1\n"2\n', "line 3")]
    )
    def test_what_cannot_be_dealt_is_refused_naming_the_line_and_leaves_nothing(
        self, api: TestClient, log_in: LogIn, store: LocalStore, settings: Settings, content: bytes, words: str, is_form: bool
    ) -> None:
        sent: dict[str, Any] = {"files": {"file_data": ("a.csv", content)}} if is_form else {"content": content}
        answer = api.post("/datasets", headers=log_in().headers, **sent)
        assert (answer.status_code, answer.json()["code"]) == (422, "csv_refused")
        assert words in answer.json()["detail"]
        assert list(store.list("")) == []
        assert leftovers(settings) == []

    def test_too_large_is_refused_and_leaves_nothing(self, api: TestClient, log_in: LogIn, settings: Settings) -> None:
        settings.max_upload_bytes = 1000
        person = log_in()
        sent: list[dict[str, Any]] = [
            {"content": b"x" * 1001},
            {"content": iter([b"x" * 600] * 2)},
            {"files": {"file_data": ("a.csv", b"x" * 1001)}},
        ]
        for body in sent:
            answer = api.post("/datasets", headers=person.headers, **body)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert leftovers(settings) == []

    @pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Content-Type": "multipart/form-data; boundary=x"}])
    def test_who_is_not_logged_in_is_refused_and_nothing_is_kept(
        self, api: TestClient, settings: Settings, headers: dict[str, str]
    ) -> None:
        answer = api.post("/datasets", content=iter(Pulled(20)), headers=headers)
        assert answer.status_code == 401
        assert leftovers(settings) == []

    @pytest.mark.parametrize(("method", "path"), [("POST", "/datasets"), ("PATCH", "/datasets/uploads/" + "0" * 32)])
    @pytest.mark.parametrize("content_type", ["text/csv", "multipart/form-data; boundary=x", "application/json"])
    def test_not_a_byte_is_asked_for_before_the_caller_is_known(self, api: TestClient, method: str, path: str, content_type: str) -> None:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            raise AssertionError("the body was asked for")

        async def send(message: Any) -> None:
            sent.append(message)

        headers = {"content-type": content_type, "content-length": str(10**10), "upload-offset": "0"}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "server": ("testserver", 80),
            "client": ("127.0.0.1", 1),
        }
        anyio.run(api.app, scope, receive, send)
        assert sent[0]["status"] == 401

    def test_sellers_are_refused(self, api: TestClient, log_in: LogIn) -> None:
        answer = api.post("/datasets", content=CSV, headers=log_in("s@example.com", "seller").headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")

    @pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\0b"])
    def test_an_unusable_name_is_malformed(self, api: TestClient, log_in: LogIn, name: str) -> None:
        assert api.post("/datasets", params={"name": name}, content=CSV, headers=log_in().headers).status_code == 422


class TestListAndGet:
    def test_newest_first_in_pages(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        for number in range(5):
            api.post("/datasets", params={"name": f"d{number}"}, content=CSV, headers=person.headers)
        first = api.get("/datasets", params={"limit": 3}, headers=person.headers).json()
        assert [item["name"] for item in first["items"]] == ["d4", "d3", "d2"]
        second = api.get("/datasets", params={"limit": 3, "before": first["next"]}, headers=person.headers).json()
        assert [item["name"] for item in second["items"]] == ["d1", "d0"]
        assert second["next"] is None

    def test_somebody_elses_is_not_there(self, api: TestClient, log_in: LogIn) -> None:
        mine, other = log_in(), log_in("bob@example.com")
        dataset = api.post("/datasets", content=CSV, headers=mine.headers).json()["id"]
        assert api.get(f"/datasets/{dataset}", headers=mine.headers).status_code == 200
        for call in (api.get, api.delete):
            answers = [call(f"/datasets/{number}", headers=other.headers) for number in (dataset, 999)]
            assert [answer.status_code for answer in answers] == [404, 404]
            assert answers[0].json() == answers[1].json()
        assert api.get("/datasets", headers=other.headers).json()["items"] == []

    def test_a_deleted_one_is_not_there_but_its_file_stays_for_jobs(self, api: TestClient, log_in: LogIn, store: LocalStore) -> None:
        person = log_in()
        dataset = api.post("/datasets", content=CSV, headers=person.headers).json()["id"]
        assert api.delete(f"/datasets/{dataset}", headers=person.headers).status_code == 204
        assert api.get(f"/datasets/{dataset}", headers=person.headers).status_code == 404
        assert api.delete(f"/datasets/{dataset}", headers=person.headers).status_code == 404
        assert api.get("/datasets", headers=person.headers).json()["items"] == []
        assert len(list(store.list("datasets/"))) == 1


class TestResumableUpload:
    def begin(self, api: TestClient, person: Person, **changes: Any) -> str:
        body = {"name": "d.csv", "bytes": len(CSV)} | changes
        answer = api.post("/datasets/uploads", json=body, headers=person.headers)
        assert answer.status_code == 201, answer.text
        assert answer.json()["offset"] == 0
        return answer.json()["upload_id"]

    def send(self, api: TestClient, person: Person, upload: str, offset: int, content: bytes) -> Any:
        headers = {**person.headers, "Upload-Offset": str(offset)}
        return api.patch(f"/datasets/uploads/{upload}", content=content, headers=headers)

    def test_pieces_become_a_dataset(self, api: TestClient, log_in: LogIn, settings: Settings) -> None:
        person = log_in()
        upload = self.begin(api, person, sha256=hashlib.sha256(CSV).hexdigest())
        answer = self.send(api, person, upload, 0, CSV[:5])
        assert answer.json() == {"upload_id": upload, "offset": 5, "bytes": len(CSV), "dataset": None}
        head = api.head(f"/datasets/uploads/{upload}", headers=person.headers)
        assert (head.headers["upload-offset"], head.headers["upload-length"]) == ("5", str(len(CSV)))
        answer = self.send(api, person, upload, 5, CSV[5:])
        dataset = answer.json()["dataset"]
        assert (dataset["rows"], dataset["name"], dataset["sha256"]) == (3, "d.csv", hashlib.sha256(CSV).hexdigest())
        assert leftovers(settings) == []

    def test_a_lost_answer_can_be_asked_for_again(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        upload = self.begin(api, person)
        made = self.send(api, person, upload, 0, CSV).json()
        assert self.send(api, person, upload, 0, CSV).json() == made
        assert api.get(f"/datasets/uploads/{upload}", headers=person.headers).json() == made
        assert len(api.get("/datasets", headers=person.headers).json()["items"]) == 1

    @pytest.mark.parametrize("offset", [0, 4, 6, 100])
    def test_a_wrong_offset_is_refused_naming_the_right_one(self, api: TestClient, log_in: LogIn, offset: int) -> None:
        person = log_in()
        upload = self.begin(api, person)
        self.send(api, person, upload, 0, CSV[:5])
        answer = self.send(api, person, upload, offset, b"zz")
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_offset")
        assert answer.headers["upload-offset"] == "5"
        assert "5 bytes have arrived" in answer.json()["detail"]

    def test_more_than_announced_is_refused_and_not_kept(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        upload = self.begin(api, person)
        self.send(api, person, upload, 0, CSV[:5])
        assert self.send(api, person, upload, 5, CSV).status_code == 413
        assert api.get(f"/datasets/uploads/{upload}", headers=person.headers).json()["offset"] == 5

    def test_large_pieces_pass(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        body = b"x,y\n" + b"1,2\n" * 1_000_000
        upload = self.begin(api, person, bytes=len(body))
        self.send(api, person, upload, 0, body[:2_500_000])
        assert self.send(api, person, upload, 2_500_000, body[2_500_000:]).json()["dataset"]["rows"] == 1_000_000

    def test_a_file_that_cannot_be_dealt_ends_the_upload(self, api: TestClient, log_in: LogIn, settings: Settings) -> None:
        person = log_in()
        upload = self.begin(api, person, bytes=8)
        answer = self.send(api, person, upload, 0, b"x,y\n1,2,")
        assert (answer.status_code, answer.json()["code"]) == (422, "csv_refused")
        assert api.get(f"/datasets/uploads/{upload}", headers=person.headers).status_code == 404
        assert leftovers(settings) == []

    def test_another_file_than_announced_begins_again(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        upload = self.begin(api, person, sha256="0" * 64)
        answer = self.send(api, person, upload, 0, CSV)
        assert (answer.status_code, answer.json()["code"]) == (422, "hash_mismatch")
        assert api.get(f"/datasets/uploads/{upload}", headers=person.headers).json()["offset"] == 0

    def test_somebody_elses_is_not_there(self, api: TestClient, log_in: LogIn) -> None:
        mine, other = log_in(), log_in("bob@example.com")
        upload = self.begin(api, mine)
        assert self.send(api, other, upload, 0, CSV).status_code == 404
        assert api.get(f"/datasets/uploads/{upload}", headers=other.headers).status_code == 404
        api.delete(f"/datasets/uploads/{upload}", headers=other.headers)
        assert api.get(f"/datasets/uploads/{upload}", headers=mine.headers).status_code == 200

    def test_an_id_with_a_nul_is_refused(self, api: TestClient, log_in: LogIn) -> None:
        answer = api.get(f"/datasets/uploads/{'0' * 31}%00", headers=log_in().headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")

    @pytest.mark.parametrize("upload", ["x", "0" * 32, "..%2f..%2fjwt-secret"])
    def test_an_unknown_id_is_not_found(self, api: TestClient, log_in: LogIn, upload: str) -> None:
        person = log_in()
        for method in ("GET", "PATCH"):
            headers = {**person.headers, "Upload-Offset": "0"}
            assert api.request(method, f"/datasets/uploads/{upload}", headers=headers).status_code == 404

    def test_giving_up_removes_what_arrived(self, api: TestClient, log_in: LogIn, settings: Settings) -> None:
        person = log_in()
        upload = self.begin(api, person)
        self.send(api, person, upload, 0, CSV[:5])
        for _ in range(2):
            assert api.delete(f"/datasets/uploads/{upload}", headers=person.headers).status_code == 204
        assert leftovers(settings) == []

    def test_too_large_is_refused_at_the_beginning(self, api: TestClient, log_in: LogIn, settings: Settings) -> None:
        settings.max_upload_bytes = 10
        answer = api.post("/datasets/uploads", json={"name": "d", "bytes": 11}, headers=log_in().headers)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")

    def test_only_so_many_may_be_open(self, api: TestClient, log_in: LogIn) -> None:
        person = log_in()
        for _ in range(20):
            self.begin(api, person)
        answer = api.post("/datasets/uploads", json={"name": "d", "bytes": 1}, headers=person.headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "too_many_uploads")

    def test_who_is_not_logged_in_is_refused(self, api: TestClient, clock: FakeClock) -> None:
        assert api.post("/datasets/uploads", json={"name": "d", "bytes": 1}).status_code == 401
        assert api.patch("/datasets/uploads/" + "0" * 32, content=b"x", headers={"Upload-Offset": "0"}).status_code == 401
