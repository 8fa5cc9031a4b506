"""Passages: the parts of a record that a model is asked to score, and what stands before each of them.

A training file holds plain texts, prompts with completions, conversations, or documents with summaries. Fine-tuning
usually trains on the reply alone, so with `score="assistant"` only replies are passages and the rest is their context.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import canonical

Score = Literal["all", "assistant"]


class Passage(NamedTuple):
    """A text to score after its context. With `chat`, both are what a chat `Likelihood` question takes."""

    context: str
    text: str
    chat: bool


def passages(fields: Mapping[str, str], score: Score) -> list[Passage]:
    """The passages of a record's fields; none where a conversation has no reply with words in it."""
    if "text" in fields:
        return [Passage("", fields["text"], False)]
    if "prompt" in fields and "completion" in fields:
        if score == "assistant":
            return [Passage(fields["prompt"], fields["completion"], False)]
        return [Passage("", fields["prompt"] + fields["completion"], False)]
    if "messages" in fields:
        if score == "all":
            return [Passage("", fields["messages"], True)]
        return _replies(read_messages(fields["messages"]))
    if "document" in fields and "summary" in fields:
        return [Passage(fields["document"], fields["summary"], False)]
    if "document" in fields:
        return [Passage("", fields["document"], False)]
    raise BadInput(
        f"A record has no text to score: its fields are {', '.join(sorted(fields)) or 'none'}. "
        "Give it one of: text; prompt and completion; messages; document (and summary)."
    )


def _replies(messages: list[dict[str, Any]]) -> list[Passage]:
    # A reply that opens a conversation has the context "[]": an empty context would mean "the text is the whole chat".
    return [
        Passage(canonical(messages[:i]), message["content"], True)
        for i, message in enumerate(messages)
        if message["role"] == "assistant" and message["content"]
    ]


def read_messages(text: str) -> list[dict[str, Any]]:
    """The messages in a record's `messages` field: JSON, a list of objects with string `role` and `content`."""
    try:
        messages = json.loads(text)
    except ValueError as error:
        raise BadInput(f"A record's messages are not JSON: {error}.") from error
    if not (isinstance(messages, list) and messages and all(_is_message(m) for m in messages)):
        raise BadInput("A record's messages should be a non-empty JSON list of objects with a role and a content.")
    return messages


def _is_message(message: object) -> bool:
    return isinstance(message, dict) and all(isinstance(message.get(key), str) for key in ("role", "content"))


def plain_text(fields: Mapping[str, str]) -> str:
    """All the words of a record, one part per line: for what looks at words only (zlib, length, bag of words)."""
    if "text" in fields:
        return fields["text"]
    if "prompt" in fields and "completion" in fields:
        return fields["prompt"] + "\n" + fields["completion"]
    if "messages" in fields:
        return "\n".join(message["content"] for message in read_messages(fields["messages"]))
    if "document" in fields:
        return "\n".join(fields[name] for name in ("document", "summary") if name in fields)
    # A person, or whatever a plug-in made: every field counts.
    return "\n".join(fields.values())
