"""What a provider offers for ranks: settings, and places that ranks share."""

import argparse

import pytest

from gridx_worker.ddp.offer import BadOffer, Offer, place_on_this_machine, read_offer


def read(given: dict[str, str] | None = None, environment: dict[str, str] | None = None, sandbox: str = "process") -> Offer:
    arguments = argparse.Namespace(**{f"ddp_{name}": value for name, value in (given or {}).items()})
    return read_offer(arguments, environment or {}, sandbox)


class TestReadOffer:
    def test_nothing_by_default(self) -> None:
        assert read() == Offer(slots=0, network=None, address="", ports=(29500, 29563), docker_network=None)

    def test_the_command_line_wins_over_the_environment(self) -> None:
        environment = {"WORKER_DDP_SLOTS": "3", "WORKER_DDP_PORTS": "31000"}
        assert read(environment=environment).slots == 3
        assert (read({"slots": "1"}, environment).slots, read(environment=environment).ports) == (1, (31000, 31000))

    def test_a_network_of_docker_is_the_providers_own_choice(self) -> None:
        given = {"slots": "1", "network": "lab", "address": "10.0.0.7"}
        with pytest.raises(BadOffer, match="--ddp-docker-network host"):
            read(given, sandbox="docker")
        assert read(given | {"docker_network": "host"}, sandbox="docker").docker_network == "host"
        assert read(given).network == "lab"

    @pytest.mark.parametrize(
        "given",
        [
            {"slots": "-1"},
            {"slots": "65"},
            {"slots": "many"},
            {"network": "lab"},
            {"address": "10.0.0.7"},
            {"network": "a b", "address": "10.0.0.7"},
            {"docker_network": "host"},
            {"ports": "0-5"},
            {"ports": "30000-29000"},
            {"ports": "29500-70000"},
        ],
    )
    def test_what_makes_no_sense_is_refused_by_name(self, given: dict[str, str]) -> None:
        with pytest.raises(BadOffer, match="--ddp-"):
            read(given)


def test_agents_on_one_machine_name_the_same_place() -> None:
    assert place_on_this_machine() == place_on_this_machine()
    assert place_on_this_machine().startswith("machine:")
