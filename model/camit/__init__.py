"""Interactive machine translation that corrects and memorises (CAMIT).

>>> import camit
>>> session = camit.Session(camit.load("zh-en"))  # doctest: +SKIP
>>> draft = session.open("我们昨天在公园里看到了他。")  # doctest: +SKIP
>>> draft.replace(1, "met").text  # doctest: +SKIP
'We met him in the park yesterday.'
"""

from camit import interchange
from camit.errors import CamitError
from camit.learning import Lesson
from camit.memory import MemoryEntry, RevisionMemory
from camit.session import Session
from camit.session.draft import Alternative, Draft
from camit.session.events import Event, Statistics
from camit.session.plan import Stage
from camit.tokens import SourceToken, Token
from camit.translator import Translation, Translator, load

__all__ = [
    "Alternative",
    "CamitError",
    "Draft",
    "Event",
    "Lesson",
    "MemoryEntry",
    "RevisionMemory",
    "Session",
    "SourceToken",
    "Stage",
    "Statistics",
    "Token",
    "Translation",
    "Translator",
    "interchange",
    "load",
]
