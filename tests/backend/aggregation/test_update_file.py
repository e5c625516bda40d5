"""Reading a stranger's weights: what is refused, with which words, and what the canonical file keeps."""

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from gridx.aggregation import safe_load
from gridx.aggregation.canonical import summarise
from gridx.aggregation.safe_load import verify_in_child
from gridx.aggregation.summary import UpdateCaps, UpdateRefused, UpdateSummary
from gridx.aggregation.update_file import inspect_update
from tests.backend.aggregation.hostile import HOSTILE, good_state

CAPS = UpdateCaps()


def canonical_of(state: object, folder: Path, **options: object) -> tuple[dict[str, torch.Tensor], UpdateSummary, bytes]:
    source, out = folder / "model.pth", folder / "canonical.pth"
    torch.save(state, source, **options)  # pyright: ignore[reportArgumentType]
    summary = inspect_update(source, out, CAPS)
    return torch.load(out, weights_only=True), summary, out.read_bytes()


class TestInspectUpdate:
    def test_keeps_values_names_and_order(self, tmp_path: Path) -> None:
        state = good_state()
        loaded, summary, raw = canonical_of(state, tmp_path)
        assert list(loaded) == list(state)
        assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())
        assert summary.size == len(raw)
        assert summary.parameters == 15
        assert summarise(tmp_path / "canonical.pth") == summary
        assert UpdateSummary.from_json(json.loads(json.dumps(summary.to_json()))) == summary

    @pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"])
    @pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (3, 5), (2, 3, 4)])
    def test_every_dtype_and_shape(self, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        tensor = (torch.rand(shape) * 3).to(getattr(torch, dtype))
        loaded, summary, _ = canonical_of({"t": tensor}, tmp_path)
        assert loaded["t"].dtype == tensor.dtype
        assert loaded["t"].shape == tensor.shape
        assert loaded["t"].is_contiguous()
        assert torch.equal(loaded["t"], tensor)
        assert (summary.tensors[0].dtype, summary.tensors[0].shape) == (dtype, shape)

    def test_views_tied_and_expanded_tensors_get_a_storage_each(self, tmp_path: Path) -> None:
        base = torch.arange(24.0).reshape(4, 6)
        state = {"whole": base, "tied": base, "transposed": base.T, "cut": base[1:3, ::2], "expanded": base[0, :1].expand(4, 6)}
        loaded, _, _ = canonical_of(state, tmp_path)
        assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())
        assert len({tensor.untyped_storage().data_ptr() for tensor in loaded.values()}) == len(state)

    def test_a_parameter_and_a_module_state_dict(self, tmp_path: Path) -> None:
        net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        loaded, _, _ = canonical_of(net.state_dict(), tmp_path)
        net.load_state_dict(loaded)
        loaded, _, _ = canonical_of({"w": torch.nn.Parameter(torch.ones(2))}, tmp_path)
        assert torch.equal(loaded["w"], torch.ones(2))

    def test_same_tensors_give_the_same_bytes(self, tmp_path: Path) -> None:
        state = good_state()
        _, _, first = canonical_of(state, tmp_path)
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        again = tmp_path / "again.pth"
        with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(again, "w") as target:
            for name in reversed(source.namelist()):
                target.writestr(name.replace("archive/", "another name/"), source.read(name))
        inspect_update(again, tmp_path / "out.pth", CAPS)
        assert (tmp_path / "out.pth").read_bytes() == first
        inspect_update(tmp_path / "out.pth", tmp_path / "twice.pth", CAPS)
        assert (tmp_path / "twice.pth").read_bytes() == first

    def test_the_canonical_file_is_a_whole_zip(self, tmp_path: Path) -> None:
        canonical_of(good_state(), tmp_path)
        assert zipfile.ZipFile(tmp_path / "canonical.pth").testzip() is None

    def test_a_bool_of_any_byte_becomes_true_or_false(self, tmp_path: Path) -> None:
        odd = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
        loaded, _, _ = canonical_of({"mask": odd}, tmp_path)
        assert loaded["mask"].view(torch.uint8).tolist() == [0, 1, 1, 1]

    def test_names_layer_and_count_of_bad_values(self, tmp_path: Path) -> None:
        state = good_state()
        state["fc.bias"][:2] = float("nan")
        with pytest.raises(UpdateRefused, match=r"layer 'fc.bias' holds 2 of 3 values"):
            canonical_of(state, tmp_path)

    def test_large_finite_values_pass(self, tmp_path: Path) -> None:
        canonical_of({"w": torch.full((10,), 1.7e308, dtype=torch.float64)}, tmp_path)

    def test_a_whole_module_is_told_the_line_to_change(self, tmp_path: Path) -> None:
        with pytest.raises(UpdateRefused, match=r"torch\.save\(model\.state_dict\(\), 'model\.pth'\)"):
            canonical_of(torch.nn.Linear(2, 2), tmp_path)

    def test_caps_are_kept(self, tmp_path: Path) -> None:
        source = tmp_path / "model.pth"
        torch.save({f"t{i}": torch.ones(100) for i in range(20)}, source)
        for caps, code in [(UpdateCaps(max_bytes=1000), "too_large"), (UpdateCaps(max_tensors=10), "too_many_tensors")]:
            with pytest.raises(UpdateRefused) as refused:
                inspect_update(source, tmp_path / "out.pth", caps)
            assert refused.value.code == code


class TestHostile:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_is_refused_in_the_child_and_leaves_nothing(self, tmp_path: Path, name: str) -> None:
        code, make = HOSTILE[name]
        source = tmp_path / "model.pth"
        make(source)
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, tmp_path / "out.pth", UpdateCaps(max_bytes=1 << 28))
        assert refused.value.code == code, refused.value.detail
        assert len(refused.value.detail) > 20
        assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]
        assert not Path("/tmp/gridx-gadget-ran").exists()

    def test_truncated_anywhere(self, tmp_path: Path) -> None:
        whole = tmp_path / "whole.pth"
        torch.save(good_state(), whole)
        raw = whole.read_bytes()
        for cut in [*range(1, 200, 7), *range(200, len(raw), 61), len(raw) - 1]:
            source = tmp_path / "model.pth"
            source.write_bytes(raw[:cut])
            with pytest.raises(UpdateRefused):
                inspect_update(source, tmp_path / "out.pth", CAPS)
        assert not (tmp_path / "out.pth").exists()

    def test_flipped_bits_are_refused_or_harmless(self, tmp_path: Path) -> None:
        whole = tmp_path / "whole.pth"
        torch.save(good_state(), whole)
        raw = whole.read_bytes()
        expected = inspect_update(whole, tmp_path / "good.pth", CAPS)
        for at in range(0, len(raw), 13):
            source = tmp_path / "model.pth"
            source.write_bytes(raw[:at] + bytes([raw[at] ^ (1 << at % 8)]) + raw[at + 1 :])
            try:
                found = inspect_update(source, tmp_path / "out.pth", CAPS)
            except UpdateRefused:
                continue
            assert found.sha256 == expected.sha256


class TestVerifyInChild:
    def test_gives_what_inspection_gives(self, tmp_path: Path) -> None:
        source = tmp_path / "model.pth"
        torch.save(good_state(), source)
        expected = inspect_update(source, tmp_path / "here.pth", CAPS)
        assert verify_in_child(source, tmp_path / "there.pth", CAPS) == expected
        assert (tmp_path / "there.pth").read_bytes() == (tmp_path / "here.pth").read_bytes()

    def test_memory_limit(self, tmp_path: Path) -> None:
        source = tmp_path / "model.pth"
        torch.save({"w": torch.ones(16 << 20)}, source)
        with pytest.raises(UpdateRefused) as refused:
            verify_in_child(source, tmp_path / "out.pth", UpdateCaps(memory_bytes=16 << 20))
        assert refused.value.code == "memory_limit"

    def test_wall_clock(self, tmp_path: Path) -> None:
        source = tmp_path / "model.pth"
        torch.save({"w": torch.ones(16 << 20)}, source)
        with pytest.raises(UpdateRefused, match=r"longer than 0\.001 s") as refused:
            verify_in_child(source, tmp_path / "out.pth", CAPS, timeout_s=0.001)
        assert refused.value.code == "timeout"
        assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]

    def test_a_death_by_signal_is_a_refused_upload(self) -> None:
        assert safe_load._death(-11, CAPS).code == "crashed"
        assert "SIGSEGV" in safe_load._death(-11, CAPS).detail
        assert safe_load._death(-24, CAPS).code == "cpu_limit"

    def test_an_answer_of_a_child_taken_over(self) -> None:
        for answer in (b"", b"[]", b"{}", b"\xff", b'{"tensors": 3}'):
            with pytest.raises(UpdateRefused) as refused:
                safe_load._decode(answer)
            assert refused.value.code == "crashed"

    def test_callers_may_be_threads(self, tmp_path: Path) -> None:
        source = tmp_path / "model.pth"
        torch.save(good_state(), source)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda i: verify_in_child(source, tmp_path / f"{i}.pth", CAPS), range(8)))
        assert len({summary.sha256 for summary in found}) == 1

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(UpdateRefused):
            verify_in_child(tmp_path / "absent.pth", tmp_path / "out.pth", CAPS)
