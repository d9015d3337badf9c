"""Run the README's python examples and compare what they print. Usage: python run_readme.py README.md

Needs klnumba and what it requires, and nothing else.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(path: Path) -> doctest.TestResults:
    """Run all blocks in one namespace, as a reader would, from the top."""
    text = path.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, path.name, str(path), 0)
    return doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)


def main() -> int:
    """Print where klnumba comes from and how many examples ran."""
    import klnumba

    results = run(Path(sys.argv[1]))
    print(f"{klnumba.__file__}: {results.attempted} lines of {sys.argv[1]} ran, {results.failed} failed")
    return 0 if results.attempted and not results.failed else 1


if __name__ == "__main__":
    sys.exit(main())
