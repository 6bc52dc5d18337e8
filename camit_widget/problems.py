"""Exceptions in words a person can act on: every failure becomes a `Problem` that the widget shows where
it happened.
"""

from __future__ import annotations

from camit.errors import CamitError
from camit_widget.protocol import Problem


class WidgetError(CamitError):
    """A request that the widget cannot carry out as asked."""


class BundleError(WidgetError):
    """The browser half of the widget was not built."""


class StaleError(WidgetError):
    """A request about a wording that is no longer there."""


def describe(error: BaseException) -> Problem:
    """What happened, the details, and what to do about it."""
    if isinstance(error, StaleError):
        return Problem(
            "The sentence changed meanwhile", str(error), "Look at it again and repeat your change."
        )
    if isinstance(error, CamitError):
        return Problem("That was not possible", str(error), "The sentence stands as it was.")
    return Problem(
        "Something broke in the engine",
        f"{type(error).__name__}: {error}",
        "The sentence stands as it was: try another change, or run the cell again. "
        "The kernel's log has the details.",
    )
