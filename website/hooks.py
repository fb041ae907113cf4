"""What happens to pages on their way into the site; mkdocs calls the ``on_…`` functions."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(
    0, str(ROOT)
)  # mkdocs loads this file by its path, so that its package is not found

from website import gallery, methods, references, tables  # noqa: E402
from website.execute import FENCED, Runner, block_of  # noqa: E402
from website.notebooks import notebook_of  # noqa: E402

mpl.use("svg")

# Files of the repository that are pages of the site too.
ADOPTED = {
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
    "conduct.md": "CODE_OF_CONDUCT.md",
}
# Where links that leave the folder of the pages lead to within the site.
_LINKS = {
    **{f"../{file}": page for page, file in ADOPTED.items()},
    **{file: page for page, file in ADOPTED.items()},
    "../examples": "examples.md",
    "examples": "examples.md",
    "best": "best/index.md",
    "docs/papers": "papers/index.md",
    "docs/architecture.md": "architecture.md",
}
_ROLE = re.compile(r":(?:func|class|meth|mod|attr):(?=<code>)")
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Put the pages of all methods into the navigation, and that of the local page if it is there."""
    for section in config.nav:
        if "Methods" in section:
            section["Methods"] += methods.navigation()
        if "How to" in section and (ROOT / "docs" / "page.md").exists():
            section["How to"].append("page.md")
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made from the program and the repository."""
    made = {
        "reference/command.md": references.command_page(),
        "reference/plan.md": references.plan_page(),
        "examples.md": gallery.examples_page(),
        "best/index.md": gallery.best_page(),
        **{page: (ROOT / file).read_text(encoding="utf-8") for page, file in ADOPTED.items()},
    }
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Complete a page: what the registry tells of a method, what its code gives, where its links lead."""
    uri = page.file.src_uri
    if uri.startswith("methods/"):
        markdown = methods.completed(Path(uri).stem, markdown)
    markdown = tables.filled(markdown)
    if page.meta.get("run"):
        executed = _executed(markdown, uri, config, files)
        markdown = executed + (
            _notebook(markdown, uri, config, files) if "tutorials/" in uri else ""
        )
    return _LINK.sub(lambda found: _led(found, uri), markdown)


def on_page_content(html: str, *, page: Any, config: Any, files: Files) -> str:
    """Show names in docstrings as code: the roles before them are meant for another builder."""
    return _ROLE.sub("", html)


def _notebook(markdown: str, uri: str, config: Any, files: Files) -> str:
    """Add a page as a notebook to the site; return the sentence that leads to it."""
    name = uri.removesuffix(".md") + ".ipynb"
    files.append(File.generated(config, name, content=notebook_of(markdown)))
    return (
        f"\n\nThis page as a [notebook]({Path(name).name}), for an environment with "
        '`pip install "microagg[demo,sklearn]" jupyterlab matplotlib polars`.\n'
    )


def _led(found: re.Match[str], uri: str) -> str:
    """Lead a link to a file of the repository to its page."""
    target, anchor = found[1], found[2] or ""
    if uri in ADOPTED and target.startswith("docs/") and target not in _LINKS:
        target = target.removeprefix("docs/")
    return f"]({_LINKS.get(target, target)}{anchor})"


def _executed(markdown: str, uri: str, config: Any, files: Files) -> str:
    """Run the blocks of a page and put what they give under them; HTML files that they write are kept."""
    stem = uri.removesuffix(".md")
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(Path(folder), uri)
        drawn = 0

        def shown(found: re.Match[str]) -> str:
            nonlocal drawn
            result, parts = runner.run(block_of(found)), [found[0]]
            if result.text.strip():
                parts.append(f"```{{.text .output}}\n{result.text.rstrip()}\n```")
            for picture in result.pictures:
                drawn += 1
                name = f"{stem}-{drawn}.svg"
                files.append(File.generated(config, name, content=picture))
                parts.append(f"![What the code above draws]({Path(name).name})")
            return "\n\n".join(parts)

        text = FENCED.sub(shown, markdown)
        for report in Path(folder).glob("*.html"):
            name = f"{stem}-{report.name}"
            files.append(File.generated(config, name, content=report.read_bytes()))
    return text
