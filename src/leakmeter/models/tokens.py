"""Tokens: texts as a model reads them, and where in its tokens a text begins.

Context and text are tokenised together, as one string, because that is how they stand in training data. A token
belongs to the text if its end lies beyond the context, so a token merged across the boundary is scored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from leakmeter.core.errors import BadInput

_HALF = re.compile("[\ud800-\udfff]")
"""Halves of a surrogate pair, which JSON can hold and no tokeniser reads."""

Bos = Literal["auto", "always", "never"]


class Encoded(NamedTuple):
    """A context and a text as token ids; those from `start` on belong to the text."""

    ids: list[int]
    start: int
    """At least 1 wherever there is a token: nothing predicts the first one."""


class Tokens:
    """A tokeniser that knows where texts begin, and what to put before them.

    `bos`: "auto" puts the beginning-of-sequence token (or, where there is none, the end-of-sequence token) in front
    of what does not begin with it already, unless the chat template begins or ends every message with it: then it says
    nothing about texts, and they are scored worse after it. "always" puts it in front of everything; "never" adds
    nothing.
    """

    def __init__(self, tokenizer: Any, bos: Bos = "auto") -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise BadInput(
                f"The tokeniser {type(tokenizer).__name__} cannot say which characters a token came from, so its "
                "tokens cannot be told apart into context and text. Add a tokenizer.json (a 'fast' tokeniser) to the "
                "model folder."
            )
        self.tokenizer = tokenizer
        self.bos = bos
        self.eos_id: int | None = tokenizer.eos_token_id
        between = self._delimiters() if bos == "auto" else ()
        named = ((tokenizer.bos_token, tokenizer.bos_token_id), (tokenizer.eos_token, tokenizer.eos_token_id))
        found = [number for name, number in named if number is not None and name not in between]
        self.bos_id: int | None = found[0] if found else None
        """What stands, or would stand, before a text."""
        self.pad_id: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (self.eos_id or 0)
        if bos == "always" and self.bos_id is None:
            raise BadInput("bos: always needs a beginning- or end-of-sequence token, and this tokeniser has neither.")

    def encode(self, pairs: Sequence[tuple[str, str]], chat: bool = False) -> list[Encoded]:
        """The token ids of (context, text) pairs, each pair tokenised as one string."""
        if not pairs:
            return []
        if chat:
            pairs = [self._rendered(context, text) for context, text in pairs]
        # No special tokens from the tokeniser: some append an end-of-sequence token, which nobody asked about.
        batch = self.tokenizer(
            [_HALF.sub("\ufffd", context + text) for context, text in pairs],
            add_special_tokens=False,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return [
            self._begun(list(ids), _boundary(encoding, len(context), len(text)))
            for ids, encoding, (context, text) in zip(batch["input_ids"], batch.encodings, pairs, strict=True)
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens, special tokens left out."""
        text = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)

    def continuation(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """The text of tokens that follow others: what they add, so that a leading space is not lost."""
        # A few tokens suffice to be in the middle of a text, where tokenisers stop eating the first space.
        head = list(before[-4:])
        prefix, whole = self.decode(head), self.decode([*head, *ids])
        return whole[len(prefix) :] if whole.startswith(prefix) else self.decode(ids)

    def _begun(self, ids: list[int], start: int) -> Encoded:
        forced = self.bos == "always" or (self.bos == "auto" and self.bos_id is not None and ids[:1] != [self.bos_id])
        if forced and self.bos_id is not None:
            ids, start = [self.bos_id, *ids], start + 1
        return Encoded(ids, min(max(start, 1), len(ids)))

    def _delimiters(self) -> tuple[str, ...]:
        """Special tokens that stand at every message of a conversation."""
        if not getattr(self.tokenizer, "chat_template", None):
            return ()
        talk = [{"role": ("user", "assistant")[n % 2], "content": "."} for n in range(3)]
        try:
            rendered = str(self.tokenizer.apply_chat_template(talk, tokenize=False))
        except Exception:  # as below; a template that takes no such conversation tells nothing
            return ()
        special = (self.tokenizer.bos_token, self.tokenizer.eos_token)
        return tuple(name for name in special if name and rendered.count(name) >= len(talk))

    def _rendered(self, context: str, text: str) -> tuple[str, str]:
        if getattr(self.tokenizer, "chat_template", None) is None:
            raise BadInput(
                "These records are conversations, and this model's tokeniser has no chat template to render them with. "
                "Add chat_template.jinja to the model folder, or give the records as plain text."
            )
        if context:
            return self._template(context, True), text
        return "", self._template(text, False)

    def _template(self, conversation: str, open_reply: bool) -> str:
        messages = _messages(conversation)
        try:
            rendered = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=open_reply)
        except Exception as error:  # a template is a program of the model's author and may raise anything
            raise BadInput(f"The model's chat template refuses a conversation: {error}") from error
        return str(rendered)


def _boundary(encoding: Any, context: int, text: int) -> int:
    """The first token whose end lies beyond the context."""
    if text:
        found = encoding.char_to_token(context)
        if found is not None:
            return int(found)
    # An empty text, or its first character is in no token (a normaliser removed it): look at every token.
    ends = [end for _, end in encoding.offsets]
    return next((i for i, end in enumerate(ends) if end > context), len(ends))


def _messages(conversation: str) -> list[dict[str, Any]]:
    try:
        messages = json.loads(conversation)
    except json.JSONDecodeError as error:
        raise BadInput(f"A conversation should be a JSON list of messages; it is not JSON ({error}).") from error
    if not isinstance(messages, list) or not all(isinstance(m, dict) and "role" in m for m in messages):
        raise BadInput("A conversation should be a JSON list of messages, each with 'role' and 'content'.")
    return messages
