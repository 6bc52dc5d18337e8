"""Errors a person can act on: each says what was given, what is allowed and what to try next."""

from __future__ import annotations


class CamitError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(CamitError):
    """Text, an index or an option that cannot be used as given."""


class CheckpointError(CamitError):
    """A model directory that is missing, damaged or of another version."""


class CorpusError(CamitError):
    """A corpus file that cannot be read; the message names file and line."""


class DocumentError(CamitError):
    """A document that cannot be read or written; the message names file and line."""


class TrainingError(CamitError):
    """A training run that cannot start or go on."""


class SessionError(CamitError):
    """A session, its file or its state does not allow what was asked."""


class Cancelled(CamitError):  # noqa: N818 - an answer to a request, not a fault
    """A newer request took the place of this one; nothing was changed."""
