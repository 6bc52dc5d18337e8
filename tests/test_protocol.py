"""Kernel and browser speak one language: the TypeScript is generated, and every message has one form."""

from __future__ import annotations

import pathlib
import typing

import msgspec
import pytest

from camit_widget import protocol, typescript

GENERATED = pathlib.Path(__file__).parents[1] / "js" / "src" / "protocol.ts"


def test_the_browsers_types_are_those_of_protocol_py() -> None:
    assert GENERATED.read_text(encoding="utf-8") == typescript.generate(), (
        "js/src/protocol.ts is out of date: python -m camit_widget.typescript js/src/protocol.ts"
    )


def test_every_request_is_known_by_a_name_of_its_own() -> None:
    requests = typing.get_args(protocol.AnyRequest)
    names = [request.__struct_config__.tag for request in requests]
    assert len(set(names)) == len(names)
    declared = {
        value
        for value in vars(protocol).values()
        if isinstance(value, type) and issubclass(value, protocol.Request)
    }
    assert declared - {protocol.Request, protocol.About} == set(requests)


def test_a_request_survives_the_wire() -> None:
    effort = protocol.Effort(keystrokes=4, mouse=1)
    asked = protocol.Replace("view", 7, 0, 2, 3, 4, "filmmakers", effort)
    assert msgspec.convert(msgspec.to_builtins(asked), protocol.AnyRequest) == asked


@pytest.mark.parametrize(
    "content",
    [
        {"type": "replace", "view": "v", "id": 1},
        {"type": "conjure", "view": "v", "id": 1},
        {"type": "undo", "view": "v", "id": 1, "row": "0"},
        {"type": "undo", "view": "v", "id": 1, "row": 0, "more": True},
        {"type": "export", "view": "v", "id": 1, "format": "exe"},
        ["undo"],
    ],
)
def test_what_is_no_request_is_refused(content: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, protocol.AnyRequest)


def test_values_are_never_changed() -> None:
    word = protocol.SourceWord("我们", False)
    with pytest.raises(AttributeError):
        word.text = "你们"  # type: ignore[misc]


def test_a_type_without_a_typescript_form_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError, match="has no TypeScript form"):
        typescript._type(dict[str, int])
