"""Writes the browser's types from `camit_widget.protocol`, so that the two sides cannot drift apart.

`python -m camit_widget.typescript js/src/protocol.ts` writes the file; a test compares it with what this
module would write.
"""

from __future__ import annotations

import pathlib
import sys
import types
import typing

import msgspec

from camit_widget import protocol

_HEADER = (
    "// Written by `python -m camit_widget.typescript js/src/protocol.ts` from camit_widget/protocol.py.\n"
    "// Change it there.\n"
)
_SCALARS: dict[object, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def _is_struct(value: object) -> typing.TypeGuard[type[msgspec.Struct]]:
    return isinstance(value, type) and issubclass(value, msgspec.Struct)


def _type(annotation: object) -> str:
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if _is_struct(annotation):
        return annotation.__name__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " | ".join(f'"{value}"' for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(part) for part in arguments)
    if origin is tuple and arguments[1:] == (Ellipsis,):
        item = _type(arguments[0])
        return f"readonly ({item})[]" if " | " in item else f"readonly {item}[]"
    raise TypeError(f"{annotation!r} of protocol.py has no TypeScript form yet: add one to typescript.py")


def _interface(struct: type[msgspec.Struct]) -> str:
    lines = [f"export interface {struct.__name__} {{"]
    config = struct.__struct_config__
    if config.tag is not None:
        lines.append(f'  readonly {config.tag_field}: "{config.tag}";')
    hints = typing.get_type_hints(struct)
    for field in msgspec.structs.fields(struct):
        optional = "" if field.required else "?"
        lines.append(f"  readonly {field.name}{optional}: {_type(hints[field.name])};")
    return "\n".join([*lines, "}"])


def _aliases() -> dict[str, object]:
    """The unions that name what can be said: `AnyRequest`, `AnyResult`, `AnyAnswer`, and the literals."""
    return {
        name: value
        for name, value in vars(protocol).items()
        if typing.get_origin(value) in (typing.Literal, typing.Union, types.UnionType) and name[0].isupper()
    }


def _alias(name: str, value: object) -> str:
    parts = _type(value).split(" | ")
    line = f"export type {name} = {' | '.join(parts)};"
    return line if len(line) <= 110 else f"export type {name} =\n  | " + "\n  | ".join(parts) + ";"


def generate() -> str:
    """The whole of js/src/protocol.ts."""
    bases = (protocol.Value, protocol.Request, protocol.About, protocol.Answer)
    structs = [value for value in vars(protocol).values() if _is_struct(value) and value not in bases]
    blocks = [_alias(name, value) for name, value in _aliases().items()]
    return "\n".join([_HEADER, *(f"{block}\n" for block in [*blocks, *map(_interface, structs)])])


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(generate(), encoding="utf-8")
