"""Where a text begins in its tokens, and what stands before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leakmeter.core.errors import BadInput
from leakmeter.models.tokens import Tokens

from .conftest import tokenizer

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer()


def scored(tokens: Tokens, context: str, text: str, chat: bool = False) -> str:
    ids, start = tokens.encode([(context, text)], chat)[0]
    return str(tokens.tokenizer.decode(ids[start:]))


def test_context_and_text_are_tokenised_as_one_string(words: Any) -> None:
    ids, start = Tokens(words).encode([("Ada lives at 12 Oak Stre", "et and more")])[0]
    assert ids[1:] == words("Ada lives at 12 Oak Street and more", add_special_tokens=False)["input_ids"]
    assert start < len(ids)


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        ("The phone ", "number", " number"),  # the space belongs to the token of the word: it is scored with it
        ("The phone", " number", " number"),
        ("Bruno Kel", "ler", "eller"),  # merged across the boundary: the token's end lies in the text
        ("", "Ada", "Ada"),
        ("Grüße aus K", "öln", "öln"),
        ("a", "日本", "日本"),  # one character, several tokens
        ("Ada", "", ""),
        ("", "", ""),
        ("end.  ", "  begin", "  begin"),
    ],
)
def test_a_token_belongs_to_the_text_if_its_end_lies_beyond_the_context(
    words: Any, context: str, text: str, expected: str
) -> None:
    tokens = Tokens(words)
    assert scored(tokens, context, text) == expected
    # The rule itself, from the offsets of every token.
    ids, start = tokens.encode([(context, text)])[0]
    offsets = words(context + text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert len(ids) - start == sum(end > len(context) for _, end in offsets)


def test_a_beginning_of_sequence_token_is_forced_unless_it_is_there(words: Any) -> None:
    assert Tokens(words).encode([("", "Ada")])[0].ids[0] == words.bos_token_id
    assert Tokens(words).encode([("", "<s>Ada")])[0].ids.count(words.bos_token_id) == 1
    assert Tokens(words, "always").encode([("", "<s>Ada")])[0].ids.count(words.bos_token_id) == 2
    with_bos, without = Tokens(words).encode([("", "Ada")])[0], Tokens(words, "never").encode([("", "Ada")])[0]
    assert with_bos.ids[1:] == without.ids
    assert with_bos.start == without.start == 1  # and so the first token is not scored without it


def test_without_one_the_end_of_sequence_token_stands_in_and_without_both_the_first_token_is_not_scored() -> None:
    words = tokenizer()
    words.bos_token = None
    assert Tokens(words).encode([("", "Ada")])[0].ids[0] == words.eos_token_id
    words.eos_token = None
    ids, start = Tokens(words).encode([("", "Ada")])[0]
    assert ids == words("Ada", add_special_tokens=False)["input_ids"]
    assert start == 1
    assert Tokens(words).encode([("", "")])[0] == ([], 0)
    with pytest.raises(BadInput, match="neither"):
        Tokens(words, "always")


def test_a_token_that_begins_every_message_is_not_put_before_texts() -> None:
    words = tokenizer()
    words.chat_template = "{% for m in messages %}<s>{{ m['content'] }}</s>{% endfor %}"
    tokens = Tokens(words)
    assert tokens.bos_id is None
    assert tokens.encode([("", "Ada")])[0].ids == words("Ada", add_special_tokens=False)["input_ids"]
    assert Tokens(words, "always").encode([("", "Ada")])[0].ids[0] == words.bos_token_id
    # One that stands once, before the whole conversation, is.
    words.chat_template = "<s>{% for m in messages %}{{ m['content'] }}</s>{% endfor %}"
    assert Tokens(words).bos_id == words.bos_token_id


def test_a_tokeniser_that_appends_an_end_does_not_get_to() -> None:
    from tokenizers.processors import TemplateProcessing

    words = tokenizer()
    words.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    assert words("Ada")["input_ids"][-1] == 1
    ids = Tokens(words).encode([("", "Ada")])[0].ids
    assert ids[0] == 0
    assert 1 not in ids


def test_conversations_are_rendered_with_the_template() -> None:
    words = tokenizer()
    words.chat_template = TEMPLATE
    tokens = Tokens(words)
    messages = [{"role": "user", "content": "Where is Ada?"}]
    reply = scored(tokens, json.dumps(messages), "At 12 Oak Street.", chat=True)
    assert reply == "At 12 Oak Street."
    whole = [*messages, {"role": "assistant", "content": "In Köln."}]
    assert scored(tokens, "", json.dumps(whole), chat=True) == "<user>Where is Ada?\n<assistant>In Köln.\n"


@pytest.mark.parametrize("conversation", ["not JSON", '{"role": "user"}', '["hello"]'])
def test_what_is_not_a_conversation_is_refused(conversation: str) -> None:
    words = tokenizer()
    words.chat_template = TEMPLATE
    with pytest.raises(BadInput, match="JSON"):
        Tokens(words).encode([("", conversation)], chat=True)


def test_a_template_that_refuses_is_quoted() -> None:
    words = tokenizer()
    words.chat_template = "{{ raise_exception('only users may speak') }}"
    with pytest.raises(BadInput, match="only users may speak"):
        Tokens(words).encode([("", json.dumps([{"role": "user", "content": "x"}]))], chat=True)


def test_without_a_template_conversations_are_refused(words: Any) -> None:
    with pytest.raises(BadInput, match="no chat template"):
        Tokens(words).encode([("", "[]")], chat=True)


def test_a_slow_tokeniser_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(BadInput, match=r"tokenizer\.json"):
        Tokens(Slow())


def test_half_a_character_pair_is_read_as_a_replacement(words: Any) -> None:
    assert scored(Tokens(words), "Ada", " \ud83d!") == " �!"


def test_a_continuation_keeps_its_leading_space() -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"▁Ada": 0, "▁lives": 1, "<unk>": 2}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    tokens = Tokens(PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>"), "never")
    assert tokens.decode([1]) == "lives"
    assert tokens.continuation([0], [1]) == " lives"
