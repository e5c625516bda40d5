"""Files for property tests: what spreadsheets and people write."""

from hypothesis import strategies as st

BLOCKS = st.sampled_from([1, 2, 3, 5, 7, 16, 64, 1 << 18])


def field() -> st.SearchStrategy[str]:
    """A field as it lies in the file: plain, with stray quotes, or quoted with anything inside."""
    plain = st.text(st.sampled_from(["a", "1", " ", "é", "漢", "."]), max_size=4)
    stray = st.sampled_from(['5" pipe', 'a"', 'a""b', "it's"])
    inside = st.lists(st.sampled_from(["x", '""', "\n", "\r\n", "\r", ",", ";", "\t", "|", "é"]), max_size=6).map("".join)
    tailed = st.sampled_from(['"a"b', '"a"b"c', '"a" ', '""x'])
    return st.one_of(plain, stray, inside.map(lambda text: f'"{text}"'), tailed)


@st.composite
def csv_files(draw: st.DrawFn) -> tuple[bytes, str]:
    """(bytes, delimiter) of a well-formed file of two or more columns."""
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    columns = draw(st.integers(2, 4))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    rows = draw(st.lists(st.lists(field(), min_size=columns, max_size=columns), min_size=1, max_size=8))
    lines = [delimiter.join(f"col{i}" for i in range(columns))]
    lines += [delimiter.join(row) for row in rows]
    blanks = draw(st.lists(st.integers(0, len(lines)), max_size=2))
    for place in sorted(blanks, reverse=True):
        lines.insert(place, "")
    text = end.join(lines) + (end if draw(st.booleans()) else "")
    bom = "\ufeff" if draw(st.booleans()) else ""
    return (bom + text).encode(), delimiter
