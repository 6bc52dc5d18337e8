"""A session: what a person does with the sentences of one document, as an object that loses nothing."""

from camit.session.draft import Draft
from camit.session.session import Session

__all__ = ["Draft", "Session"]
