"""What the server offers to providers: the script, the wheels, and that the script really installs them."""

import base64
import hashlib
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

from gridx.core.errors import NotFound
from gridx.core.http import HttpGuard, install_error_handlers
from gridx.core.settings import Settings
from gridx.downloads import find_offer, get_offer, make_script, router

TEMPLATE = "server=@SERVER@\nversion=@VERSION@\nprotocol=@PROTOCOL_WHEEL@\nworker=@WORKER_WHEEL@\n"
MAIN = 'import sys\ndef main():\n    print("9.9" if sys.argv[1:] == ["--version"] else sys.argv[1:])\n'


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """A small wheel without dependencies, as pip takes it."""
    info = f"{name}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_record_hash(text)},{len(text.encode())}" for path, text in files.items()]
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in files.items():
            archive.writestr(inner, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,", ""]))
    return path


def _record_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    make_wheel(folder, "gridx_protocol", "9.9", {"gridx_protocol/__init__.py": ""})
    entry = "[console_scripts]\ngridx-worker = gridx_worker:main\n"
    make_wheel(folder, "gridx_worker", "9.9", {"gridx_worker/__init__.py": MAIN, "gridx_worker-9.9.dist-info/entry_points.txt": entry})
    return folder


def make_app(settings: Settings, folder: Path) -> FastAPI:
    app = FastAPI()
    app.state.settings = settings
    app.include_router(router)
    app.dependency_overrides[get_offer] = lambda: find_offer(folder, "9.9")
    install_error_handlers(app)
    app.add_middleware(HttpGuard)
    return app


@pytest.fixture
def client(settings: Settings, wheels: Path) -> TestClient:
    return TestClient(make_app(settings, wheels))


class TestFindOffer:
    def test_both_wheels_of_the_version(self, wheels: Path) -> None:
        assert [path.name for path in find_offer(wheels, "9.9").wheels] == [
            "gridx_protocol-9.9-py3-none-any.whl",
            "gridx_worker-9.9-py3-none-any.whl",
        ]

    def test_another_version_is_none(self, wheels: Path) -> None:
        with pytest.raises(NotFound, match="make wheels"):
            find_offer(wheels, "9.8")

    def test_one_of_two_is_none(self, wheels: Path) -> None:
        (wheels / "gridx_protocol-9.9-py3-none-any.whl").unlink()
        with pytest.raises(NotFound):
            find_offer(wheels, "9.9")


class TestMakeScript:
    @pytest.mark.parametrize(
        "server", ["https://grid.example", "http://a';touch pwned;'", 'http://$(touch pwned)`touch pwned`"\\', "http://a b"]
    )
    def test_values_stay_values(self, wheels: Path, tmp_path: Path, server: str) -> None:
        script = make_script(TEMPLATE + 'printf "%s\\n" "$server" "$worker"', find_offer(wheels, "9.9"), server)
        ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
        said_server, said_worker = ran.stdout.splitlines()
        assert said_server == server
        assert said_worker.startswith(f"{server}/downloads/gridx_worker-9.9-py3-none-any.whl#sha256=")
        assert not (tmp_path / "pwned").exists()


class TestRoutes:
    def test_the_script_names_the_address_it_was_asked_for_under(self, client: TestClient) -> None:
        answer = client.get("/install.sh", headers={"Host": "grid.example:8000"})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["cache-control"] == "no-store"
        assert "server=http://grid.example:8000\n" in answer.text
        assert "@" not in answer.text.replace('"$@"', "")

    def test_the_public_address_wins(self, settings: Settings, wheels: Path) -> None:
        settings.public_url = "https://grid.example/"
        client = TestClient(make_app(settings, wheels))
        assert "server=https://grid.example\n" in client.get("/install.sh").text
        assert client.get("/downloads/worker").json()["install_url"] == "https://grid.example/install.sh"

    def test_what_is_listed_can_be_fetched(self, client: TestClient) -> None:
        found = client.get("/downloads/worker").json()
        assert found["version"] == "9.9"
        assert found["next"] is None
        for item in found["items"]:
            answer = client.get(item["url"])
            assert len(answer.content) == item["bytes"]
            assert hashlib.sha256(answer.content).hexdigest() == item["sha256"]
            assert "attachment" in answer.headers["content-disposition"]

    @pytest.mark.parametrize("name", ["x.whl", "..%2Fapp.py", "gridx_worker-9.8-py3-none-any.whl", "%2e%2e%2f%2e%2e%2fetc%2fpasswd"])
    def test_nothing_else_is_served(self, client: TestClient, name: str) -> None:
        assert client.get(f"/downloads/{name}").status_code == 404

    @pytest.mark.parametrize("path", ["/install.sh", "/downloads/worker", "/downloads/gridx_worker-9.9-py3-none-any.whl"])
    def test_without_wheels_it_says_how_to_get_them(self, settings: Settings, tmp_path: Path, path: str) -> None:
        answer = TestClient(make_app(settings, tmp_path / "nowhere")).get(path)
        assert answer.status_code == 404
        assert "make wheels" in answer.json()["detail"]


@pytest.fixture
def served(settings: Settings, wheels: Path) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(make_app(settings, wheels), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.mark.slow
class TestInstall:
    def test_the_script_installs_the_worker_and_says_how_to_run_it(self, client: TestClient, served: str, tmp_path: Path) -> None:
        folder = tmp_path / "a folder with spaces"
        text = client.get("/install.sh", headers={"Host": served.removeprefix("http://")}).text
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHON": sys.executable,
            "GRIDX_WORKER_HOME": str(folder),
            "PIP_NO_INDEX": "1",
        }
        ran = subprocess.run(["bash", "-s"], input=text, env=env, capture_output=True, text=True, timeout=110, check=False)
        assert ran.returncode == 0, ran.stderr
        assert f"{folder}/venv/bin/gridx-worker" in ran.stdout
        assert f"run --server {served}" in ran.stdout
        said = subprocess.run([folder / "venv/bin/gridx-worker", "run"], capture_output=True, text=True, check=True)
        assert said.stdout == "['run']\n"

    def test_a_changed_wheel_is_refused(self, client: TestClient, served: str, wheels: Path, tmp_path: Path) -> None:
        text = client.get("/install.sh", headers={"Host": served.removeprefix("http://")}).text
        with (wheels / "gridx_worker-9.9-py3-none-any.whl").open("ab") as file:
            file.write(b"more")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHON": sys.executable, "PIP_NO_INDEX": "1"}
        ran = subprocess.run(["sh", "-s"], input=text, env=env, capture_output=True, text=True, timeout=110, check=False)
        assert ran.returncode == 1
        assert "could not be fetched" in ran.stderr

    def test_without_a_python_it_says_so(self, client: TestClient, tmp_path: Path) -> None:
        tools = tmp_path / "bin"
        tools.mkdir()
        env = {"PATH": str(tools), "HOME": str(tmp_path)}
        ran = subprocess.run(["/bin/sh", "-s"], input=client.get("/install.sh").text, env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        assert "Python 3.11 or newer" in ran.stderr

    def test_a_script_that_was_cut_does_nothing(self, client: TestClient, tmp_path: Path) -> None:
        text = client.get("/install.sh").text
        for share in (0.3, 0.6, 0.9):
            cut = text[: int(len(text) * share)]
            subprocess.run(
                ["sh", "-s"], input=cut, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True, check=False
            )
        assert not (tmp_path / ".gridx-worker").exists()
