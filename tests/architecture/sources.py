"""The project's own files, as git knows them, read once."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = ("config", "sandbox", "billing", "agent", "escalations", "outbox", "ledger")


@dataclass(frozen=True)
class Source:
    """One Python file."""

    path: Path

    @property
    def name(self) -> str:
        """Return its path in the project."""
        return str(self.path.relative_to(ROOT))

    @property
    def app(self) -> str:
        """Return its top folder."""
        return self.name.partition("/")[0]

    @cached_property
    def text(self) -> str:
        """Return what it holds."""
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """Return it as a tree."""
        return ast.parse(self.text)

    def calls(self, name: str) -> Iterator[ast.Call]:
        """Yield the calls of functions and methods of this name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _called(node) == name:
                yield node


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


@cache
def every() -> tuple[Source, ...]:
    """Return all Python files but migrations."""
    return tuple(Source(path) for path in files("*.py") if path.parent.name != "migrations")


def ours() -> tuple[Source, ...]:
    """Return the files of the apps."""
    return tuple(source for source in every() if source.app in APPS)


@cache
def files(*patterns: str) -> tuple[Path, ...]:
    """Return the files that git tracks, or would, and that are still there; without git, those of the folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [
            path
            for pattern in patterns
            for path in ROOT.rglob(pattern)
            if not path.parts[len(ROOT.parts)].startswith((".", "var"))
        ]
    return tuple(sorted(path for path in set(found) if path.is_file()))
