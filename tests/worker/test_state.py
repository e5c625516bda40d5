from pathlib import Path

import pytest

from gridx_worker.state import AlreadyRunning, Identity, State

IDENTITY = Identity(agent_id="a", server="http://s", token="t")


class TestState:
    def test_identity_survives_a_restart(self, tmp_path: Path) -> None:
        state = State(tmp_path / "a")
        state.save(IDENTITY)
        state.close()
        assert State(tmp_path / "a").load(server="http://s") == IDENTITY

    def test_only_the_owner_may_read_it(self, tmp_path: Path) -> None:
        state = State(tmp_path / "a")
        state.save(IDENTITY)
        assert (state.folder / "state.json").stat().st_mode & 0o777 == 0o600
        assert state.folder.stat().st_mode & 0o777 == 0o700

    def test_token_is_not_shown_to_another_server(self, tmp_path: Path) -> None:
        state = State(tmp_path / "a")
        state.save(IDENTITY)
        assert state.load(server="http://other") is None

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"agent_id": "a"}'])
    def test_damaged_file_counts_as_none(self, tmp_path: Path, content: str) -> None:
        state = State(tmp_path / "a")
        (state.folder / "state.json").write_text(content)
        assert state.load(server="http://s") is None

    def test_second_agent_of_the_same_name_is_refused(self, tmp_path: Path) -> None:
        first = State(tmp_path / "a")
        with pytest.raises(AlreadyRunning, match="--name"):
            State(tmp_path / "a")
        first.close()
        State(tmp_path / "a").close()

    def test_forgotten(self, tmp_path: Path) -> None:
        state = State(tmp_path / "a")
        state.save(IDENTITY)
        state.forget()
        assert state.load(server="http://s") is None
