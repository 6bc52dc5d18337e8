"""Exceptions in words a person can act on: every failure becomes a `Problem` that the widget shows where
it happened. It is read by somebody with a mouse in hand, so it never speaks of code.
"""

from __future__ import annotations

from camit.errors import CamitError
from camit_widget import protocol
from camit_widget.protocol import Problem


class WidgetError(CamitError):
    """A request that the widget cannot carry out as asked."""


class BundleError(WidgetError):
    """The browser half of the widget was not built."""


class StaleError(WidgetError):
    """A request about a wording that is no longer there."""


def describe(error: BaseException, stands: str = "") -> Problem:
    """What happened, the details, and what to do about it; `stands` is what is as it was before."""
    if isinstance(error, StaleError):
        return Problem("The sentence changed meanwhile", str(error), "Look at it again.")
    if isinstance(error, CamitError):
        return Problem("That was not possible", _sentence(str(error)), stands)
    detail = _sentence(f"{type(error).__name__}: {error}".removesuffix(": "))
    return Problem(
        "Something broke in the engine", detail, f"{stands} Try again, or run the cell again.".lstrip()
    )


def stands_after(request: protocol.AnyRequest) -> str:
    """What a request that failed left as it was."""
    match request:
        case protocol.Configure():
            return "The setting stays as it was."
        case protocol.Pin() | protocol.Forget() | protocol.Recall() | protocol.Remember():
            return "The memory stays as it was."
        case protocol.Hello() | protocol.Go() | protocol.Export() | protocol.Cancel():
            return ""
        case _:
            return "The sentence stands as it was."


def _sentence(text: str) -> str:
    """With a capital letter at its beginning, and an end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
