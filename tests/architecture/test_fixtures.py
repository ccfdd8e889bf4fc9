"""Fixtures of the running instance come from the plugin: imported, one is made again for each module, with an instance each."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
FIXTURES = {"browser", "complaints", "cookies", "lend", "login", "new_page", "page", "pages", "stack", "stack_connect"}


def imported(file: Path) -> set[str]:
    """Return what a file takes from `tests.stack`."""
    tree = ast.parse(file.read_text())
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "tests.stack")
    return {name.name for node in found for name in node.names}


def test_no_module_imports_a_fixture_of_the_instance() -> None:
    assert [str(file) for file in TESTS.rglob("*.py") if imported(file) & FIXTURES] == []


def test_the_fixtures_are_those_of_the_plugin() -> None:
    tree = ast.parse((TESTS / "stack.py").read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    assert {node.name for node in functions if any("pytest.fixture" in ast.unparse(d) for d in node.decorator_list)} == FIXTURES
