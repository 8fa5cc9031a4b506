"""Writes the pages that follow from the code (commands, attacks and metrics) and checks every link of the others.

python docs/build.py            write docs/guide/commands.md and docs/guide/reference.md, check links
python docs/build.py --check    change nothing; fail where a page is out of date or a link leads nowhere
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import typer

from leakmeter.cli.app import app
from leakmeter.core.registry import find, names

DOCS = Path(__file__).parent
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")


def commands() -> str:
    group: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "Written by `make docs` from the command line's own help.", ""]
    for name, command in group.commands.items():
        lines += [f"## leakmeter {name}", "", _paragraphs(command.help or ""), ""]
        for parameter in command.params:
            flags = ", ".join(parameter.opts)
            help_text = " ".join((getattr(parameter, "help", None) or "").split())
            if flags != "--help":
                lines.append(f"- `{flags}`: {help_text}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def reference() -> str:
    lines = ["# What a config can name", "", "Written by `make docs` from the registry.", ""]
    for kind in ("attacks", "models", "metrics", "engines", "records"):
        lines += [f"## {kind.capitalize()}", ""]
        for name in names(kind):
            spec = find(kind, name)
            if not spec.__module__.startswith("leakmeter."):
                continue  # a plug-in that happens to be installed
            about = getattr(spec, "about", "") or (spec.__doc__ or "").strip().splitlines()[0]
            lines.append(f"- **{name}**: {about}")
            for field, info in spec.model_fields.items():
                if field != "type":
                    default = "" if info.is_required() else f" = {info.default}"
                    lines.append(f"    - `{field}{default}`")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def broken_links() -> list[str]:
    pages = [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]
    return [
        f"{page.relative_to(DOCS.parent)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]


def main() -> None:
    check = "--check" in sys.argv
    problems = [f"link leads nowhere: {link}" for link in broken_links()]
    for name, text in {"commands.md": commands(), "reference.md": reference()}.items():
        path = DOCS / "guide" / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            problems.append(f"{path.relative_to(DOCS.parent)} is out of date: run make docs")
        if not check:
            path.write_text(text, encoding="utf-8")
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
