"""One offline page that shows the same view, read-only: the widget's own bundle with the state beside it.

Sentences may contain anything, `</script>` included, so the state and the bundle travel as JSON in which
`<` is escaped; the bundle puts text on the page only as text.
"""

from __future__ import annotations

import html
import pathlib

import msgspec

from camit_widget import protocol
from camit_widget.desk import Desk


class Page(protocol.Value, frozen=True):
    """What an offline page knows: the `Page` of js/src/offline.ts."""

    overview: protocol.Overview
    sentences: tuple[protocol.Sentence, ...]
    looks: tuple[protocol.Looks, ...]
    row: int
    memory: protocol.Memory
    learning: protocol.Learning
    settings: protocol.Settings


_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 1020px; margin: 24px auto; padding: 0 16px; }}
{styles}
</style>
</head>
<body>
<main id="camit"></main>
<noscript>This page needs JavaScript, and nothing else.</noscript>
<script type="application/json" id="camit-page">{page}</script>
<script type="application/json" id="camit-bundle">{bundle}</script>
<script>
const read = (id) => JSON.parse(document.getElementById(id).textContent);
const address = URL.createObjectURL(new Blob([read("camit-bundle")], {{ type: "text/javascript" }}));
import(address).then((widget) => widget.default.mount(document.getElementById("camit"), read("camit-page")));
</script>
</body>
</html>
"""


def page(desk: Desk, static: pathlib.Path) -> str:
    """The whole file. Runs on the worker: sentences not translated yet are translated first."""
    desk.open_all()
    rows = range(len(desk))
    state = Page(
        overview=desk.overview(),
        sentences=tuple(desk.sentence(row) for row in rows),
        looks=tuple(desk.looks(row) for row in rows),
        row=desk.row,
        memory=desk.memory(),
        learning=desk.learning(),
        settings=desk.settings(),
    )
    languages = f"{state.overview.source_language} → {state.overview.target_language}"
    return _TEMPLATE.format(
        title=html.escape(f"Translation {languages}"),
        styles=(static / "widget.css").read_text(encoding="utf-8").replace("</", "<\\/"),
        page=_json(state),
        bundle=_json((static / "widget.js").read_text(encoding="utf-8")),
    )


def _json(value: object) -> str:
    """JSON that is safe inside a script element: without `<` there is neither `</script` nor `<!--`."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")
