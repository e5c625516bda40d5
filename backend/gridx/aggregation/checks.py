"""Whether an update fits the round's model, in words a scientist can act on."""

from gridx.aggregation.summary import TensorSpec, UpdateSummary

_NAMED = 3


def compare(reference: UpdateSummary, update: UpdateSummary) -> str | None:
    """The first differences between the round's model and an update; None when names, dtypes and shapes agree."""
    if reference.signature == update.signature:
        return None
    expected = {spec.name: spec for spec in reference.tensors}
    found = {spec.name: spec for spec in update.tensors}
    sentences: list[str] = []
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    if missing:
        sentences.append(f"missing: {_list(missing)}")
    if extra:
        sentences.append(f"not in the round's model: {_list(extra)}")
    common = [(expected[name], found[name]) for name in expected if name in found]
    shapes = [(want, have) for want, have in common if want.shape != have.shape]
    dtypes = [(want, have) for want, have in common if want.dtype != have.dtype]
    if shapes:
        named = [f"layer {w.name!r} has shape {_shape(h)}, the round's model has {_shape(w)}" for w, h in shapes[:_NAMED]]
        sentences.append("; ".join(named) + _more(len(shapes)))
    if dtypes:
        named = [f"layer {w.name!r} has dtype {h.dtype}, the round's model has {w.dtype}" for w, h in dtypes[:_NAMED]]
        sentences.append("; ".join(named) + _more(len(dtypes)))
    hint = "" if missing or extra else _hint(reference, shapes)
    return "the update does not fit the round's model: " + ". ".join(sentences) + hint


def _hint(reference: UpdateSummary, shapes: list[tuple[TensorSpec, TensorSpec]]) -> str:
    """A guess at the cause when only the output layer, or only the input layer, differs."""
    if not shapes:
        return ""
    weights = [spec.name for spec in reference.tensors if len(spec.shape) >= 2]
    layers = {name.rpartition(".")[0] for name in ((want.name) for want, _ in shapes)}
    last = weights[-1].rpartition(".")[0] if weights else None
    first = weights[0].rpartition(".")[0] if weights else None
    ranks = all(len(want.shape) == len(have.shape) > 0 for want, have in shapes)
    outputs = ranks and all(want.shape[1:] == have.shape[1:] for want, have in shapes)
    inputs = ranks and all(want.shape[:-1] == have.shape[:-1] for want, have in shapes)
    if outputs and layers == {last}:
        want, have = shapes[0]
        if have.shape[0] < want.shape[0]:
            return (
                f". Only the output layer differs: the chunk probably lacks a class ({have.shape[0]} of {want.shape[0]});"
                " give the script the number of classes of the whole dataset instead of counting them in the chunk"
            )
        return ". Only the output layer differs: give the script the number of classes of the whole dataset"
    if inputs and layers == {first}:
        return (
            ". Only the input layer differs: the chunk probably lacks a category, so that its encoder made fewer columns;"
            " give the script the categories of the whole dataset instead of fitting encoders on the chunk"
        )
    return ""


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_NAMED])) + _more(len(names))


def _more(count: int) -> str:
    return f" and {count - _NAMED} more" if count > _NAMED else ""


def _shape(spec: TensorSpec) -> str:
    return "x".join(map(str, spec.shape)) if spec.shape else "no dimensions"
