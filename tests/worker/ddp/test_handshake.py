"""Who reaches whom, on real sockets."""

import socket

import pytest

from gridx_worker.ddp.handshake import Listener, try_peers
from gridx_worker.ddp.offer import BadOffer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class TestTryPeers:
    def test_tells_those_that_answer_from_those_that_do_not(self) -> None:
        with Listener("127.0.0.1", (0, 0)) as one, Listener("127.0.0.1", (0, 0)) as two:
            peers = [(0, "127.0.0.1", one.port), (1, "127.0.0.1", free_port()), (2, "127.0.0.1", two.port)]
            assert try_peers(peers) == ([0, 2], [1])

    def test_another_program_on_the_port_is_no_rank(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            other.settimeout(10)
            # What the kernel accepts and nobody answers counts as not reached.
            assert try_peers([(3, "127.0.0.1", other.getsockname()[1])]) == ([], [3])


class TestListener:
    def test_takes_the_first_free_port_of_its_range_and_gives_it_back(self) -> None:
        port = free_port()
        with Listener("127.0.0.1", (port, port)) as first:
            assert first.port == port
            with pytest.raises(BadOffer, match="--ddp-ports"), Listener("127.0.0.1", (port, port)):
                pass
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))

    def test_an_address_of_another_machine_is_refused(self) -> None:
        with pytest.raises(BadOffer, match=r"192\.0\.2\.1"), Listener("192.0.2.1", (29500, 29501)):
            pass
