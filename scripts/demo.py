"""make demo: a server, two agents and a real job, from an empty folder to a trained model, in one command.

    python scripts/demo.py [--sandbox auto|docker|process] [--rounds 3] [--timeout 900]

A buyer submits examples/breast_cancer; two sellers' agents train on five chunks for three rounds. A fifth of the rows is held out here,
before anything is uploaded, and measures each round's global model. Everything lies under var/demo afterwards; the next run starts anew.
"""

import argparse
import contextlib
import csv
import fcntl
import json
import random
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from local_platform import (
    BIN,
    ROOT,
    Processes,
    Sandbox,
    Trouble,
    agent_command,
    clean_environment,
    docker_problem,
    free_port,
    running,
    wait_until_healthy,
)

DEMO = ROOT / "var" / "demo"
EXAMPLE = ROOT / "examples" / "breast_cancer"
FINAL_MODEL = DEMO / "final_model.pth"
CHUNKS = 5
HELD_OUT = 0.2
# The example's normalisation constants were computed on the rows that this seed leaves for training.
SPLIT_SEED = 20170403
GOOD_ENOUGH = 0.85
ENDED = {"COMPLETED", "FAILED", "CANCELLED"}


@dataclass
class Person:
    """A registered user, as the demo talks for them."""

    name: str
    client: httpx.Client
    id: int
    before: int

    def credits(self) -> int:
        return int(answer(self.client.get(f"/auth/wallet/{self.id}"))["credits"])


@dataclass
class Progress:
    """What has been said about the job so far, so that each thing is said once."""

    last: str = ""
    accuracies: dict[int, float] = field(default_factory=dict)


def main() -> int:
    parser = argparse.ArgumentParser(description="A Grid-X server, two agents and a real job on this machine.")
    parser.add_argument("--sandbox", choices=["auto", "docker", "process"], default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=900, help="seconds that the job may take")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone())
            start_anew()
            processes = stack.enter_context(running(DEMO / "logs"))
            try:
                return run(processes, options)
            except BaseException:
                show_logs(processes)
                raise
        except Trouble as trouble:
            print(f"\nThe demo failed: {trouble}", file=sys.stderr)
            return 1
        except (httpx.HTTPError, OSError, subprocess.SubprocessError) as error:
            print(f"\nThe demo failed: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\nInterrupted; everything the demo started is being ended.", file=sys.stderr)
            return 130


def run(processes: Processes, options: argparse.Namespace) -> int:
    started = time.monotonic()
    train_csv, held_out_csv = split_data()
    server = f"http://127.0.0.1:{free_port()}"
    settings = clean_environment(GRIDX_HOME=str(DEMO / "home"))

    say(f"server on {server}")
    port = server.rpartition(":")[2]
    # Started inside var/demo: a .env at the root belongs to the real platform, not to this one.
    processes.start("server", [str(BIN / "gridx"), "serve", "--host", "127.0.0.1", "--port", port], env=settings, cwd=DEMO)
    wait_until_healthy(server, processes)

    buyer = register(server, "buyer", "buyer")
    sellers = [register(server, f"seller-{number}", "seller") for number in (1, 2)]
    sandbox, why = choose_sandbox(options.sandbox)
    say(f"two agents, each in the {sandbox} sandbox: {why}")
    for seller in sellers:
        key = answer(seller.client.post("/agent/keys", json={"label": "demo"}))["key"]
        name = seller.name.replace("seller", "agent")
        command = agent_command(server, name, DEMO / "agents", sandbox)
        processes.start(name, command, env=clean_environment(GRIDX_KEY=key), cwd=DEMO)
    wait_for_agents(buyer, processes, len(sellers))

    job = submit(buyer, train_csv, options.rounds)
    job_id = job["job_id"]
    say(f"job {job_id}: {CHUNKS} chunks x {options.rounds} rounds, {job['price']} credits held in escrow")
    progress = follow(buyer, processes, job_id, options, accuracy_on(held_out_csv))
    fetch_final_model(buyer, job_id)
    final = accuracy_on(held_out_csv)(FINAL_MODEL)

    wallets = settle(buyer, sellers, int(job["price"]))
    processes.stop()
    ledger = check_ledger(settings)

    print(f"\nFinal model   {FINAL_MODEL.relative_to(ROOT)}")
    for number, accuracy in sorted(progress.accuracies.items()):
        print(f"Round {number}       {accuracy:.1%} of the held-out rows right")
    print(f"Final         {final:.1%} of the held-out rows right, which no agent saw")
    print("Wallets       " + ", ".join(wallets))
    print(f"Ledger        {ledger}")
    print(f"Time          {time.monotonic() - started:.0f} s")
    if final < GOOD_ENOUGH:
        raise Trouble(f"the final model is right on {final:.1%} of the held-out rows only; {GOOD_ENOUGH:.0%} was expected")
    if len(progress.accuracies) < options.rounds:
        raise Trouble(f"only {len(progress.accuracies)} of {options.rounds} rounds left a global model to measure")
    return 0


@contextlib.contextmanager
def alone() -> Generator[None]:
    """One demo at a time: the next one empties var/demo."""
    DEMO.mkdir(parents=True, exist_ok=True)
    with (DEMO / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Trouble("another make demo is running; wait for it or end it") from None
        yield


def start_anew() -> None:
    for path in DEMO.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def split_data() -> tuple[Path, Path]:
    """Makes the example's CSV and deals its rows: those to upload, and those that never leave this script."""
    whole, train, held_out = DEMO / "data.csv", DEMO / "train.csv", DEMO / "held_out.csv"
    subprocess.run([sys.executable, str(EXAMPLE / "make_data.py"), str(whole)], check=True, stdout=subprocess.DEVNULL, timeout=120)
    with whole.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    random.Random(SPLIT_SEED).shuffle(rows)
    count = round(len(rows) * HELD_OUT)
    for path, part in ((held_out, rows[:count]), (train, rows[count:])):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *part])
    say(f"data: {len(rows) - count} rows to train on, {count} held out")
    return train, held_out


def register(server: str, name: str, role: str) -> Person:
    client = httpx.Client(base_url=server, timeout=60, follow_redirects=True)
    email, password = f"{name}@example.com", secrets.token_urlsafe(24)
    user = answer(client.post("/auth/register", json={"email": email, "password": password, "role": role}))
    token = answer(client.post("/auth/login", json={"email": email, "password": password}))["access_token"]
    client.headers["Authorization"] = f"Bearer {token}"
    return Person(name, client, int(user["id"]), int(user["credits"]))


def choose_sandbox(wish: str) -> tuple[Sandbox, str]:
    if wish == "process":
        return "process", "asked for on the command line"
    problem = docker_problem()
    if problem is None:
        return "docker", "Docker answers and has the sandbox image"
    if wish == "docker":
        raise Trouble(f"--sandbox docker was asked for, but {problem}")
    return "process", f"no container, because {problem}. Good enough here, where the script is ours; never for strangers' code"


def wait_for_agents(buyer: Person, processes: Processes, count: int) -> None:
    deadline = time.monotonic() + 120
    online = 0
    while time.monotonic() < deadline:
        online = int(answer(buyer.client.get("/stats/summary"))["agents"]["online"])
        if online >= count:
            return
        if ended := processes.ended():
            raise Trouble(f"{ended} before it was online")
        time.sleep(0.2)
    raise Trouble(f"{online} of {count} agents came online within two minutes")


def submit(buyer: Person, train_csv: Path, rounds: int) -> dict[str, Any]:
    files = {
        "file_code": ("train.py", (EXAMPLE / "train.py").read_bytes()),
        "file_req": ("requirements.txt", (EXAMPLE / "requirements.txt").read_bytes()),
        "file_data": ("train.csv", train_csv.read_bytes()),
    }
    fields = {
        "title": "Breast cancer",
        "chunks": str(CHUNKS),
        "rounds": str(rounds),
        "hyperparameters": json.dumps({"epochs": 5, "learning_rate": 0.03}),
    }
    return answer(buyer.client.post("/jobs/upload", data=fields, files=files))


def follow(buyer: Person, processes: Processes, job_id: int, options: argparse.Namespace, measure: Callable[[Path], float]) -> Progress:
    """Polls the job until it ends, and measures each round's global model as soon as it is there."""
    progress = Progress()
    deadline = time.monotonic() + options.timeout
    while True:
        job = answer(buyer.client.get(f"/jobs/{job_id}"))
        report(job, progress)
        measure_new_rounds(buyer, job_id, progress, measure)
        if job["status"] in ENDED:
            break
        if ended := processes.ended():
            raise Trouble(f"{ended} while the job was {job['status']}")
        if time.monotonic() > deadline:
            raise Trouble(f"the job is still {job['status']} after {options.timeout:.0f} s")
        time.sleep(0.3)
    if job["status"] != "COMPLETED":
        raise Trouble(f"the job is {job['status']}: {(job.get('reason') or 'no reason given')[:1000]}")
    measure_new_rounds(buyer, job_id, progress, measure)
    return progress


def report(job: dict[str, Any], progress: Progress) -> None:
    round_ = f"round {job.get('current_round') or 1} of {job['rounds']}"
    line = f"{job['status']:<11} {round_}, {job['completed_subtasks']} of {job['total_subtasks']} subtasks verified"
    if line != progress.last:
        say(line)
        progress.last = line


def measure_new_rounds(buyer: Person, job_id: int, progress: Progress, measure: Callable[[Path], float]) -> None:
    for item in answer(buyer.client.get(f"/jobs/{job_id}/artifacts"))["items"]:
        number = item.get("round")
        if item["kind"] not in ("global_model", "final_model") or number is None or number in progress.accuracies:
            continue
        path = DEMO / "rounds" / f"global_model_{number}.pth"
        download(buyer, item["url"], path)
        progress.accuracies[number] = measure(path)
        say(f"round {number}: {progress.accuracies[number]:.1%} of the held-out rows right")


def fetch_final_model(buyer: Person, job_id: int) -> None:
    url = answer(buyer.client.get(f"/jobs/download/{job_id}"))["final_result_url"]
    if not url:
        raise Trouble("the job is COMPLETED but /jobs/download has no final_result_url")
    download(buyer, url, FINAL_MODEL)


def download(buyer: Person, url: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    base = str(buyer.client.base_url).rstrip("/")
    # A signed link elsewhere must not be handed our token.
    ours = url.startswith(("/", base))
    response = buyer.client.get(url) if ours else httpx.get(url, timeout=60, follow_redirects=True)
    if response.status_code != 200:
        raise Trouble(f"downloading {path.name} was answered {response.status_code}: {response.text[:300]}")
    path.write_bytes(response.content)


def accuracy_on(held_out_csv: Path) -> Callable[[Path], float]:
    """A function: model file -> share of held-out rows it gets right."""
    sys.path.insert(0, str(EXAMPLE))
    import torch  # takes seconds, so not before the server is on its way
    import train as example

    features, labels = example.read_rows(str(held_out_csv))

    def measure(path: Path) -> float:
        model = example.build_model()
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
        return example.share_right(model, features, labels)

    return measure


def settle(buyer: Person, sellers: list[Person], price: int) -> list[str]:
    """Wallets before and after, in words; the buyer's loss must be the sellers' gain."""
    people = [buyer, *sellers]
    after = {person.name: person.credits() for person in people}
    earned = sum(after[seller.name] - seller.before for seller in sellers)
    if buyer.before - after[buyer.name] != price or earned != price:
        raise Trouble(f"the price was {price}, the buyer paid {buyer.before - after[buyer.name]}, the sellers earned {earned}")
    return [f"{person.name} {person.before} -> {after[person.name]}" for person in people]


def check_ledger(settings: dict[str, str]) -> str:
    done = subprocess.run(
        [str(BIN / "gridx"), "check-ledger"], env=settings, cwd=DEMO, capture_output=True, text=True, timeout=120, check=False
    )
    output = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise Trouble(f"gridx check-ledger ended with {done.returncode}: {output}")
    return output.replace("\n", "\n              ")


def answer(response: httpx.Response) -> Any:
    """The JSON of a good answer; Trouble with the server's own words otherwise."""
    if response.is_success:
        return response.json()
    request = response.request
    raise Trouble(f"{request.method} {request.url.path} was answered {response.status_code}: {response.text[:500]}")


def show_logs(processes: Processes) -> None:
    for name in processes.names():
        if text := processes.tail(name):
            print(f"\n--- the end of {processes.log(name).relative_to(ROOT)}\n{text}", file=sys.stderr)


def say(text: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')}  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
