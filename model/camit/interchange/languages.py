"""Which of several languages in a file is meant."""

from __future__ import annotations

from collections.abc import Iterable


def matching(wanted: str, offered: Iterable[str]) -> str | None:
    """The offered language tag that fits best: the same, else one of the same language (zh and zh-Hans-CN).

    >>> matching("zh", ["en-GB", "zh-CN"])
    'zh-CN'
    """
    tags = list(offered)
    same = [item for item in tags if _folded(item) == _folded(wanted)]
    alike = [item for item in tags if _folded(item).split("-")[0] == _folded(wanted).split("-")[0]]
    return next(iter(same + alike), None)


def _folded(language: str) -> str:
    return language.replace("_", "-").lower()
