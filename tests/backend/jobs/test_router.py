"""What buyers meet: prices, refusals that name the field, idempotency, other people's objects."""

import json
from typing import Any

import pytest

from gridx.jobs.scripts import RequirementsRefused, check_requirements
from tests.backend.conftest import Person
from tests.backend.jobs.conftest import CSV, SCRIPT, World


class TestSubmit:
    def test_too_little_credit_names_price_and_balance_and_moves_nothing(self, world: World, buyer: Person) -> None:
        answer = world.submit(buyer, chunks=50, rounds=3)
        assert answer.status_code == 402
        assert "150" in answer.json()["detail"]
        assert "100" in answer.json()["detail"]
        assert world.wallet(buyer)["credits"] == 100

    def test_hours_of_time_limit_are_rounded_up(self, world: World, buyer: Person) -> None:
        assert world.submit(buyer, chunks=2, time_limit_s=3601).json()["price"] == 4

    @pytest.mark.parametrize(
        ("fields", "named"),
        [
            ({"chunks": "0"}, "chunks"),
            ({"rounds": "many"}, "rounds"),
            ({"partitioner": "magic"}, "iid"),
            ({"strategy": "magic"}, "fedavg"),
            ({"hyperparameters": "{"}, "hyperparameters"),
            ({"hyperparameters": '{"a": NaN}'}, "hyperparameters"),
            ({"hyperparameters": '{"a": ["\\ud800"]}'}, "hyperparameters: must be valid Unicode"),
            ({"hyperparameters": '{"\\udfff": 1}'}, "hyperparameters: must be valid Unicode"),
            ({"hyperparameters": '{"a": "\\u0000"}'}, "hyperparameters: must not contain a NUL"),
            ({"hyperparameters": json.dumps({str(n): "ü" * 9000 for n in range(2)})}, "at most 65536"),
            ({"needs": '{"ram_bytes": -1}'}, "needs.ram_bytes"),
            ({"arguments": "'unclosed"}, "arguments"),
            ({"min_updates": "9"}, "min_updates"),
            ({"chunks": "51"}, "50 rows"),
            ({"chunk": "3"}, "chunk: there is no such field"),
        ],
    )
    def test_a_wrong_field_is_named_and_no_credit_moves(self, world: World, buyer: Person, fields: dict[str, Any], named: str) -> None:
        answer = world.submit(buyer, **fields)
        assert answer.status_code == 422, answer.text
        assert named in answer.json()["detail"]
        assert world.credits(buyer) == 100
        assert world.api.get("/datasets", headers=buyer.headers).json()["items"] == [], "what belongs to no job is not kept"

    def test_every_wrong_field_is_listed(self, world: World, buyer: Person) -> None:
        detail = world.submit(buyer, chunks="x", rounds="y", time_limit_s="1").json()["detail"]
        for name in ("chunks", "rounds", "time_limit_s"):
            assert name in detail

    @pytest.mark.parametrize(("script", "line"), [("def broken(:\n", "line 1"), ("x = 1\ny = (\n", "line 2"), ("  \n", "empty")])
    def test_a_script_that_is_no_python_is_refused_with_its_line(self, world: World, buyer: Person, script: str, line: str) -> None:
        answer = world.submit(buyer, script=script)
        assert answer.status_code == 422
        assert line in answer.json()["detail"]

    @pytest.mark.parametrize(
        ("csv", "words"),
        [
            (b"a,b\n1,2\n3\n", "line 3"),
            (b'a,b\n1,2\n3,"4\n5,6\n', "line 3"),
            (b"a,b\n1,\x00\n", "line 2"),
            (b"a,b\n1,\xff\n", "line 2"),
            (b"PK\x03\x04" + bytes(100), "zip"),
            (b"a,b\n", "header"),
            (b"", "empty"),
            (b"a,b\n1,2\n3,4\n", "rows"),
        ],
        ids=["ragged", "unclosed quote", "NUL", "not UTF-8", "binary", "header only", "empty", "fewer rows than chunks"],
    )
    def test_an_unusable_csv_is_refused_and_no_credit_moves(self, world: World, buyer: Person, csv: bytes, words: str) -> None:
        answer = world.submit(buyer, csv=csv)
        assert answer.status_code == 422
        assert words in answer.json()["detail"]
        assert world.credits(buyer) == 100

    def test_a_script_that_never_saves_is_warned_of(self, world: World, buyer: Person) -> None:
        assert "model.pth" in world.submit(buyer, script="print('hello')\n").json()["warnings"][0]

    def test_without_login_nothing_is_read(self, world: World) -> None:
        answer = world.api.post("/jobs/upload", data={"title": "x"})
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")

    def test_a_seller_cannot_submit(self, world: World) -> None:
        assert world.submit(world.person("s@example.com", "seller")).status_code == 403

    def test_arguments_become_a_command_line(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.job(buyer, arguments="--csv-path data.csv --name 'two words'")
        assert agent.request()["arguments"] == ["--csv-path", "data.csv", "--name", "two words"]

    def test_require_idle_refuses_when_too_few_agents_are_idle(self, world: World, buyer: Person) -> None:
        world.agent("a")
        answer = world.submit(buyer, chunks=2, require_idle="true")
        assert (answer.status_code, answer.json()["code"]) == (409, "not_enough_idle_agents")
        assert world.submit(buyer, chunks=1, require_idle="true").status_code == 201


class TestJsonSubmission:
    def dataset(self, world: World, buyer: Person) -> int:
        answer = world.api.post("/datasets", params={"name": "digits"}, content=CSV, headers=buyer.headers)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def test_takes_a_dataset_by_id_or_by_name(self, world: World, buyer: Person) -> None:
        dataset_id = self.dataset(world, buyer)
        for choice in ({"dataset_id": dataset_id}, {"dataset_name": "digits"}):
            body = {"title": "t", "script": SCRIPT, "shard_count": 2, **choice}
            answer = world.api.post("/jobs", json=body, headers=buyer.headers)
            assert answer.status_code == 201, answer.text
            assert (answer.json()["price"], answer.json()["idle_agents"]) == (2, 0)

    def test_somebody_elses_dataset_looks_like_none(self, world: World, buyer: Person) -> None:
        dataset_id = self.dataset(world, buyer)
        stranger = world.person("eve@example.com")
        answer = world.api.post("/jobs", json={"title": "t", "script": SCRIPT, "dataset_id": dataset_id}, headers=stranger.headers)
        assert answer.status_code == 404

    def test_a_misspelt_field_is_refused(self, world: World, buyer: Person) -> None:
        body = {"title": "t", "script": SCRIPT, "dataset_id": self.dataset(world, buyer), "round": 3}
        answer = world.api.post("/jobs", json=body, headers=buyer.headers)
        assert answer.status_code == 422
        assert "round" in answer.json()["detail"]


class TestIdempotency:
    def test_the_same_key_and_body_make_one_job(self, world: World, buyer: Person) -> None:
        answers = [world.submit(buyer, headers={"Idempotency-Key": "k1"}).json() for _ in range(3)]
        assert len({answer["job_id"] for answer in answers}) == 1
        assert world.credits(buyer) == 95

    def test_the_same_key_with_another_body_is_refused(self, world: World, buyer: Person) -> None:
        world.submit(buyer, headers={"Idempotency-Key": "k1"})
        answer = world.submit(buyer, headers={"Idempotency-Key": "k1"}, chunks=3)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
        assert world.submit(buyer, headers={"Idempotency-Key": "k1"}, csv=CSV + b"1,1\n").status_code == 409

    def test_two_buyers_may_use_the_same_key(self, world: World, buyer: Person) -> None:
        other = world.person("bob@example.com")
        first = world.submit(buyer, headers={"Idempotency-Key": "k"}).json()["job_id"]
        assert world.submit(other, headers={"Idempotency-Key": "k"}).json()["job_id"] != first


class TestSomebodyElses:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/jobs/{job}"),
            ("POST", "/jobs/{job}/cancel"),
            ("DELETE", "/jobs/{job}"),
            ("GET", "/jobs/download/{job}"),
            ("GET", "/jobs/{job}/results"),
            ("GET", "/jobs/{job}/artifacts"),
            ("GET", "/jobs/{job}/metrics"),
            ("GET", "/jobs/{job}/logs"),
            ("GET", "/jobs/list/{user}"),
            ("GET", "/stats/my-agents/{user}"),
            ("GET", "/stats/seller-tasks/{user}"),
            ("GET", "/auth/wallet/{user}"),
        ],
    )
    def test_looks_like_nothing(self, world: World, buyer: Person, method: str, path: str) -> None:
        job_id = world.job(buyer)
        stranger = world.person("eve@example.com", "both")
        url = path.format(job=job_id, user=buyer.id)
        answer = world.api.request(method, url, headers=stranger.headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert world.api.request(method, url).status_code == 401
        assert world.view(buyer, job_id)["status"] == "RUNNING"


class TestStats:
    def test_summary_counts_machines_jobs_and_cores(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        world.agent("b")
        world.job(buyer)
        summary = world.api.get("/stats/summary").json()
        assert summary["agents"] == {"total": 2, "online": 2, "idle": 2, "busy": 0, "offline": 0}
        assert summary["jobs"] == {"total": 1, "queued": 1, "running": 0, "completed": 0, "failed": 0}
        agent.request()
        world.clock.advance(31)
        agent.about("heartbeat")
        summary = world.api.get("/stats/summary").json()
        assert summary["agents"] == {"total": 2, "online": 1, "idle": 0, "busy": 1, "offline": 1}
        assert summary["jobs"]["running"] == 1
        assert summary["cores"] == 8

    def test_a_hostname_is_for_its_owner_alone(self, world: World, buyer: Person) -> None:
        agent = world.agent("a")
        mine = world.api.get("/stats/agents/a", headers=agent.owner.headers).json()
        theirs = world.api.get("/stats/agents", headers=buyer.headers).text
        assert mine["hostname"] == "lab-pc-07"
        assert "lab-pc-07" not in theirs

    def test_metrics_speak_prometheus(self, world: World) -> None:
        world.agent("a")
        assert 'gridx_agents{state="idle"} 1.0' in world.api.get("/metrics").text


class TestOperations:
    def test_health(self, world: World) -> None:
        assert world.api.get("/health").json()["status"] == "ok"

    def test_an_unknown_route_is_a_json_404(self, world: World) -> None:
        answer = world.api.get("/no/such/thing")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")

    def test_docs_load_nothing_from_elsewhere(self, world: World) -> None:
        page = world.api.get("/docs")
        assert page.status_code == 200
        assert "http" not in page.text.replace("https://", "http") or "//" not in page.text.split("<body>")[1]
        assert "script-src" in page.headers["content-security-policy"] or "default-src 'self'" in page.headers["content-security-policy"]
        for asset in ("/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/docs/start.js"):
            assert world.api.get(asset).status_code == 200
        assert json.loads(world.api.get("/openapi.json").text)["info"]["title"] == "Grid-X"


class TestRequirements:
    @pytest.mark.parametrize(
        "line",
        [
            "-r other.txt",
            "--index-url http://x",
            "-e .",
            "x @ https://example.com/x.whl",
            "https://example.com/x.whl",
            "git+https://example.com/x",
            "./local.whl",
            "../up",
            "/abs/path",
            "x===1.0",
            "x==${SECRET}",
            "x==1.0 \\",
            "x y z",
            "x\x0b1",
        ],
    )
    def test_what_reaches_beyond_the_index_is_refused_with_its_line(self, line: str) -> None:
        with pytest.raises(RequirementsRefused, match="line 2"):
            check_requirements(f"numpy\n{line}\n".encode())

    def test_plain_names_pass_and_comments_go(self) -> None:
        text = b"# tools\nnumpy>=2,<3  # arrays\n\nscikit-learn[alldeps]==1.5 ; python_version < '4'\n"
        assert check_requirements(text) == ["numpy<3,>=2", 'scikit-learn[alldeps]==1.5; python_version < "4"']

    def test_at_submission_the_line_is_named(self, world: World, buyer: Person) -> None:
        answer = world.api.post(
            "/jobs/upload",
            data={"title": "t"},
            files={"file_code": ("t.py", SCRIPT), "file_req": ("r.txt", "numpy\n--pre\n"), "file_data": ("d.csv", CSV)},
            headers=buyer.headers,
        )
        assert answer.status_code == 422
        assert "line 2" in answer.json()["detail"]
        assert world.credits(buyer) == 100


class TestScript:
    def test_comes_back_as_harmless_text(self, world: World, buyer: Person) -> None:
        script = SCRIPT + "\n# ünïcode <script>alert(1)</script>\n"
        job = world.job(buyer, script=script)
        answer = world.api.get(f"/jobs/{job}/script", headers=buyer.headers)
        assert (answer.status_code, answer.text) == (200, script)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == "attachment"
        assert "sandbox" in answer.headers["content-security-policy"]

    def test_requirements_are_empty_without_any(self, world: World, buyer: Person) -> None:
        job = world.job(buyer)
        answer = world.api.get(f"/jobs/{job}/requirements", headers=buyer.headers)
        assert (answer.status_code, answer.text) == (200, "")
