"""How a container is fenced in: the settings that every sandbox container gets, and the preflight that they will be enforced."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import psutil
from docker import DockerClient
from docker.types import DeviceRequest, LogConfig, Mount, Ulimit

from gridx_worker.sandbox.base import ProviderLimits

USER = "1000:1000"
"""The image's own user without rights."""
LABEL = "gridx"
What = Literal["attempt", "install", "volume"]
MB = 1024**2
FOREIGN_GRACE_S = 60.0


def find_problems(client: DockerClient) -> list[str]:
    """Limits that this Docker would not enforce, in words; empty when all is well."""
    info: dict[str, Any] = client.info()
    if info.get("OSType") != "linux":
        return ["Docker runs Windows containers; switch it to Linux containers"]
    wanted = {"MemoryLimit": "memory limits", "CpuCfsQuota": "CPU limits", "PidsLimit": "process limits"}
    problems = [f"the kernel does not support {words}" for name, words in wanted.items() if not info.get(name)]
    if not info.get("SwapLimit") and psutil.swap_memory().total:
        problems.append("swap cannot be limited (boot with swapaccount=1, or turn swap off)")
    if not any("seccomp" in option for option in info.get("SecurityOptions") or []):
        problems.append("seccomp is off")
    return problems


def best_runtime(client: DockerClient) -> str | None:
    """gVisor's runsc when the provider has it, else Docker's default."""
    return "runsc" if "runsc" in (client.info().get("Runtimes") or {}) else None


def owner_of(folder: Path) -> str:
    """Tells one agent's containers from another's on the same Docker: names may repeat, state folders are locked."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:12]


def make_labels(what: What, *, owner: str, agent: str, seconds: float, **ids: int) -> dict[str, str]:
    """`seconds` until anybody's reaper may remove it."""
    return {
        LABEL: what,
        f"{LABEL}.owner": owner,
        f"{LABEL}.agent": agent,
        f"{LABEL}.deadline": str(int(time.time() + seconds)),
        **{f"{LABEL}.{name}": str(value) for name, value in ids.items()},
    }


def is_leftover(labels: Mapping[str, str], *, owner: str, in_use: bool) -> bool:
    """Ours and not in use, or anybody's past its deadline."""
    if labels.get(f"{LABEL}.owner") == owner:
        return not in_use
    try:
        return time.time() > float(labels.get(f"{LABEL}.deadline", "inf")) + FOREIGN_GRACE_S
    except ValueError:
        return False


def fenced(limits: ProviderLimits, *, file_bytes: int, network: bool = False, user: str = USER) -> dict[str, Any]:
    """Arguments of containers.create() that keep a stranger's code in: see docs/security.md for each one's reason."""
    memory = limits.memory_bytes
    threads = str(limits.threads)
    return {
        "network_mode": "bridge" if network else "none",
        "read_only": True,
        "user": user,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": memory,
        "memswap_limit": memory,  # the sum of memory and swap: equal means no swap
        "pids_limit": limits.processes,
        "nano_cpus": int(limits.cpus * 1e9),
        "shm_size": max(min(memory // 4, 1024 * MB), 16 * MB),
        "ipc_mode": "private",
        "ulimits": [
            Ulimit(name="nofile", soft=4096, hard=4096),
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=file_bytes, hard=file_bytes),
        ],
        "tmpfs": {"/tmp": f"size={max(memory // 4, 16 * MB)},nr_inodes=65536,mode=1777,nosuid,nodev"},  # noqa: S108 - inside the container
        "log_config": LogConfig(type=LogConfig.types.JSON, config={"max-size": "1m", "max-file": "2"}),
        "environment": {
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "NUMEXPR_NUM_THREADS": threads,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/tmp",  # noqa: S108
        },
        "stdin_open": False,
        "tty": False,
        "entrypoint": [],
    }


def gpu_request(gpu: str) -> DeviceRequest:
    """One GPU, by index or UUID: no attempt shares one with another."""
    return DeviceRequest(device_ids=[gpu], capabilities=[["gpu"]])


def find_differences(made: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """What `docker inspect` says of a created container that is weaker than what was asked for; empty when all is well."""
    host: dict[str, Any] = made["HostConfig"]
    wanted = {
        "NetworkMode": asked["network_mode"],
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "Memory": asked["mem_limit"],
        "MemorySwap": asked["memswap_limit"],
        "PidsLimit": asked["pids_limit"],
        "NanoCpus": asked["nano_cpus"],
        "IpcMode": asked["ipc_mode"],
    }
    unwanted = ("Privileged", "Binds", "Devices", "CapAdd", "PidMode", "UTSMode")
    differing = [name for name, value in wanted.items() if host.get(name) != value] + [name for name in unwanted if host.get(name)]
    found = [f"{name} is {host.get(name)!r}" for name in differing]
    if not any(str(option).startswith("no-new-privileges") for option in host.get("SecurityOpt") or []):
        found.append("new privileges are possible")
    if made["Config"].get("User") != asked["user"]:
        found.append(f"it runs as {made['Config'].get('User')!r}")
    gpus = [list(each.get("DeviceIDs") or ()) for each in host.get("DeviceRequests") or []]
    if gpus != [list(each["DeviceIDs"]) for each in asked.get("device_requests") or []]:
        found.append(f"its devices are {gpus}")
    mounts = {(mount["Target"], bool(mount.get("ReadOnly"))) for mount in host.get("Mounts") or []}
    if mounts != {(mount["Target"], bool(mount.get("ReadOnly"))) for mount in asked["mounts"]}:
        found.append(f"its mounts are {sorted(mounts)}")
    return found


def read_only_bind(source: Path, target: str) -> Mount:
    return Mount(target=target, source=str(source), type="bind", read_only=True)


def tmpfs_volume_options(*, size: int, inodes: int) -> dict[str, str]:
    """Driver options of a volume in memory that ends at `size` bytes. Its contents vanish with its last container."""
    uid, gid = USER.split(":")
    return {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": f"size={size},nr_inodes={inodes},uid={uid},gid={gid},mode=0700,nosuid,nodev,noexec",
    }
