from gridx.aggregation.checks import compare
from gridx.aggregation.summary import TensorSpec, UpdateSummary


def summary(**tensors: tuple[int, ...]) -> UpdateSummary:
    specs = [TensorSpec(name.replace("__", "."), "float32", shape) for name, shape in tensors.items()]
    return UpdateSummary.of("", 0, specs)


MODEL = summary(fc1__weight=(8, 4), fc1__bias=(8,), out__weight=(3, 8), out__bias=(3,))


class TestCompare:
    def test_equal_models_and_other_order(self) -> None:
        assert compare(MODEL, MODEL) is None
        assert compare(MODEL, summary(out__bias=(3,), fc1__weight=(8, 4), fc1__bias=(8,), out__weight=(3, 8))) is None

    def test_missing_and_extra_keys(self) -> None:
        words = compare(MODEL, summary(fc1__weight=(8, 4), fc1__bias=(8,), out__weight=(3, 8), head=(3,)))
        assert words is not None
        assert "missing: 'out.bias'" in words
        assert "not in the round's model: 'head'" in words

    def test_a_missing_class(self) -> None:
        words = compare(MODEL, summary(fc1__weight=(8, 4), fc1__bias=(8,), out__weight=(2, 8), out__bias=(2,)))
        assert words is not None
        assert "layer 'out.weight' has shape 2x8, the round's model has 3x8" in words
        assert "lacks a class (2 of 3)" in words

    def test_a_missing_category(self) -> None:
        words = compare(MODEL, summary(fc1__weight=(8, 3), fc1__bias=(8,), out__weight=(3, 8), out__bias=(3,)))
        assert words is not None
        assert "lacks a category" in words

    def test_a_hidden_layer_gets_no_hint(self) -> None:
        words = compare(MODEL, summary(fc1__weight=(9, 4), fc1__bias=(9,), out__weight=(3, 9), out__bias=(3,)))
        assert words is not None
        assert "probably" not in words

    def test_dtypes(self) -> None:
        half = UpdateSummary.of("", 0, [TensorSpec(s.name, "float16", s.shape) for s in MODEL.tensors])
        words = compare(MODEL, half)
        assert words is not None
        assert "layer 'fc1.weight' has dtype float16, the round's model has float32" in words
        assert "and 1 more" in words
