"""What a buyer sends along: the script and its requirements, checked before credits move. Pure."""

import ast
import re

from packaging.requirements import InvalidRequirement, Requirement

from gridx.core.errors import GridxError

MAX_SCRIPT_BYTES = 1024 * 1024
MAX_REQUIREMENTS_BYTES = 64 * 1024
MAX_REQUIREMENT_LINES = 200
MAX_REQUIREMENT_CHARS = 300
_LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines would also split at characters that belong to no text file
_MODEL_FILE = "model.pth"
_FITTED = (
    (re.compile(r"\b(LabelEncoder|OrdinalEncoder|OneHotEncoder|LabelBinarizer)\("), "its categories", "['categories']"),
    (re.compile(r"\b(get_dummies|factorize|nunique)\("), "its categories", "['categories']"),
    (re.compile(r"\b(StandardScaler|RobustScaler|Normalizer)\("), "mean and deviation", "['mean'] and ['std']"),
    (re.compile(r"\b(MinMaxScaler|MaxAbsScaler)\("), "minimum and maximum", "['min'] and ['max']"),
)
_PATH = re.compile(r"^(\.{0,2}/|~|[A-Za-z]:\\|file:)|\.(whl|zip|tar\.gz|tgz)$")


class ScriptRefused(GridxError):
    status = 422
    code = "script_refused"


class RequirementsRefused(GridxError):
    status = 422
    code = "requirements_refused"


def check_script(code: bytes) -> list[str]:
    """Check that a script can be started at all. Returns warnings in words.

    Raises:
        ScriptRefused: empty, too large, not UTF-8, or no Python; names the line.
    """
    if not code.strip():
        raise ScriptRefused("file_code: the script is empty")
    if len(code) > MAX_SCRIPT_BYTES:
        raise ScriptRefused(f"file_code: the script has {len(code)} bytes; at most {MAX_SCRIPT_BYTES} are taken")
    try:
        text = code.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = code[: error.start].count(b"\n") + 1
        raise ScriptRefused(f"file_code: line {line} is not UTF-8; save the script as UTF-8") from None
    if "\x00" in text:
        raise ScriptRefused("file_code: the script holds a NUL byte")
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise ScriptRefused(f"file_code: line {error.lineno}: {error.msg}; the script must be Python 3.11") from None
    except (RecursionError, MemoryError, ValueError):
        raise ScriptRefused("file_code: the script is nested too deeply to be read") from None
    warnings = _chunk_hints(text)
    if _MODEL_FILE not in text:
        warnings.insert(0, f"the script never mentions {_MODEL_FILE}; it must end with torch.save(model.state_dict(), '{_MODEL_FILE}')")
    return warnings


def has_evaluate(code: bytes) -> bool:
    """Whether a script, one that `check_script` let pass, has a top-level function evaluate(model_path, csv_path)."""
    for node in ast.parse(code.decode("utf-8-sig")).body:
        if isinstance(node, ast.FunctionDef) and node.name == "evaluate":
            required = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
            return required <= 2 and (len(node.args.posonlyargs) + len(node.args.args) >= 2 or node.args.vararg is not None)
    return False


def _chunk_hints(text: str) -> list[str]:
    """Where a script seems to learn from its own chunk what all chunks must agree on, and what to write instead."""
    if "schema(" in text or "schema.json" in text:
        return []
    hints: list[str] = []
    for pattern, what, key in _FITTED:
        for number, line in enumerate(text.splitlines(), 1):
            if (found := pattern.search(line)) and not line.lstrip().startswith(("import ", "from ", "#")):
                instead = f"gridx_task.schema()['columns'][NAME]{key}"
                name = found[0].rstrip("(")
                hints.append(f"line {number}: {name} takes {what} from one chunk, and each machine has another; take {instead} instead")
                break
    return hints


def strategy_hints(strategy: str, code: bytes) -> list[str]:
    """What a script would have to read for the strategy to mean anything, where it does not."""
    wanted = {"fedprox": (b"proximal_term", b"'mu'", b'"mu"'), "diloco": (b"local_steps",)}.get(strategy, ())
    if not wanted or any(word in code for word in wanted):
        return []
    if strategy == "fedprox":
        return ["the script reads neither gridx_task.proximal_term() nor 'mu': fedprox will be plain averaging; add the term to its loss"]
    return ["the script does not read hyperparameters()['local_steps']: diloco expects that many optimizer steps a round"]


def check_requirements(text: bytes) -> list[str]:
    """The requirements of a file, one canonical line each. Comments and blank lines are dropped.

    Only plain names with version specifiers, extras and markers pass: an option, URL, path or variable would let the file
    reach beyond the package index of the machine that installs it.

    Raises:
        RequirementsRefused: names the line and what is wrong with it.
    """
    if len(text) > MAX_REQUIREMENTS_BYTES:
        raise RequirementsRefused(f"file_req: {len(text)} bytes; at most {MAX_REQUIREMENTS_BYTES} are taken")
    try:
        lines = _LINE_END.split(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise RequirementsRefused(f"file_req: line {line} is not UTF-8") from None
    if len(lines) > MAX_REQUIREMENT_LINES:
        raise RequirementsRefused(f"file_req: {len(lines)} lines; at most {MAX_REQUIREMENT_LINES} are taken")
    return [checked for number, line in enumerate(lines, 1) if (checked := _check_line(number, line))]


def _check_line(number: int, line: str) -> str | None:
    bare = re.sub(r"(^|\s)#.*$", "", line).strip()
    if not bare:
        return None
    where = f"file_req: line {number}"
    if len(line) > MAX_REQUIREMENT_CHARS:
        raise RequirementsRefused(f"{where} has {len(line)} characters; at most {MAX_REQUIREMENT_CHARS} are taken")
    if any(ord(char) < 32 and char != "\t" for char in bare):
        raise RequirementsRefused(f"{where} holds a control character")
    if bare.startswith("-"):
        raise RequirementsRefused(f"{where}: options such as {bare.split()[0]!r} are not taken, only package names with versions")
    if bare.endswith("\\"):
        raise RequirementsRefused(f"{where}: continuation lines are not taken; write one requirement a line")
    if "${" in bare or "$(" in bare:
        raise RequirementsRefused(f"{where}: variables are not taken")
    if "===" in bare:
        raise RequirementsRefused(f"{where}: '===' is not taken; use '=='")
    if "://" in bare or "@" in bare or _PATH.search(bare):
        raise RequirementsRefused(f"{where}: links and paths are not taken, only packages from the index")
    try:
        requirement = Requirement(bare)
    except InvalidRequirement as error:
        raise RequirementsRefused(f"{where}: {str(error).splitlines()[0]}") from None
    return str(requirement)
