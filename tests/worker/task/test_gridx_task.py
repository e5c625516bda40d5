import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

import gridx_worker.task


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Imports the helper anew, as a script in `tmp_path` would."""
    monkeypatch.chdir(tmp_path)

    def make(**hyperparameters: object) -> ModuleType:
        monkeypatch.setenv("GRIDX_HYPERPARAMETERS", json.dumps(hyperparameters))
        path = Path(gridx_worker.task.__file__).with_name("gridx_task.py")
        spec = importlib.util.spec_from_file_location("gridx_task", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


def report(module: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **values: object) -> dict[str, object]:
    monkeypatch.setenv("GRIDX_MARK", "m")
    module.report(**values)
    return json.loads(capfd.readouterr().out.removeprefix("\x1em "))


class TestReport:
    def test_scalars_of_every_library(
        self, load: Callable[..., ModuleType], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent = report(load(), capfd, monkeypatch, epoch=3, loss=torch.tensor(0.5, requires_grad=True), accuracy=1, lr=0.1)
        assert sent == {"event": "report", "epoch": 3, "loss": 0.5, "accuracy": 1.0, "more": {"lr": 0.1}}

    def test_what_is_no_number_never_ends_the_training(
        self, load: Callable[..., ModuleType], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent = report(load(), capfd, monkeypatch, epoch="x", loss=math.nan, accuracy=torch.ones(3), name="text", big=math.inf)
        assert sent == {"event": "report", "epoch": None, "loss": None, "accuracy": None, "more": {}}

    def test_silent_outside_grid_x(self, load: Callable[..., ModuleType], capfd: pytest.CaptureFixture[str]) -> None:
        load().report(epoch=1, loss=0.5)
        assert capfd.readouterr().out == ""


class TestGlobalModel:
    def test_none_in_round_one(self, load: Callable[..., ModuleType]) -> None:
        assert load().load_global_model(torch.nn.Linear(2, 1)) is False

    def test_loaded_in_place(self, load: Callable[..., ModuleType]) -> None:
        given, model = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        torch.save(given.state_dict(), "global_model.pth")
        assert load().load_global_model(model) is True
        assert torch.equal(given.weight, model.weight)


class TestProximalTerm:
    def test_half_mu_times_squared_distance_with_its_gradient(self, load: Callable[..., ModuleType]) -> None:
        model = torch.nn.Linear(2, 1)
        start = {name: value.clone() for name, value in model.state_dict().items()}
        torch.save(start, "global_model.pth")
        with torch.no_grad():
            model.weight += torch.tensor([[3.0, 4.0]])
        term = load(mu=0.2).proximal_term(model)
        term.backward()
        assert term.item() == pytest.approx(0.1 * 25)
        assert model.weight.grad is not None
        assert torch.allclose(model.weight.grad, 0.2 * torch.tensor([[3.0, 4.0]]))

    def test_own_mu_wins(self, load: Callable[..., ModuleType]) -> None:
        model = torch.nn.Linear(1, 1, bias=False)
        torch.save({"weight": model.weight.detach() + 1}, "global_model.pth")
        assert load(mu=100).proximal_term(model, 2.0).item() == pytest.approx(1.0)

    @pytest.mark.parametrize("mu", [0.0, 0.5])
    def test_zero_without_mu_or_global_model(self, load: Callable[..., ModuleType], mu: float) -> None:
        assert load(mu=mu).proximal_term(torch.nn.Linear(1, 1)).item() == 0.0

    def test_frozen_parameters_and_new_names_do_not_count(self, load: Callable[..., ModuleType]) -> None:
        model = torch.nn.Linear(1, 1)
        model.bias.requires_grad_(False)
        torch.save({"bias": model.bias.detach() + 5, "another": torch.ones(1)}, "global_model.pth")
        assert load(mu=1).proximal_term(model).item() == 0.0


class TestSaveCheckpoint:
    def test_of_a_model_and_of_a_state_dict(self, load: Callable[..., ModuleType], tmp_path: Path) -> None:
        model, module = torch.nn.Linear(2, 1), load()
        module.save_checkpoint(model)
        assert torch.load("model.pth", weights_only=True).keys() == {"weight", "bias"}
        module.save_checkpoint({"x": torch.ones(1)})
        assert torch.load("model.pth", weights_only=True).keys() == {"x"}
        assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]


class TestSchema:
    def test_there_and_not(self, load: Callable[..., ModuleType], tmp_path: Path) -> None:
        assert load().schema() == {}
        (tmp_path / "schema.json").write_text('{"a": {"mean": 1.5}}')
        assert load().schema() == {"a": {"mean": 1.5}}


STATE: dict[str, object] = {
    "model": {"weight": torch.ones(2, 3), "count": torch.tensor(4)},
    "optimizer": {"state": {0: {"step": torch.tensor(1.0), "buffer": None}}, "groups": [{"lr": 0.1, "betas": (0.9, 0.99), "on": True}]},
    "epoch": 3,
    "name": "run",
}


class TestCheckpoint:
    def test_a_nested_state_comes_back_as_it_was(
        self, load: Callable[..., ModuleType], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GRIDX_MODE", "ddp")
        monkeypatch.setenv("GRIDX_MARK", "m")
        helper = load()
        assert helper.load_checkpoint() is None
        helper.save_checkpoint(STATE)
        assert json.loads(capfd.readouterr().out.removeprefix("\x1em ")) == {"event": "checkpoint", "number": 1}
        flat = torch.load("checkpoint-1.pth", weights_only=True)
        assert all(isinstance(value, torch.Tensor) for value in flat.values()), "what the server can check"
        Path("checkpoint-1.pth").rename("checkpoint.pth")
        found = helper.load_checkpoint()
        assert torch.equal(found["model"]["weight"], torch.ones(2, 3))
        assert found["optimizer"]["state"][0]["buffer"] is None
        assert found["optimizer"]["groups"] == [{"lr": 0.1, "betas": (0.9, 0.99), "on": True}]
        assert (found["epoch"], found["name"], int(found["model"]["count"])) == (3, "run", 4)

    def test_rank_0_alone_saves_and_two_files_stay(self, load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GRIDX_MODE", "ddp")
        monkeypatch.setenv("RANK", "1")
        helper = load()
        helper.save_checkpoint(STATE)
        assert list(Path().glob("checkpoint*")) == []
        monkeypatch.setenv("RANK", "0")
        for _ in range(4):
            helper.save_checkpoint(STATE)
        assert sorted(path.name for path in Path().glob("checkpoint*")) == ["checkpoint-3.pth", "checkpoint-4.pth"]
        assert not Path("model.pth").exists()

    def test_what_it_cannot_hold_is_named(self, load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GRIDX_MODE", "ddp")
        with pytest.raises(TypeError, match="no set"):
            load().save_checkpoint({"seen": {1, 2}})
