"""Documents in and out: plain text, TSV, TMX 1.4 and XLIFF 1.2 or 2.0.

A document is a list of sentences, each with a source, perhaps a translation, and the document it belongs
to. The paper's session is such a list; here it meets the files that translators' other tools read and
write.

>>> from camit import interchange
>>> document = interchange.read_document("他来了。\\n她走了。\\n")
>>> document.sources
('他来了。', '她走了。')
>>> interchange.export(document, "tsv", name="scene").splitlines()
['scene\\t他来了。\\t', 'scene\\t她走了。\\t']
"""

from camit.interchange.document import Document, Sentence, one_line
from camit.interchange.files import FORMATS, Format, export, fill, read_document, write
from camit.interchange.plain import split_sentences

__all__ = [
    "FORMATS",
    "Document",
    "Format",
    "Sentence",
    "export",
    "fill",
    "one_line",
    "read_document",
    "split_sentences",
    "write",
]
