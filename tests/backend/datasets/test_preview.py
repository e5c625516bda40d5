"""GET /datasets/{id}/preview: the first records of a dataset, from its first bytes alone."""

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from gridx.storage.local import LocalStore
from tests.backend.conftest import Person

LogIn = Callable[..., Person]


@pytest.fixture
def preview(api: TestClient, log_in: LogIn) -> Callable[..., Response]:
    """Uploads a CSV and asks for its preview."""
    owner = log_in()

    def ask(csv: bytes, **query: int) -> Response:
        made = api.post("/datasets", content=csv, headers=owner.headers)
        assert made.status_code == 201, made.text
        return api.get(f"/datasets/{made.json()['id']}/preview", params=query, headers=owner.headers)

    return ask


def test_of_a_small_file_is_all_of_it(preview: Callable[..., Response]) -> None:
    assert preview(b"x,y\n1,2\n3,4\n").json() == {"columns": ["x", "y"], "rows": [["1", "2"], ["3", "4"]], "deal": None}


def test_reads_records_as_the_dataset_does(preview: Callable[..., Response]) -> None:
    csv = '\ufefflength;name\r\n1,5;"a; ""b"""\r\n2,5;"two\nlines"\r\n3,5;ü'.encode()
    assert preview(csv).json() == {
        "columns": ["length", "name"],
        "rows": [["1,5", 'a; "b"'], ["2,5", "two\nlines"], ["3,5", "ü"]],
        "deal": None,
    }


@pytest.mark.parametrize(("asked", "given"), [({}, 5), ({"rows": 1}, 1), ({"rows": 20}, 20)])
def test_ends_after_the_rows_that_were_asked_for(preview: Callable[..., Response], asked: dict[str, int], given: int) -> None:
    assert len(preview(b"x,y\n" + b"1,2\n" * 100_000, **asked).json()["rows"]) == given


@pytest.mark.parametrize("rows", [0, 21])
def test_refuses_other_numbers(preview: Callable[..., Response], rows: int) -> None:
    assert preview(b"x,y\n1,2\n3,4\n", rows=rows).status_code == 422


def test_leaves_out_a_record_that_it_cannot_show_whole(preview: Callable[..., Response]) -> None:
    csv = "x,y\n1,{}\n2,{}\n3,{}\n".format("ü" * 10_000, "ü" * 20_000, "ü" * 30_000).encode()
    assert [row[0] for row in preview(csv).json()["rows"]] == ["1", "2"]


def test_does_not_read_on(preview: Callable[..., Response], store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = store.open

    class Counted:
        def __init__(self, key: str) -> None:
            self.context = original(key)

        def __enter__(self) -> "Counted":
            self.file = self.context.__enter__()
            return self

        def __exit__(self, *error: object) -> None:
            self.context.__exit__(None, None, None)

        def read(self, size: int) -> bytes:
            read.append(size)
            return self.file.read(size)

    monkeypatch.setattr(type(store), "open", lambda self, key: Counted(key))
    assert preview(b"x,y\n" + b"1,2\n" * 500_000).status_code == 200
    assert 0 < sum(read) < 100_000


def test_of_somebody_elses_or_a_deleted_dataset_is_not_there(api: TestClient, log_in: LogIn) -> None:
    owner, other = log_in(), log_in("other@example.com")
    dataset = api.post("/datasets", content=b"x,y\n1,2\n3,4\n", headers=owner.headers).json()["id"]
    assert api.get(f"/datasets/{dataset}/preview", headers=other.headers).status_code == 404
    api.delete(f"/datasets/{dataset}", headers=owner.headers)
    assert api.get(f"/datasets/{dataset}/preview", headers=owner.headers).status_code == 404
