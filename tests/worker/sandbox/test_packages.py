"""Requirements from a package index that means harm, served on this machine, through the real installing container."""

import io
import os
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import docker
import pytest

from gridx_worker.dependencies import MAX_PACKAGES, PipSettings, read_allowed
from gridx_worker.sandbox.base import DependenciesFailed, PackageNotAllowed, StopSwitch
from gridx_worker.sandbox.container import LABEL
from gridx_worker.sandbox.docker import DockerSandbox
from tests.worker.fakes import make_wheel
from tests.worker.sandbox.conftest import LIMITS, MB, Bench

pytestmark = pytest.mark.docker

MINIMAL = "open('model.pth', 'wb').write(b'x')\n"


class Index:
    """Wheels in `folder`, under /simple/NAME/; and pages that make themselves up: `chain-N` needs `chain-N+1`, `slow` never ends."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.asked: list[str] = []
        self._open = threading.Event()
        self._http = ThreadingHTTPServer((address, 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://{address}:{self._http.server_address[1]}/simple"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._open.set()
        self._http.shutdown()
        self._http.server_close()

    def wheel(self, name: str, **options: object) -> Path:
        return make_wheel(self.folder, name, "1.0", **options)  # type: ignore[arg-type]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                *_, folder, name = self.path.split("/")
                if name == "":
                    self._page(folder)
                elif (file := index.folder / name).is_file():
                    self._send(file.read_bytes(), "application/octet-stream")
                elif name == "trickle_pkg-1.0-py3-none-any.whl":
                    self._endless()
                else:
                    self.send_error(404)

            def _page(self, name: str) -> None:
                if name == "slow-pkg":
                    self._endless()
                    return
                if name.startswith("chain-"):
                    number = int(name.removeprefix("chain-"))
                    index.wheel(f"chain_{number}", requires=[f"chain-{number + 1}"])
                here = [file.name for file in index.folder.iterdir() if file.name.split("-")[0].replace("_", "-") == name]
                if name == "trickle-pkg":
                    here.append("trickle_pkg-1.0-py3-none-any.whl")
                if not here:
                    self.send_error(404)
                    return
                self._send("".join(f'<a href="{file}">{file}</a>\n' for file in here).encode(), "text/html")

            def _endless(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(10**12))
                self.end_headers()
                try:
                    while not index._open.wait(0.01):
                        self.wfile.write(b"<!-- more -->" * 10_000)
                except OSError:
                    return

            def _send(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None: ...

        return Handler


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """It listens where containers of Docker's own network find this machine."""
    gateway = docker.from_env().networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    made = Index(tmp_path_factory.mktemp("index"), gateway)
    yield made
    made.close()


@pytest.fixture(scope="module")
def sandbox(index: Index, tmp_path_factory: pytest.TempPathFactory, sandbox_image: str) -> Iterator[DockerSandbox]:
    host = index.url.split("/")[2].split(":")[0]
    pip = PipSettings(index_url=index.url, trusted_hosts=(host,), allowed=None, cache_bytes=20 * MB)
    folder = tmp_path_factory.mktemp("state")
    made = DockerSandbox(docker.from_env(timeout=60), agent_id="a", folder=folder, limits=LIMITS, image=sandbox_image, pip=pip)
    yield made
    made.close()


def install(sandbox: DockerSandbox, *lines: str, cap_s: float = 60, cap_bytes: int = 20 * MB, deadline_s: float = 120) -> Path | None:
    return sandbox.install(lines, cap_s=cap_s, cap_bytes=cap_bytes, deadline=time.monotonic() + deadline_s, stop=StopSwitch())


@pytest.fixture(autouse=True)
def nothing_left(sandbox: DockerSandbox) -> Iterator[None]:
    """Whatever the end: no container stays, and no half-installed set."""
    yield
    mine: dict[str, str | list[str] | bool] = {"label": [f"{LABEL}.owner={sandbox.owner}", f"{LABEL}=install"]}
    assert docker.from_env().containers.list(all=True, filters=mine, ignore_removed=True) == []
    cache = sandbox._folder / "packages"  # pyright: ignore[reportPrivateUsage]
    assert not [entry for entry in (cache.iterdir() if cache.is_dir() else []) if entry.name.endswith(".partial")]


class TestRefused:
    def test_unknown_package(self, sandbox: DockerSandbox) -> None:
        with pytest.raises(DependenciesFailed, match="No matching distribution found for nosuch-pkg"):
            install(sandbox, "nosuch-pkg")

    def test_source_distribution_only(self, sandbox: DockerSandbox, index: Index) -> None:
        (index.folder / "sdist_pkg-1.0.tar.gz").write_bytes(b"setup.py would run here")
        with pytest.raises(DependenciesFailed, match="sdist-pkg"):
            install(sandbox, "sdist-pkg")
        assert not any(path.endswith(".tar.gz") for path in index.asked)

    def test_needs_without_end(self, sandbox: DockerSandbox, index: Index) -> None:
        with pytest.raises(DependenciesFailed, match="took longer than 4 s"):
            install(sandbox, "chain-0", cap_s=4)
        assert sum(path.startswith("/simple/chain-") for path in index.asked) > 5

    def test_an_index_that_never_ends_its_answer(self, sandbox: DockerSandbox) -> None:
        with pytest.raises(DependenciesFailed, match="took longer than 4 s"):
            install(sandbox, "slow-pkg", cap_s=4)

    def test_a_wheel_that_never_ends(self, sandbox: DockerSandbox) -> None:
        with pytest.raises(DependenciesFailed, match=r"more than 20 MB|File too large"):
            install(sandbox, "trickle-pkg")

    def test_a_wheel_that_unpacks_to_a_hundred_times_its_size(self, sandbox: DockerSandbox, index: Index) -> None:
        wheel = index.wheel("bomb_pkg", files={"bomb_pkg_data.py": ""})
        with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as small, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as large:
            for entry in small.namelist():
                content = bytes(100 * MB) if entry == "bomb_pkg_data.py" else small.read(entry)
                large.writestr(entry, content)
        assert wheel.stat().st_size < MB
        with pytest.raises(DependenciesFailed, match=r"more than 20 MB|File too large"):
            install(sandbox, "bomb-pkg")

    def test_more_packages_than_anybody_needs(self, sandbox: DockerSandbox, index: Index) -> None:
        leaves = [f"leaf-{number}" for number in range(MAX_PACKAGES + 1)]
        for leaf in leaves:
            index.wheel(leaf.replace("-", "_"))
        index.wheel("fan_pkg", requires=leaves)
        with pytest.raises(DependenciesFailed, match=f"need {MAX_PACKAGES + 2} packages; at most {MAX_PACKAGES}"):
            install(sandbox, "fan-pkg")

    def test_an_older_torch(self, sandbox: DockerSandbox, index: Index) -> None:
        before = len(index.asked)
        with pytest.raises(DependenciesFailed, match=r"asks for torch==1\.13, but the sandbox has torch 2"):
            install(sandbox, "torch==1.13")
        assert len(index.asked) == before


class TestInstalled:
    def test_what_the_sandbox_has_installs_nothing(self, sandbox: DockerSandbox) -> None:
        assert install(sandbox, "torch", "pandas") is None

    def test_once_for_many_subtasks(self, sandbox: DockerSandbox, index: Index, tmp_path: Path) -> None:
        index.wheel("einops")
        bench, folders = Bench(sandbox, tmp_path), set[Path | None]()
        for task in range(5):
            folders.add(packages := install(sandbox, "einops"))
            outcome = bench.run("import einops\nprint(einops.VERSION)\n" + MINIMAL, packages=packages, job_id=1 + task // 3)
            assert outcome.kind is None, bench.text
        assert len(folders) == 1
        wheels = [path for path in index.asked if path.endswith("einops-1.0-py3-none-any.whl")]
        assert len(wheels) <= 2, "one look at its needs, one download"
        assert bench.text.count("1.0") == 5

    def test_the_least_recently_used_go_and_come_back_when_they_are_needed(
        self, sandbox: DockerSandbox, index: Index, tmp_path: Path
    ) -> None:
        index.wheel("first_pkg", files={"first_data.txt": "x" * 12 * MB})
        index.wheel("second_pkg", files={"second_data.txt": "x" * 12 * MB})
        bench = Bench(sandbox, tmp_path)
        first = install(sandbox, "first-pkg", cap_bytes=60 * MB)
        assert bench.run("import first_pkg\n" + MINIMAL, packages=first).kind is None, bench.text
        os.utime(first.parent, (1, 1)) if first else None
        install(sandbox, "second-pkg", cap_bytes=60 * MB)
        assert first is not None
        assert not first.exists()
        again = install(sandbox, "first-pkg", cap_bytes=60 * MB)
        assert again == first
        assert bench.run("import first_pkg\n" + MINIMAL, packages=again).kind is None, bench.text


class TestAllowed:
    def test_the_providers_list_holds_for_what_is_asked_for_and_for_what_that_needs(self, sandbox: DockerSandbox, index: Index) -> None:
        index.wheel("inner_pkg")
        index.wheel("outer_pkg", requires=["inner-pkg"])
        settings = sandbox._pip  # pyright: ignore[reportPrivateUsage]
        try:
            sandbox._pip = PipSettings(settings.index_url, trusted_hosts=settings.trusted_hosts, allowed=read_allowed("Outer_pkg # mine\n"))
            with pytest.raises(PackageNotAllowed, match="does not let it install the package leaf-1"):
                install(sandbox, "leaf-1")
            with pytest.raises(PackageNotAllowed, match="inner"):
                install(sandbox, "outer-pkg")
            assert install(sandbox, "torch", "numpy") is None
            sandbox._pip = PipSettings(
                settings.index_url, trusted_hosts=settings.trusted_hosts, allowed=read_allowed("outer-pkg, inner_pkg")
            )
            assert install(sandbox, "outer-pkg") is not None
        finally:
            sandbox._pip = settings
