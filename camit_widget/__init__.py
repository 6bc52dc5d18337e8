"""The CAMIT widget for notebooks."""

from camit_widget.widget import CamitWidget

__all__ = ["CamitWidget"]
