"""What the doctor runs in the real sandbox: every way out, and a training to measure the machine by."""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from gridx_worker.doctor.report import Check
from gridx_worker.sandbox.base import Outcome, Sandbox, StopSwitch, Work

HELPER = "exhaustion.py"
ESCAPES_S, SCORE_S = 120.0, 60.0
UNSAFE = "do not lend this machine with this Docker; update Docker and the kernel, or install gVisor's runsc"


@dataclass
class Bait:
    """What lies outside the sandbox: servers on this machine's addresses, a file, and a secret in the environment."""

    folder: Path
    visitors: list[str] = field(default_factory=list[str])

    @contextmanager
    def laid_out(self) -> Generator[dict[str, object]]:
        """Arguments of the escape script while all of it is there."""
        secret = secrets.token_hex(16)
        sockets: list[socket.socket] = []
        connect: list[tuple[str, int]] = []
        try:
            for address in own_addresses():
                with contextlib.suppress(OSError):
                    made = self._listen(socket.AF_INET, (address, 0), sockets)
                    connect.append((address, made.getsockname()[1]))
            name = f"gridx-{secret[:8]}"
            self._listen(socket.AF_UNIX, f"\0{name}", sockets)
            os.environ["GRIDX_DOCTOR"] = secret
            yield {"connect": connect, "abstract": [name], "exists": [str(self.folder), str(Path.home() / ".ssh")], "secret": secret}
        finally:
            os.environ.pop("GRIDX_DOCTOR", None)
            for each in sockets:
                each.close()

    def _listen(self, family: int, address: str | tuple[str, int], sockets: list[socket.socket]) -> socket.socket:
        made = socket.socket(family)
        sockets.append(made)
        made.bind(address)
        made.listen()
        threading.Thread(target=self._welcome, args=(made,), name="bait", daemon=True).start()
        return made

    def _welcome(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                made.accept()[0].close()
                self.visitors.append(str(made.getsockname()))


def own_addresses() -> list[str]:
    """This machine's IPv4 addresses, the loopback's and Docker's gateway's among them."""
    found = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses if each.family == socket.AF_INET}
    return sorted(found)


def try_escapes(sandbox: Sandbox, folder: Path) -> Check:
    """Runs the escape script as a job's and counts what held."""
    bait = Bait(folder)
    with bait.laid_out() as given:
        outcome, text = run(sandbox, folder, "escape_script.py", [json.dumps(given)], seconds=ESCAPES_S)
    found = [json.loads(line.partition(" ")[2]) for line in text.splitlines() if line.startswith("ESCAPE ")]
    got = [f"{each['name']}: {each['how']}" for each in found if not each["held"]]
    got += [f"something came to {visitor}" for visitor in bait.visitors]
    name = f"the sandbox holds: {len(found)} ways out tried"
    if got:
        return Check(name, f"{len(got)} led out: {'; '.join(got)}", UNSAFE)
    if outcome.kind is not None or not found:
        return Check(name, f"the test did not end: {outcome.reason or outcome.kind}", "run it again when the machine is less busy")
    return Check(name)


def measure_score(sandbox: Sandbox, folder: Path) -> tuple[Check, float | None]:
    """A fixed small training in the sandbox: samples per second."""
    outcome, text = run(sandbox, folder, "score_script.py", [], seconds=SCORE_S)
    scores = [json.loads(line.partition(" ")[2]) for line in text.splitlines() if line.startswith("SCORE ")]
    if outcome.kind is not None or not scores:
        words = f"no training ran: {outcome.reason or outcome.kind}"
        return Check("training in the sandbox", words, "see the reason; `gridx-worker build-image` makes the image anew"), None
    score = float(scores[0]["samples_per_s"])
    return Check(f"training in the sandbox: {score:,.0f} samples/s"), score


def run(sandbox: Sandbox, folder: Path, script: str, arguments: list[str], *, seconds: float) -> tuple[Outcome, str]:
    """One of this package's scripts in the sandbox; how it ended, and what it printed."""
    inputs = folder / script / "input"
    inputs.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    (inputs / "train.py").write_bytes((here / script).read_bytes())
    (inputs / HELPER).write_bytes((here / HELPER).read_bytes())
    (inputs / "data.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for file in inputs.iterdir():
        file.chmod(0o644)  # whatever this user's umask is: the sandbox's user reads them
    blocks: list[bytes] = []
    work = Work(
        agent_id="doctor", job_id=1, task_id=1, attempt=1, input=inputs, output_name="model.pth", output=folder / "model.pth",
        output_bytes=64 * 1024**2, arguments=arguments, deadline=time.monotonic() + seconds,
        environment={"GRIDX_SEED": "0", "GRIDX_KIND": "train", "GRIDX_HYPERPARAMETERS": "{}", "GRIDX_MARK": secrets.token_hex(8)},
    )  # fmt: skip
    outcome = sandbox.run(work, on_output=blocks.append, stop=StopSwitch())
    return outcome, b"".join(blocks).decode(errors="replace")
