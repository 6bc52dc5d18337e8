"""Documents come back as they went out, strict tools accept what is written, errors name file and line."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import camit
from camit import interchange
from camit.errors import DocumentError, InputError
from camit.interchange import Document, Format, Sentence, export, fill, read_document, split_sentences, write

# The rules of TMX 1.4b for what we write and read, stated here as a DTD.
TMX_RULES = """
<!ELEMENT tmx (header, body)>
<!ATTLIST tmx version CDATA #FIXED "1.4">
<!ELEMENT header (note | prop | ude)*>
<!ATTLIST header
    creationtool CDATA #REQUIRED creationtoolversion CDATA #REQUIRED
    segtype (block | paragraph | sentence | phrase) #REQUIRED
    o-tmf CDATA #REQUIRED adminlang CDATA #REQUIRED srclang CDATA #REQUIRED datatype CDATA #REQUIRED
    o-encoding CDATA #IMPLIED creationdate CDATA #IMPLIED creationid CDATA #IMPLIED
    changedate CDATA #IMPLIED changeid CDATA #IMPLIED>
<!ELEMENT body (tu*)>
<!ELEMENT note (#PCDATA)>
<!ATTLIST note o-encoding CDATA #IMPLIED xml:lang CDATA #IMPLIED lang CDATA #IMPLIED>
<!ELEMENT prop (#PCDATA)>
<!ATTLIST prop type CDATA #REQUIRED xml:lang CDATA #IMPLIED o-encoding CDATA #IMPLIED lang CDATA #IMPLIED>
<!ELEMENT ude (map+)>
<!ATTLIST ude name CDATA #REQUIRED base CDATA #IMPLIED>
<!ELEMENT map EMPTY>
<!ATTLIST map unicode CDATA #REQUIRED code CDATA #IMPLIED ent CDATA #IMPLIED subst CDATA #IMPLIED>
<!ELEMENT tu ((note | prop)*, tuv+)>
<!ATTLIST tu tuid CDATA #IMPLIED o-encoding CDATA #IMPLIED datatype CDATA #IMPLIED usagecount CDATA #IMPLIED
    lastusagedate CDATA #IMPLIED creationtool CDATA #IMPLIED creationtoolversion CDATA #IMPLIED
    creationdate CDATA #IMPLIED creationid CDATA #IMPLIED changedate CDATA #IMPLIED
    segtype (block | paragraph | sentence | phrase) #IMPLIED changeid CDATA #IMPLIED o-tmf CDATA #IMPLIED
    srclang CDATA #IMPLIED>
<!ELEMENT tuv ((note | prop)*, seg)>
<!ATTLIST tuv xml:lang CDATA #REQUIRED o-encoding CDATA #IMPLIED datatype CDATA #IMPLIED
    usagecount CDATA #IMPLIED lastusagedate CDATA #IMPLIED creationtool CDATA #IMPLIED
    creationtoolversion CDATA #IMPLIED creationdate CDATA #IMPLIED creationid CDATA #IMPLIED
    changedate CDATA #IMPLIED o-tmf CDATA #IMPLIED changeid CDATA #IMPLIED lang CDATA #IMPLIED>
<!ELEMENT seg (#PCDATA | bpt | ept | it | ph | hi | ut)*>
<!ELEMENT bpt (#PCDATA | sub)*>
<!ATTLIST bpt i CDATA #REQUIRED x CDATA #IMPLIED type CDATA #IMPLIED>
<!ELEMENT ept (#PCDATA | sub)*>
<!ATTLIST ept i CDATA #REQUIRED>
<!ELEMENT it (#PCDATA | sub)*>
<!ATTLIST it pos (begin | end) #REQUIRED x CDATA #IMPLIED type CDATA #IMPLIED>
<!ELEMENT ph (#PCDATA | sub)*>
<!ATTLIST ph x CDATA #IMPLIED assoc CDATA #IMPLIED type CDATA #IMPLIED>
<!ELEMENT hi (#PCDATA | bpt | ept | it | ph | hi | ut)*>
<!ATTLIST hi x CDATA #IMPLIED type CDATA #IMPLIED>
<!ELEMENT ut (#PCDATA | sub)*>
<!ATTLIST ut x CDATA #IMPLIED>
<!ELEMENT sub (#PCDATA | bpt | ept | it | ph | hi | ut)*>
<!ATTLIST sub datatype CDATA #IMPLIED type CDATA #IMPLIED>
"""

# XLIFF 1.2 and 2.0: order, names and attributes of the parts we write.
XLIFF_1_RULES = """
<!ELEMENT xliff (file+)>
<!ATTLIST xliff version CDATA #FIXED "1.2" xmlns CDATA #FIXED "urn:oasis:names:tc:xliff:document:1.2">
<!ELEMENT file (header?, body)>
<!ATTLIST file original CDATA #REQUIRED source-language NMTOKEN #REQUIRED datatype CDATA #REQUIRED
    target-language NMTOKEN #IMPLIED>
<!ELEMENT header EMPTY>
<!ELEMENT body (trans-unit*)>
<!ELEMENT trans-unit (source, target?)>
<!ATTLIST trans-unit id CDATA #REQUIRED approved (yes | no) #IMPLIED>
<!ELEMENT source (#PCDATA | ph)*>
<!ELEMENT target (#PCDATA | ph)*>
<!ATTLIST target state (final | needs-review-translation) #IMPLIED>
<!ELEMENT ph (#PCDATA)>
<!ATTLIST ph id CDATA #REQUIRED ctype CDATA #IMPLIED>
"""
XLIFF_2_RULES = """
<!ELEMENT xliff (file+)>
<!ATTLIST xliff version CDATA #FIXED "2.0" xmlns CDATA #FIXED "urn:oasis:names:tc:xliff:document:2.0"
    srcLang NMTOKEN #REQUIRED trgLang NMTOKEN #IMPLIED>
<!ELEMENT file (unit+)>
<!ATTLIST file id NMTOKEN #REQUIRED original CDATA #IMPLIED>
<!ELEMENT unit (segment+)>
<!ATTLIST unit id NMTOKEN #REQUIRED name CDATA #IMPLIED>
<!ELEMENT segment (source, target?)>
<!ATTLIST segment state (initial | translated | reviewed | final) #IMPLIED>
<!ELEMENT source (#PCDATA | cp)*>
<!ELEMENT target (#PCDATA | cp)*>
<!ELEMENT cp EMPTY>
<!ATTLIST cp hex CDATA #REQUIRED>
"""
RULES: dict[str, str] = {"tmx": TMX_RULES, "xliff": XLIFF_1_RULES, "xliff2": XLIFF_2_RULES}
XML_FORMATS: tuple[Format, ...] = ("tmx", "xliff", "xliff2")

HARD = (
    Sentence("他说：“1 < 2 & 3 > 2。”", 'He said: "1 < 2 & 3 > 2."', "scene", "1", True),
    Sentence("一只🐳和一家👨‍👩‍👧。", "A 🐳 and a 👨‍👩‍👧 family.", "scene", "2"),
    Sentence(
        "响铃\x07，退格\x08，换页\x0c。", "Bell \x07, ]]> and \x1b[0m, <![CDATA[ x ]]>.", "scene", "3", True
    ),
    Sentence("没有译文。", None, "talk", "4"),
    Sentence("\u2028行\u0085分隔\ufffe符", "it's \u00a0 'quoted' &amp; &#7;", "talk", "5"),
    Sentence("孤立的代理\ud800项", "lone \udfff surrogate", "talk", "6"),
)


def check(text: str, format: str) -> etree._Element:
    """Parsed by another library than ours, and valid by the rules of the format."""
    root = etree.fromstring(text.encode())
    rules = etree.DTD(io.StringIO(RULES[format]))
    assert rules.validate(root), rules.error_log
    return root


def round_trip(document: Document, format: Format) -> Document:
    text = export(document, format, source_language="zh", target_language="en")
    return read_document(text, format=format)


@pytest.mark.parametrize("format", ["tmx", "xliff", "xliff2"])
def test_difficult_text_comes_back_as_it_was(format: Format) -> None:
    back = round_trip(Document(HARD), format)
    expected = HARD if format != "tmx" else tuple(s for s in HARD if s.target is not None)
    assert back.sentences == expected
    assert (back.source_language, back.target_language) == ("zh", "en")


@pytest.mark.parametrize("format", XML_FORMATS)
def test_what_is_written_is_valid_by_the_rules_of_the_format(format: Format) -> None:
    check(export(HARD, format, source_language="zh", target_language="en"), format)


def test_the_rules_can_fail() -> None:
    text = export(HARD, "tmx", source_language="zh", target_language="en")
    for broken in (text.replace(' srclang="zh"', ""), text.replace("<seg>", "").replace("</seg>", "")):
        with pytest.raises(AssertionError):
            check(broken, "tmx")


# No surrogates here: Hypothesis would mostly draw those. The hard sentences above have them.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
WRITTEN = TEXT.filter(lambda text: bool(interchange.one_line(text)))


@given(source=WRITTEN, target=TEXT, document=TEXT, confirmed=st.booleans())
def test_any_text_comes_back_from_xml(source: str, target: str, document: str, confirmed: bool) -> None:
    sentence = Sentence(source, target, "", "", confirmed)
    for format in XML_FORMATS:
        text = export([sentence], format, name=document, source_language="zh", target_language="en")
        check(text, format)
        if sentence.target is None and format == "tmx":
            continue  # a memory has no place for it
        back = read_document(text).sentences[0]
        # A sentence that is nothing but white space of other kinds is left out by nobody.
        assert (back.source, back.target, back.confirmed) == (
            sentence.source,
            sentence.target,
            sentence.confirmed,
        )


@given(source=WRITTEN, target=TEXT)
def test_any_text_comes_back_from_tsv(source: str, target: str) -> None:
    sentence = Sentence(source, target, "scene")
    back = read_document(export([sentence], "tsv"), format="tsv")
    assert back.sentences == (sentence,)


def test_tsv_is_a_corpus_that_simulate_reads(tmp_path: Path) -> None:
    from camit.corpus import read_corpus

    pairs = [Sentence("他来了。", "He came.", "scene"), Sentence("她走了。", "She left.", "talk")]
    write(pairs, tmp_path / "both.tsv.gz")
    lines = read_corpus(tmp_path / "both.tsv.gz")
    assert [(line.document, line.source, line.references) for line in lines] == [
        ("scene", "他来了。", ("He came.",)),
        ("talk", "她走了。", ("She left.",)),
    ]


def test_text_has_one_translation_a_line_and_keeps_its_place() -> None:
    assert (
        export([Sentence("一", "One"), Sentence("二"), Sentence("三", "Three")], "text") == "One\n\nThree\n"
    )


@pytest.mark.parametrize(
    ("prose", "sentences"),
    [
        ("他来了。她走了！为什么？", ["他来了。", "她走了！", "为什么？"]),
        ("“走吧！”她说。“好。”“再见。”", ["“走吧！”她说。", "“好。”", "“再见。”"]),
        ("我……我不知道。", ["我……我不知道。"]),
        ("一行没有句号\n另一行", ["一行没有句号", "另一行"]),
        ("It is 3.5 km, says Dr. Wu. Why? Go!", ["It is 3.5 km, says Dr. Wu.", "Why?", "Go!"]),
        ("\r\n \t\r\n他来了。\r\n", ["他来了。"]),
        ("e.g. this one. i.e. that", ["e.g. this one. i.e. that"]),
    ],
)
def test_prose_is_cut_into_sentences(prose: str, sentences: list[str]) -> None:
    assert split_sentences(prose) == sentences


@given(st.text())
def test_cutting_prose_loses_nothing_but_space(prose: str) -> None:
    joined = "".join("".join(split_sentences(prose)).split(" "))
    assert joined == "".join(character for character in prose if character not in " \t\r\n")


def test_a_path_a_name_and_a_text_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "scene.txt"
    file.write_text("\ufeff他来了。\n", encoding="utf-8")
    assert read_document(file).sources == ("他来了。",)
    assert read_document(str(file)).name == "scene"
    assert read_document("scene.txt 是一个文件。").sources == ("scene.txt 是一个文件。",)
    with pytest.raises(DocumentError, match="no file"):
        read_document("absent.tmx")


def test_two_columns_are_source_and_translation_three_begin_with_the_document() -> None:
    two = read_document("source\ttarget\n你好。\tHello.\n再见。\t\n")
    three = read_document("d1\t你好。\tHello.\tHi.\nd2\t再见。\tBye.\tSee you.\n")
    assert two.sentences == (Sentence("你好。", "Hello."), Sentence("再见。"))
    assert three.sentences == (Sentence("你好。", "Hello.", "d1"), Sentence("再见。", "Bye.", "d2"))


FOREIGN_TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x"
 adminlang="en" srclang="*all*" datatype="html"/>
<body>
<tu tuid="7"><note>a note</note>
  <tuv xml:lang="de"><seg>Guten Tag.</seg></tuv>
  <tuv xml:lang="ZH-cn"><seg>你<bpt i="1">&lt;b></bpt>好<ept i="1">&lt;/b></ept><hi>。</hi></seg></tuv>
  <tuv xml:lang="en-GB"><seg>Hel<ph>&lt;br/></ph>lo.</seg></tuv>
</tu></body></tmx>"""


def test_a_foreign_tmx_gives_the_languages_asked_for_without_its_codes() -> None:
    document = read_document(FOREIGN_TMX, source_language="zh", target_language="en")
    assert document.sentences == (Sentence("你好。", "Hello.", id="7"),)
    assert read_document(FOREIGN_TMX).sentences[0].source == "Guten Tag."
    with pytest.raises(DocumentError, match=r"line 6.*'fr'"):
        read_document(FOREIGN_TMX, source_language="fr")


def test_a_foreign_xliff_1_keeps_segments_and_drops_codes() -> None:
    text = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
    <file original="a.html" source-language="zh" target-language="en" datatype="html"><body><group>
    <trans-unit id="u1" approved="yes"><source>他来了。她走了。</source>
      <seg-source><mrk mtype="seg" mid="0">他来了。</mrk><mrk mtype="seg" mid="1">她走了。</mrk></seg-source>
      <target><mrk mtype="seg" mid="0">He came.</mrk> <mrk mtype="seg" mid="1">She left.</mrk></target>
    </trans-unit>
    <trans-unit id="u2"><source>再<x id="1"/><g id="2">见</g>。</source>
      <alt-trans><target>never read</target></alt-trans></trans-unit>
    </group></body></file></xliff>"""
    assert read_document(text).sentences == (
        Sentence("他来了。", "He came.", "a.html", "u1.0", True),
        Sentence("她走了。", "She left.", "a.html", "u1.1", True),
        Sentence("再见。", None, "a.html", "u2"),
    )


def test_a_foreign_xliff_2_keeps_segments_and_drops_codes() -> None:
    text = """<x:xliff version="2.1" srcLang="zh" trgLang="en"
      xmlns:x="urn:oasis:names:tc:xliff:document:2.0">
    <x:file id="f" original="b.txt"><x:group id="g"><x:unit id="u1">
      <x:segment state="final"><x:source>他<x:pc id="1">来</x:pc>了。</x:source>
        <x:target>He came.</x:target></x:segment>
      <x:ignorable><x:source> </x:source></x:ignorable>
      <x:segment><x:source>她走<x:ph id="2"/>了。</x:source></x:segment>
    </x:unit></x:group></x:file></x:xliff>"""
    assert read_document(text).sentences == (
        Sentence("他来了。", "He came.", "b.txt", "u1.1", True),
        Sentence("她走了。", None, "b.txt", "u1.2"),
    )


LAUGHS = (
    '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "'
    + "&a;" * 10
    + '"><!ENTITY c "'
    + "&b;" * 10
    + '">]>\n<tmx version="1.4"><body><tu><tuv xml:lang="zh"><seg>&c;</seg></tuv></tu></body></tmx>'
)
OUTSIDE = (
    '<!DOCTYPE tmx [\n<!ENTITY secret SYSTEM "file:///etc/passwd">]>\n'
    '<tmx version="1.4"><body><tu><tuv xml:lang="zh"><seg>&secret;</seg></tuv></tu></body></tmx>'
)
PARAMETER = '<!DOCTYPE tmx [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>\n<tmx version="1.4"><body/></tmx>'


@pytest.mark.parametrize("attack", [LAUGHS, OUTSIDE, PARAMETER])
def test_entities_are_refused_where_they_are_declared(attack: str, tmp_path: Path) -> None:
    file = tmp_path / "attack.tmx"
    file.write_text(attack)
    with pytest.raises(DocumentError, match=r"attack\.tmx, line [12]: refused.*entity"):
        read_document(file)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DocumentError, match="nested"):
        read_document("<tmx>" + "<x>" * 100_000)


def test_a_file_that_grows_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camit.interchange.files.MAX_BYTES", 1_000_000)
    (tmp_path / "bomb.tmx.gz").write_bytes(gzip.compress(b"<tmx>" + b" " * 10_000_000))
    with pytest.raises(DocumentError, match="larger than 1 MB"):
        read_document(tmp_path / "bomb.tmx.gz")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tmx", b"<tmx><body>\n<tu>\n</body></tmx>", r"a\.tmx, line 3, column \d+: .*not well-formed"),
        ("a.tmx", b"<tmx>\n<body><tu>\n<tuv><seg>x</seg></tuv></tu></body></tmx>", r"line 3: .*no xml:lang"),
        ("a.tmx", b'<tmx><body><tu>\n<tuv xml:lang="zh"/></tu></body></tmx>', r"line 2: .*no a <seg>|<seg>"),
        ("a.tmx", b"<tmx>\n<body>\n<tu/></body></tmx>", r"line 3: this <tu> has no <tuv>"),
        ("a.tmx", b"<tmx><header/></tmx>", r"line 1: .*needs a <body>"),
        ("a.tmx", b"<tmx><body/></tmx>", r"has no <tu> units"),
        ("a.tmx", b"<html/>", r"line 1: the outermost element is <html>"),
        (
            "a.tmx",
            b'<?xml version="1.0" encoding="nonsense"?><tmx/>',
            r"line 1: .*encoding 'nonsense'",
        ),
        ("a.tmx", b'<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx><body>&nbsp;</body></tmx>', r"line 2: .*&nbsp;"),
        ("a.xlf", b'<xliff version="3.0"/>', r"line 1: XLIFF version '3.0'"),
        ("a.xlf", b'<xliff version="1.2"><file>\n<trans-unit/></file></xliff>', r"line 2: .*no <source>"),
        ("a.xlf", b'<xliff version="2.0"><file>\n<unit/></file></xliff>', r"line 2: .*no <segment>"),
        ("a.tsv", "你好。\tHello.\n\n再见。\n".encode(), r"a\.tsv, line 3: one column"),
        ("a.tsv", b"d\ta\tb\na\tb\n", r"line 2: 2 columns.*3"),
        ("a.tsv", b"\tHello.\n", r"line 1: the source is empty"),
        ("a.txt", b"ok\n\xd6\xd0\n", r"a\.txt, line 2: not UTF-8"),
        ("a.txt", b" \n\n", r"no sentences"),
        ("a.txt.gz", b"\x1f\x8bxx", r"damaged gzip"),
    ],
)
def test_a_bad_file_is_named_with_its_line(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=message):
        read_document(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_xml_in_other_encodings_is_read(encoding: str, tmp_path: Path) -> None:
    declared = {"utf-8-sig": "utf-8"}.get(encoding, encoding)
    text = export([Sentence("你好。", "Hello.")], "tmx", source_language="zh", target_language="en")
    (tmp_path / "a.tmx").write_bytes(text.replace("UTF-8", declared).encode(encoding))
    assert read_document(tmp_path / "a.tmx").pairs == (("你好。", "Hello."),)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export([Sentence("一", "One")], "docx"), "unknown format 'docx'"),
        (lambda: export([Sentence("一", "One")], "tmx"), "names its languages"),
        (lambda: export("text", "tsv"), "not str"),
        (lambda: export([1], "tsv"), "neither a draft nor a sentence"),
        (lambda: export([], "tsv", sentences="some"), "'all' or 'confirmed'"),
        (lambda: read_document(7), "not int"),
        (lambda: Sentence(" \n"), "source"),
        (lambda: write([Sentence("一", "One")], "letter.docx"), "does not say its format"),
    ],
)
def test_wrong_calls_say_what_is_allowed(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.fixture(scope="module")
def session() -> camit.Session:
    session = camit.Session(camit.load("zh-en"), learning=False)
    session.open("我们明天见。")
    session.open("他们昨天在公园里。")
    session.confirm(session.drafts[0])
    return session


@pytest.mark.parametrize("name", ["work.txt", "work.tsv", "work.tmx", "work.xliff", "work.xlf.gz"])
def test_a_session_is_written_and_read_back(session: camit.Session, name: str, tmp_path: Path) -> None:
    path = write(session, tmp_path / name)
    back = read_document(path)
    if name == "work.txt":
        assert back.sources == tuple(draft.text for draft in session.drafts)
        return
    assert back.pairs == tuple((draft.source, draft.text) for draft in session.drafts)
    if name != "work.tsv":
        assert (back.source_language, back.target_language) == ("zh", "en")
        assert [sentence.confirmed for sentence in back.sentences] == [True, False]


def test_only_what_is_confirmed_is_exported_when_asked(session: camit.Session) -> None:
    text = export(session, "tmx", sentences="confirmed")
    assert len(check(text, "tmx").findall("body/tu")) == 1
    assert export(session.drafts, "tsv", name="talk").count("talk\t") == 2
    assert len(check(export(session.drafts, "tmx"), "tmx").findall("body/tu")) == 2


def test_a_job_is_filled_in_and_keeps_its_wording_ids_and_what_nobody_touched(session: camit.Session) -> None:
    job = Document(
        (
            Sentence("他们昨天在公园里。", None, "a.html", "u1"),
            Sentence("还没有人看过。", "Old.", "a.html", "u2"),
            Sentence("我们明天见。", "Old.", "b.html", "u3"),
            Sentence("我们明天见。", None, "b.html", "u4"),
        ),
        "zh-CN",
    )
    tomorrow, park = (draft.text for draft in session.drafts)
    filled = fill(job, session)
    assert filled.sentences == (
        Sentence("他们昨天在公园里。", park, "a.html", "u1"),
        Sentence("还没有人看过。", "Old.", "a.html", "u2"),
        Sentence("我们明天见。", tomorrow, "b.html", "u3", True),
        Sentence("我们明天见。", tomorrow, "b.html", "u4", True),
    )
    assert (filled.source_language, filled.target_language) == ("zh-CN", "en")


def test_filling_finds_sentences_that_the_session_has_folded() -> None:
    with camit.Session(camit.load("zh-en"), learning=False) as folding:
        draft = folding.open("等一下，ＯＫ？")
        filled = fill(Document((Sentence("等一下，ＯＫ？"),)), folding)
        assert draft.source != "等一下，ＯＫ？"
        assert filled.pairs == (("等一下，ＯＫ？", draft.text),)
