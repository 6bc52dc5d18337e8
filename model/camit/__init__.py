"""Interactive machine translation that corrects and memorises (CAMIT).

>>> import camit
>>> translator = camit.load("zh-en")
>>> translator.translate("你好。").text  # doctest: +SKIP
'Hello.'
"""

from camit.errors import CamitError
from camit.tokens import SourceToken, Token
from camit.translator import Translation, Translator, load

__all__ = ["CamitError", "SourceToken", "Token", "Translation", "Translator", "load"]
