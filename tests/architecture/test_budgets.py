"""The house style's budgets and bans, as far as a machine can count them."""

import ast
import re
import subprocess
import sys

import pytest

from tests.architecture import sources
from tests.architecture.sources import ROOT

LONGEST_MODULE = 400  # lines
LONGEST_FUNCTION = 60
MOST_POSITIONAL = 4
BANNED = {"services", "utils", "helpers", "common", "constants", "managers", "signals", "exceptions"}
NAMES = [source.name for source in sources.every()]
TEMPLATES = [str(path.relative_to(ROOT)) for path in sources.files("templates/*.html", "templates/**/*.html")]
STATIC = [
    str(path.relative_to(ROOT))
    for path in sources.files("static/*.css", "static/*.svg", "static/js/*.js")
    if "vendor" not in path.parts
]
TABLE = re.compile(
    r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?((?:billing|ledger|outbox|escalations|agent|auth|django)_[a-z_]+)", re.IGNORECASE
)
INLINE = re.compile(r"<style\b|\bstyle\s*=|\bon[a-z]+\s*=\s*[\"']|javascript:|<script(?![^>]*\bsrc=)", re.IGNORECASE)
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z0-9]", re.IGNORECASE)
NAMESPACE = "http://www.w3.org/"  # names a vocabulary; nothing is fetched


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function of a module."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_modules_keep_to_their_budget() -> None:
    tables = {"tests/sandbox/offline_sentences.py"}  # data, a sentence a line
    assert {source.name for source in sources.every() if len(source.text.splitlines()) > LONGEST_MODULE} == tables


def test_functions_keep_to_their_budgets() -> None:
    long, greedy = [], []
    for source in sources.every():
        for function in functions(source.tree):
            if (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION:
                long.append(f"{source.name}: {function.name}")
            if source.app != "tests" and not function.name.startswith("_") and positional(function) > MOST_POSITIONAL:
                greedy.append(f"{source.name}: {function.name}")
    assert long == []
    stock = {"issue_credit_memo", "queue_refund"}  # LangChain makes a stock tool's schema of its positional arguments
    assert greedy == [f"sandbox/story/scratch.py: {name}" for name in sorted(stock)]


def test_no_module_is_named_after_a_drawer_for_everything() -> None:
    assert [name for name in NAMES if name.rpartition("/")[2].removesuffix(".py") in BANNED] == []


def test_a_module_says_what_belongs_there() -> None:
    assert [source.name for source in sources.ours() if source.text.strip() and not ast.get_docstring(source.tree)] == []


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many arguments may be given by position."""
    return len([arg for arg in (*function.args.posonlyargs, *function.args.args) if arg.arg not in ("self", "cls")])


def test_no_test_sleeps() -> None:
    sleepers = [source.name for source in sources.every() if source.app == "tests" and any(source.calls("sleep"))]
    assert sleepers == ["tests/waiting.py"]


def test_nothing_is_left_to_do() -> None:
    left = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    assert [source.name for source in sources.every() if left.search(source.text)] == []


def test_a_statement_names_its_schema() -> None:
    bare = []
    for source in sources.ours():
        texts = [node.value for node in ast.walk(source.tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        bare += [f"{source.name}: {table}" for text in texts for table in TABLE.findall(text)]
    assert bare == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_page_brings_no_script_or_style_and_asks_no_other_host(name: str) -> None:
    text = (ROOT / name).read_text()
    assert INLINE.findall(text) == []
    assert ELSEWHERE.findall(text.replace(NAMESPACE, "")) == []


@pytest.mark.parametrize("name", STATIC)
def test_a_static_file_asks_no_other_host(name: str) -> None:
    text = re.sub(r"^\s*//.*|/\*.*?\*/", "", (ROOT / name).read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"https?://[^\s\"')]+", text.replace(NAMESPACE, "")) == []


def test_imports_point_one_way() -> None:
    checked = subprocess.run([f"{sys.prefix}/bin/lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
