# SPDX-License-Identifier: MIT
"""For MkDocs: links to what is in the repository but not on the site lead to the repository."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the relative links of a page, which are those of the repository."""
    here = PurePosixPath(page.file.src_uri).parent

    def lead(match: re.Match[str]) -> str:
        path = (_ROOT / here / match[1]).resolve()
        inside = path.relative_to(_ROOT).as_posix()
        if files.get_file_from_path(inside) or not path.exists():  # a broken one is told of
            return match[0]
        kind = "tree" if path.is_dir() else "blob"
        return f"]({config.repo_url.rstrip('/')}/{kind}/main/{inside}{match[2] or ''})"

    return _LINK.sub(lead, markdown)
