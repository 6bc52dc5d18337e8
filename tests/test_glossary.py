"""Glossaries go in and out as TSV files, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from camit.errors import InputError
from camit.memory import RevisionMemory
from tests.helpers import tiny_translator
from tests.memories import chinese, remember, translate


def test_what_is_exported_stands_in_its_sentence_and_is_known_when_it_comes_back(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    remember(
        memory,
        "我们昨天在公园里看到了他。",
        "We saw him in the park yesterday.",
        "saw",
        "park",
        "yesterday",
        "We",
    )
    memory.add("#标签", "hashtag")
    memory.export_tsv(tmp_path / "terms.tsv")
    rows = [line.split("\t") for line in (tmp_path / "terms.tsv").read_text("utf-8").splitlines()]
    assert all(source in "我们昨天在公园里看到了他。#标签" for source, _ in rows)
    assert memory.import_tsv(tmp_path / "terms.tsv") == ()
    assert len(RevisionMemory(chinese()).import_tsv(tmp_path / "terms.tsv")) == len(rows)


def test_a_glossary_says_anew_what_was_learned_and_refused(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    remember(memory, "我记得那座教堂。", "I remember the chapel.", "chapel")
    (tmp_path / "terms.tsv").write_text("教堂\tchapel\n", "utf-8")
    assert memory.import_tsv(tmp_path / "terms.tsv") == ()
    for _ in range(2):
        remember(memory, "那座教堂很旧。", "That church is old.", "old")
    [term] = memory.import_tsv(tmp_path / "terms.tsv")
    assert term.sentence is None
    assert "chapel" in translate(chinese(), "那座教堂很旧。", memory)


def test_a_glossary_that_is_read_again_forgives_its_terms(tmp_path: Path) -> None:
    memory = RevisionMemory(chinese())
    (tmp_path / "terms.tsv").write_text("教堂\tchapel\n", "utf-8")
    [term] = memory.import_tsv(tmp_path / "terms.tsv")
    remember(memory, "那座教堂很旧。", "That church is old.", "old")
    assert memory[term.id].refused == 1
    assert memory.import_tsv(tmp_path / "terms.tsv") == (term,)
    assert [e.text for e in memory.entries if e.sentence is None] == ["chapel"]


def test_a_glossary_with_a_row_that_cannot_be_remembered_leaves_nothing(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    (tmp_path / "terms.tsv").write_text(f"猫\tcat\n{'狗' * 500}\tdog\n", "utf-8")
    with pytest.raises(InputError, match=r"terms\.tsv, line 2"):
        memory.import_tsv(tmp_path / "terms.tsv")
    assert memory.entries == ()


def test_a_glossary_that_does_not_fit_beside_what_is_pinned_is_refused_whole(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator(), size=3)
    for text in ("cat", "dog"):
        memory.pin(memory.add("猫", text).id)
    (tmp_path / "terms.tsv").write_text("红\tred\n大\tbig\n", "utf-8")
    with pytest.raises(InputError, match="room for 1"):
        memory.import_tsv(tmp_path / "terms.tsv")
    for entry in memory.entries:
        memory.unpin(entry.id)  # they were added by hand, and stay
    with pytest.raises(InputError, match="room for 1"):
        memory.import_tsv(tmp_path / "terms.tsv")
    assert [entry.text for entry in memory.entries] == ["cat", "dog"]


def test_only_line_breaks_end_a_row_of_a_glossary(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_bytes("猫\u2028\tcat\r\n狗\tdog\r\n".encode())
    entries = RevisionMemory(tiny_translator()).import_tsv(tmp_path / "terms.tsv")
    assert [entry.text for entry in entries] == ["cat", "dog"]


def test_a_glossary_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    for place in (tmp_path, tmp_path / "no" / "terms.tsv"):
        with pytest.raises(InputError, match="file"):
            memory.export_tsv(place)
    assert list(tmp_path.iterdir()) == []


def test_a_glossary_goes_out_and_in(tmp_path: Path) -> None:
    memory = RevisionMemory(tiny_translator())
    memory.add("猫", "cat")
    memory.add("红狗", "red dog")
    memory.export_tsv(tmp_path / "terms.tsv")
    other = RevisionMemory(tiny_translator())
    assert [(e.source, e.text) for e in other.import_tsv(tmp_path / "terms.tsv")] == [
        ("猫", "cat"),
        ("红狗", "red dog"),
    ]
    assert other.import_tsv(tmp_path / "terms.tsv") == ()  # nothing new in it
    assert len(other.entries) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("猫\tcat\n狗\n", "line 2"),
        ("猫\t \n", "line 1"),
        ("\n\n", "no rows"),
        ("".join(f"猫{i}\tcat{i}\n" for i in range(101)), "101 rows"),
    ],
)
def test_a_bad_glossary_is_refused_whole(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(text, "utf-8")
    memory = RevisionMemory(tiny_translator(), size=100)
    memory.add("猫", "cat")
    with pytest.raises(InputError, match=message):
        memory.import_tsv(path)
    assert [entry.text for entry in memory.entries] == ["cat"]


def test_duplicate_rows_of_a_glossary_count_once(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("猫\tcat\n# a remark\n\n猫\tcat\n", "utf-8")
    assert len(RevisionMemory(tiny_translator()).import_tsv(tmp_path / "terms.tsv")) == 1


@pytest.mark.parametrize("row", [("", "cat"), ("猫", "  ")])
def test_an_entry_needs_both_sides(row: Sequence[str]) -> None:
    with pytest.raises(InputError):
        RevisionMemory(tiny_translator()).add(*row)
