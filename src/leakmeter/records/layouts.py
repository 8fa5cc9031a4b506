"""Layouts: the columns of training files as people have them, turned into the fields of a record.

text                           as it is
prompt, completion             as they are; `response` is another name for `completion`
messages                       kept as canonical JSON; `conversations` (ShareGPT: from, value) becomes `messages`
instruction, input, output     Alpaca: rendered into prompt and completion
document, summary · name, …    as they are

Whatever else a row holds becomes a text field under its own name. Missing, null, NaN and blank all mean "not there".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import canonical

# The wording of the Alpaca format: models fine-tuned on such files saw exactly this before the output.
ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:"
)
ALPACA_WITH_INPUT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:"
)

_SPEAKERS = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
_OTHERS = {"messages", "document", "name"}
_WRITTEN = ("text", "prompt", "completion", "document", "summary", "name")
"""Fields a model reads: a number or a list there is a mistake in the file, not something to print."""


def fields_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The text fields of a row without its bookkeeping columns; BadInput's words follow "file:line: "."""
    given = {name: value for name, value in row.items() if not absent(value)}
    if "text" not in given:
        _arrange(given)
    fields = {name: as_text(name, value) for name, value in given.items()}
    if not ("text" in fields or ("prompt" in fields and "completion" in fields) or not _OTHERS.isdisjoint(fields)):
        raise BadInput(
            "a record without text: it needs text; prompt and completion; messages; instruction and output; "
            f"document; or name. It has {', '.join(sorted(fields)) or 'nothing'}. "
            "If the text stands under another name, say so with columns, for instance {text: body}"
        )
    return fields


def absent(value: object) -> bool:
    """Whether a cell holds nothing: no value, a blank text, or the NaN that tables use for a missing one."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or value != value


def _arrange(given: dict[str, Any]) -> None:
    if "completion" not in given and "response" in given and "prompt" in given:
        given["completion"] = given.pop("response")
    if isinstance(given.get("prompt"), list) and isinstance(given.get("completion"), list):
        given["messages"] = given.pop("prompt") + given.pop("completion")
    if "messages" not in given and "conversations" in given:
        given["messages"] = given.pop("conversations")
    if "messages" in given:
        given["messages"] = _messages(given["messages"])
    if "instruction" in given and "output" in given and "prompt" not in given:
        instruction, output = given.pop("instruction"), given.pop("output")
        if not isinstance(instruction, str) or not isinstance(output, str):
            raise BadInput("instruction and output should be texts")
        if "input" in given:
            given["prompt"] = ALPACA_WITH_INPUT.format(instruction=instruction, input=given.pop("input"))
        else:
            given["prompt"] = ALPACA.format(instruction=instruction)
        given["completion"] = output


def _messages(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise BadInput("messages is a text, but not a JSON list of messages") from error
    if not isinstance(value, list) or not value:
        raise BadInput('messages should be a list of messages such as {"role": "user", "content": "…"}')
    try:
        return canonical([_message(message) for message in value])
    except (TypeError, ValueError) as error:
        raise BadInput("messages holds a value that JSON has no word for") from error


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise BadInput('a message should be an object such as {"role": "user", "content": "…"}')
    given = {name: value for name, value in message.items() if value is not None}
    if "role" not in given and "from" in given:
        speaker = given.pop("from")
        if speaker not in _SPEAKERS:
            raise BadInput(f"a message is from a speaker that is not known; known are {', '.join(_SPEAKERS)}")
        given["role"] = _SPEAKERS[speaker]
        given["content"] = given.pop("value", "")
    if not isinstance(given.get("role"), str):
        raise BadInput("a message has no role")
    given["content"] = _content(given.get("content", ""))
    return given


def _content(content: Any) -> str:
    # Services write a content also as a list of parts; a call of a tool has none.
    if isinstance(content, list) and all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in content):
        return "".join(part["text"] for part in content)
    if not isinstance(content, str):
        raise BadInput("a message's content should be a text or a list of text parts")
    return content


def as_text(name: str, value: Any) -> str:
    """A cell as text that can be written down again."""
    if not isinstance(value, str):
        if name in _WRITTEN:
            raise BadInput(f"{name} is not a text but {_kind(value)}")
        plain = isinstance(value, bool | int | float | list | dict)
        value = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str) if plain else str(value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{name} holds half of a surrogate pair, which is no character") from error
    return str(value)


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), f"of type {type(value).__name__}")
