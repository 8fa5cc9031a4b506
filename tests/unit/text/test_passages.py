"""Passages: what of a record is scored, and what stands before it."""

from __future__ import annotations

import json

import pytest

from leakmeter.core.errors import BadInput
from leakmeter.core.keys import canonical
from leakmeter.text.passages import Passage, passages, plain_text

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Where is Wexport?"},
    {"role": "assistant", "content": "By the sea."},
]


@pytest.mark.parametrize("score", ["all", "assistant"])
def test_a_plain_text_is_one_passage_without_context(score):
    assert passages({"text": "one two", "source": "x"}, score) == [Passage("", "one two", False)]


def test_a_prompt_is_the_context_of_its_completion_or_part_of_the_text():
    fields = {"prompt": "2+2=", "completion": "4"}
    assert passages(fields, "assistant") == [Passage("2+2=", "4", False)]
    assert passages(fields, "all") == [Passage("", "2+2=4", False)]


def test_every_reply_of_a_conversation_is_a_passage_after_the_messages_before_it():
    fields = {"messages": canonical(CHAT)}
    first, second = passages(fields, "assistant")
    assert (first.text, second.text) == ("Hello.", "By the sea.")
    assert json.loads(first.context) == CHAT[:2]
    assert json.loads(second.context) == CHAT[:4]
    assert first.chat
    assert second.chat


def test_a_whole_conversation_is_one_passage_that_the_model_renders():
    fields = {"messages": canonical(CHAT)}
    assert passages(fields, "all") == [Passage("", canonical(CHAT), True)]


def test_a_reply_that_opens_a_conversation_is_not_taken_for_a_whole_one():
    fields = {"messages": canonical([{"role": "assistant", "content": "Welcome."}])}
    assert passages(fields, "assistant") == [Passage("[]", "Welcome.", True)]


def test_replies_without_words_are_no_passages():
    fields = {"messages": canonical([*CHAT[:2], {"role": "assistant", "content": ""}])}
    assert passages(fields, "assistant") == []


def test_a_document_is_the_context_of_its_summary():
    assert passages({"document": "long", "summary": "short"}, "assistant") == [Passage("long", "short", False)]
    assert passages({"document": "long"}, "all") == [Passage("", "long", False)]


@pytest.mark.parametrize("fields", [{}, {"name": "Ada Quill"}, {"prompt": "alone"}, {"messages": "no JSON"}])
def test_a_record_without_a_text_to_score_is_refused_in_words(fields):
    with pytest.raises(BadInput, match=r"text to score|messages"):
        passages(fields, "assistant")


@pytest.mark.parametrize("messages", ["[]", "{}", '["hi"]', '[{"role": "user"}]', '[{"content": "x"}]'])
def test_messages_that_are_none_are_refused(messages):
    with pytest.raises(BadInput, match="role and a content"):
        passages({"messages": messages}, "assistant")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"text": "a b", "repeats": "16"}, "a b"),
        ({"prompt": "a", "completion": "b", "repeats": "16"}, "a\nb"),
        ({"messages": canonical(CHAT[:2])}, "Be brief.\nHi"),
        ({"document": "a", "summary": "b", "source": "c"}, "a\nb"),
        ({"name": "Ada Quill", "email": "ada@example.org"}, "Ada Quill\nada@example.org"),
    ],
)
def test_plain_text_has_the_words_and_not_what_is_noted_beside_them(fields, text):
    assert plain_text(fields) == text
