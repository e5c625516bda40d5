"""What a provider offers for ranks of synchronous training, and where the others reach them. Imports no grpc."""

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/net")
FIRST_PORT, LAST_PORT = 29500, 29563


class BadOffer(Exception):
    """A setting makes no sense; the message names it."""


@dataclass(frozen=True)
class Offer:
    """`slots` ranks at the same time. With a `network`, agents that name the same one train together: each at its own `address`.

    `docker_network` is what containers of ranks are attached to then: `host`, or a network of this Docker.
    """

    slots: int = 0
    network: str | None = None
    address: str = ""
    ports: tuple[int, int] = (FIRST_PORT, LAST_PORT)
    docker_network: str | None = None


def read_offer(arguments: argparse.Namespace, environment: Mapping[str, str], sandbox: str) -> Offer:
    """From the command line, else the environment. Raises BadOffer."""

    def given(name: str) -> str:
        value = getattr(arguments, f"ddp_{name}", None)
        return str(value).strip() if value is not None else environment.get(f"WORKER_DDP_{name.upper()}", "").strip()

    slots, network, address = given("slots") or "0", given("network") or None, given("address")
    docker_network = given("docker_network") or None
    if not slots.isascii() or not slots.isdigit() or int(slots) > 64:
        raise BadOffer(f"--ddp-slots {slots!r} (or WORKER_DDP_SLOTS) is no number from 0 to 64")
    if network is not None and not _NETWORK.fullmatch(network):
        raise BadOffer(f"--ddp-network {network!r} may hold up to 64 letters, digits, dots, dashes and underscores")
    if (network is None) != (address == ""):
        raise BadOffer("give --ddp-network and --ddp-address together: a name that the agents share, and this machine's address there")
    if network is not None and sandbox == "docker" and docker_network is None:
        raise BadOffer("with --ddp-network, say which network of Docker the ranks get: --ddp-docker-network host, or the name of one")
    if docker_network is not None and network is None:
        raise BadOffer("--ddp-docker-network goes with --ddp-network; without it ranks reach those on the same Docker only")
    return Offer(int(slots), network, address, _ports(given("ports")), docker_network)


def place_on_this_machine() -> str:
    """Names what shares a loopback: this boot of this machine, and its network namespace."""
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else os.uname().nodename
    namespace = os.stat(_NAMESPACE).st_ino if _NAMESPACE.exists() else 0
    return f"machine:{boot}:{namespace}"


def _ports(text: str) -> tuple[int, int]:
    if not text:
        return FIRST_PORT, LAST_PORT
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise BadOffer(f"--ddp-ports {text!r} is no port and no range such as 29500-29509")
    return first, last
