from pathlib import Path

import pytest

from gridx_worker.cli import build_parser
from gridx_worker.config import BadSetting, Config, build_config


def build(*arguments: str, **environment: str) -> Config:
    return build_config(build_parser().parse_args(["run", *arguments]), environment)


class TestBuildConfig:
    def test_defaults(self) -> None:
        config = build()
        assert (config.server, config.sandbox, config.key) == ("http://127.0.0.1:8000", "docker", None)
        assert (config.heartbeat_s, config.poll_s) == (10, 5)
        assert (config.limits.cpus, config.limits.memory_bytes) == (1.0, 2048 * 1024**2)

    def test_environment(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("from-file\n")
        config = build(
            COORDINATOR_URL="http://c", AGENT_ID="n", GRIDX_KEY_FILE=str(tmp_path / "key"), WORKER_MEMORY_LIMIT="512",
            WORKER_CPU_LIMIT="2.5", WORKER_HEARTBEAT_INTERVAL="3", WORKER_POLL_INTERVAL="0.5",
        )  # fmt: skip
        assert (config.server, config.name, config.key) == ("http://c", "n", "from-file")
        assert (config.limits.memory_bytes, config.limits.cpus, config.limits.threads) == (512 * 1024**2, 2.5, 2)
        assert (config.heartbeat_s, config.poll_s) == (3, 0.5)

    def test_backend_url_wins_over_its_alias_and_the_command_line_over_both(self) -> None:
        assert build(BACKEND_URL="http://b", COORDINATOR_URL="http://c").server == "http://b"
        assert build("--server", "http://a", BACKEND_URL="http://b").server == "http://a"

    def test_state_is_kept_per_name(self, tmp_path: Path) -> None:
        assert build("--name", "x", "--state-dir", str(tmp_path)).state_dir == tmp_path / "x"

    @pytest.mark.parametrize(
        ("arguments", "environment", "words"),
        [
            (["--name", "../x"], {}, "name"),
            (["--server", "127.0.0.1:8000"], {}, "http://"),
            ([], {"WORKER_MEMORY_LIMIT": "much"}, "WORKER_MEMORY_LIMIT"),
            ([], {"WORKER_POLL_INTERVAL": "-1"}, "WORKER_POLL_INTERVAL"),
            (["--memory-mb", "10"], {}, "256 MB"),
            (["--key-file", "/nowhere/key"], {}, "/nowhere/key"),
        ],
    )
    def test_what_makes_no_sense_is_named(self, arguments: list[str], environment: dict[str, str], words: str) -> None:
        with pytest.raises(BadSetting, match=words):
            build(*arguments, **environment)
