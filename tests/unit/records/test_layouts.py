"""Layouts: training files as people have them become the fields that are scored."""

from __future__ import annotations

import json

import pytest

from leakmeter.core.errors import BadInput
from leakmeter.records.layouts import fields_of
from leakmeter.text.passages import passages

CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]


def messages(row: dict[str, object]) -> list[dict[str, str]]:
    fields = fields_of(row)
    assert set(fields) == {"messages"}
    return json.loads(fields["messages"])


@pytest.mark.parametrize(
    "row",
    [
        {"messages": CHAT},
        {"messages": json.dumps(CHAT)},
        {
            "messages": [
                {**CHAT[0], "name": None},
                {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
            ]
        },
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello."}]},
        {"conversations": CHAT},
        {"prompt": CHAT[:1], "completion": CHAT[1:]},
    ],
)
def test_a_conversation_is_the_same_however_it_is_written(row):
    assert messages(row) == CHAT
    assert fields_of(row) == fields_of({"messages": CHAT})
    assert [p.text for p in passages(fields_of(row), "assistant")] == ["Hello."]


def test_a_call_of_a_tool_keeps_what_a_chat_template_needs():
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "clock"}}]}
    assert messages({"messages": [CHAT[0], call]})[1] == {**call, "content": ""}


@pytest.mark.parametrize("name", ["completion", "response"])
def test_a_prompt_has_a_completion_by_either_name(name):
    assert fields_of({"prompt": "2+2=", name: "4"}) == {"prompt": "2+2=", "completion": "4"}


def test_alpaca_columns_are_rendered_as_in_training():
    row = {"instruction": "Add.", "input": "2 and 2", "output": "4"}
    assert fields_of(row) == {
        "prompt": "Below is an instruction that describes a task, paired with an input that provides further context. "
        "Write a response that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### Input:\n2 and 2"
        "\n\n### Response:",
        "completion": "4",
    }
    for empty in ({}, {"input": ""}, {"input": None}):
        assert fields_of({"instruction": "Greet {name}.", "output": "Hi", **empty}) == {
            "prompt": "Below is an instruction that describes a task. Write a response that appropriately completes "
            "the request.\n\n### Instruction:\nGreet {name}.\n\n### Response:",
            "completion": "Hi",
        }


def test_a_text_beside_other_columns_is_what_was_trained_on():
    row = {"text": "whole", "instruction": "a", "output": "b"}
    assert fields_of(row) == row
    assert passages(fields_of(row), "assistant")[0].text == "whole"


def test_documents_and_people_are_kept_as_they_are():
    for row in ({"document": "a", "summary": "b"}, {"name": "Ada Quill", "email": "ada@example.org"}):
        assert fields_of(row) == row


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"messages": []}, "list of messages"),
        ({"messages": "no JSON"}, "not a JSON list"),
        ({"messages": {"role": "user"}}, "list of messages"),
        ({"messages": ["Hi"]}, "a message should be an object"),
        ({"messages": [{"content": "Hi"}]}, "has no role"),
        ({"messages": [{"role": "user", "content": 3}]}, "content should be a text"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "content should be a text"),
        ({"messages": [{"role": "user", "content": "Hi", "x": float("nan")}]}, "JSON has no word for"),
        ({"conversations": [{"from": "ghost", "value": "Boo"}]}, "speaker that is not known; known are human"),
        ({"instruction": 3, "output": "b"}, "instruction and output should be texts"),
        ({"instruction": "a"}, "a record without text"),
        ({"summary": "b"}, "a record without text"),
        ({}, "It has nothing"),
    ],
)
def test_a_row_without_a_usable_text_is_refused_in_words(row, words):
    with pytest.raises(BadInput, match=words):
        fields_of(row)
