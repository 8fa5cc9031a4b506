"""Files: every format and layout gives the same records, and every fault is named where it stands."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
import zstandard

from leakmeter.core.errors import BadInput
from leakmeter.core.record import Record
from leakmeter.core.registry import build
from leakmeter.records.files import File, as_row, write_jsonl

ROWS = [
    {"id": "a", "text": "Grüße aus Wexport", "member": True, "group": "p1", "split": "train", "note": "x"},
    {"id": "b", "text": 'two\nlines, "quoted"', "member": False, "group": "p2", "split": "holdout", "note": "y"},
    {"id": "c", "text": "last", "member": None, "group": None, "split": None, "note": None},
]
RECORDS = [
    Record("a", {"text": "Grüße aus Wexport", "note": "x"}, member=True, group="p1", split="train"),
    Record("b", {"text": 'two\nlines, "quoted"', "note": "y"}, member=False, group="p2", split="holdout"),
    Record("c", {"text": "last"}),
]


def packed(path: Path, raw: bytes) -> Path:
    match path.suffix:
        case ".gz":
            raw = gzip.compress(raw)
        case ".zst":
            raw = zstandard.ZstdCompressor().compress(raw)
    path.write_bytes(raw)
    return path


def jsonl(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def encoded(name: str) -> bytes:
    if name.startswith((".jsonl", ".ndjson")):
        return jsonl(*ROWS)
    if name.startswith(".json"):
        return json.dumps(ROWS, indent=2).encode()
    if name.startswith((".csv", ".tsv")):
        return pl.DataFrame(ROWS).write_csv(separator="\t" if "tsv" in name else ",").encode()
    raise ValueError(name)


FORMATS = [format + pack for format in (".jsonl", ".ndjson", ".json", ".csv", ".tsv") for pack in ("", ".gz", ".zst")]


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_rows_are_the_same_records_in_every_format(tmp_path, name):
    loaded = File(path=packed(tmp_path / f"data{name}", encoded(name))).read()
    assert loaded.records == RECORDS
    assert loaded.skipped == []


def test_parquet_gives_the_same_records(tmp_path):
    pl.DataFrame(ROWS).write_parquet(tmp_path / "data.parquet")
    assert File(path=tmp_path / "data.parquet").read().records == RECORDS


@pytest.mark.parametrize("pack", ["", ".gz", ".zst"])
def test_of_a_text_file_each_line_that_is_not_blank_is_a_record(tmp_path, pack):
    path = packed(tmp_path / f"notes.txt{pack}", b"\xef\xbb\xbffirst\r\n\n   \n  second\n")
    records = File(path=path).read().records
    assert [(r.id, r.fields["text"]) for r in records] == [("notes:1", "first"), ("notes:4", "  second")]


def test_json_lines_under_the_name_json_are_read_as_lines(tmp_path):
    path = packed(tmp_path / "data.json", b"\n" + jsonl(*ROWS))
    assert File(path=path).read().records == RECORDS


@pytest.mark.parametrize("pack", ["", ".gz", ".zst"])
def test_what_is_written_is_read_back_and_equal_rows_give_equal_bytes(tmp_path, pack):
    chat = Record("d", {"messages": '[{"content":"Hi","role":"user"}]'}, member=True)
    paths = [tmp_path / f"out{i}" / f"data.jsonl{pack}" for i in (1, 2)]
    for path in paths:
        write_jsonl(path, map(as_row, [*RECORDS, chat]))
    assert File(path=paths[0]).read().records == [*RECORDS, chat]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [path.name for path in paths[0].parent.iterdir()] == [paths[0].name]


def test_a_file_that_could_not_be_written_whole_leaves_the_old_one_and_nothing_beside_it(tmp_path):
    path = packed(tmp_path / "data.jsonl", b"old\n")

    def rows():
        yield {"text": "new"}
        raise OSError(28, "No space left on device")

    with pytest.raises(BadInput, match=r"data\.jsonl could not be written: No space left"):
        write_jsonl(path, rows())
    assert path.read_bytes() == b"old\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_many_frames_and_long_lines_of_a_zstandard_file_are_joined(tmp_path):
    rows = [{"text": "ab " * 200_000}, {"text": "short"}]
    raw = b"".join(zstandard.ZstdCompressor().compress(part) for part in (jsonl(rows[0])[:99], jsonl(*rows)[99:]))
    (tmp_path / "data.jsonl.zst").write_bytes(raw)
    assert [r.fields for r in File(path=tmp_path / "data.jsonl.zst").read().records] == rows


def test_a_csv_cell_may_be_long(tmp_path):
    path = packed(tmp_path / "data.csv", b"text\n" + b"x" * 300_000 + b"\n")
    assert len(File(path=path).read().records[0].fields["text"]) == 300_000


def test_csv_records_are_named_by_the_line_they_begin_on(tmp_path):
    path = packed(tmp_path / "data.csv", b'text\n"one\ntwo"\nthree\n')
    assert [r.id for r in File(path=path).read().records] == ["data:2", "data:4"]


def test_parquet_of_several_row_groups_keeps_its_order(tmp_path):
    pl.DataFrame({"text": [f"t{i}" for i in range(50_000)]}).write_parquet(tmp_path / "d.parquet", row_group_size=7_000)
    records = File(path=tmp_path / "d.parquet").read().records
    assert [r.fields["text"] for r in records] == [f"t{i}" for i in range(50_000)]
    assert records[-1].id == "d:50000"


def test_the_digest_is_that_of_the_bytes(tmp_path):
    path = packed(tmp_path / "data.jsonl.gz", jsonl(*ROWS))
    assert File(path=path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_config_names_a_file_by_its_type_and_survives_being_written_out(tmp_path):
    path = packed(tmp_path / "data.jsonl", jsonl(*ROWS))
    file = build("records", {"type": "file", "path": str(path), "columns": {"text": "note"}, "limit": 2})
    again = build("records", json.loads(file.model_dump_json()))
    assert again == file
    assert again.read() == file.read()
    assert [r.fields["text"] for r in again.read().records] == ["x", "y"]


def test_limit_reads_the_first_records_and_nothing_after_them(tmp_path):
    path = packed(tmp_path / "data.jsonl", jsonl(*ROWS) + b"not JSON\n")
    assert File(path=path, limit=3).read().records == RECORDS


def test_split_and_member_of_the_spec_fill_and_rule(tmp_path):
    path = packed(tmp_path / "data.jsonl", jsonl({"text": "a", "split": "x"}, {"text": "b"}))
    assert [r.split for r in File(path=path).read().records] == ["x", "audit"]
    named = File(path=path, split="population", member=False).read().records
    assert [(r.split, r.member) for r in named] == [("population", False)] * 2


@pytest.mark.parametrize(
    ("value", "member"),
    [(True, True), (0, False), ("YES", True), ("no", False), ("1", True), (0.0, False), ("", None), (None, None)],
)
def test_member_is_understood_as_people_write_it(tmp_path, value, member):
    path = packed(tmp_path / "data.jsonl", jsonl({"text": "a", "member": value}))
    assert File(path=path).read().records[0].member is member


def test_numbers_become_names_and_other_values_text(tmp_path):
    row = {"id": 7, "group": 12, "text": "a", "age": 41, "ok": True, "tags": ["x", 1], "gap": float("nan")}
    path = packed(tmp_path / "data.jsonl", jsonl(row))
    assert File(path=path).read().records == [
        Record("7", {"text": "a", "age": "41", "ok": "true", "tags": '["x", 1]'}, group="12")
    ]


BAD_LINES = {
    "not JSON": (b"{text: 1}\n", r"data\.jsonl:2: is not JSON \(.*column 2\)"),
    "cut off": (b'{"text": "a', r"data\.jsonl:2: is not JSON"),
    "not UTF-8": (b'{"text": "caf\xe9"}\n', r"data\.jsonl:2: is not UTF-8"),
    "a list": (b"[1]\n", r"data\.jsonl:2: is not a JSON object.*\.json"),
    "a number": (b"3\n", r"data\.jsonl:2: is not a JSON object"),
    "too deep": (b"[" * 100_000 + b"\n", r"data\.jsonl:2: is (not )?JSON"),
    "no text": (b'{"note": "x", "id": "q"}\n', r"data\.jsonl:2: a record without text: .*It has note"),
    "blank text": (b'{"text": "  "}\n', r"data\.jsonl:2: a record without text: .*It has nothing"),
    "a prompt alone": (b'{"prompt": "x"}\n', r"data\.jsonl:2: a record without text"),
    "text is a number": (b'{"text": 3}\n', r"data\.jsonl:2: text is not a text but a number"),
    "half a character": (b'{"text": "\\ud800"}\n', r"data\.jsonl:2: text holds half of a surrogate pair"),
    "half a character in an id": (b'{"text": "a", "id": "\\ud800"}\n', r"data\.jsonl:2: id holds half of a surrogate"),
    "half a character in a chat": (
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}\n',
        r"data\.jsonl:2: messages holds half of a surrogate",
    ),
    "wrong member": (b'{"text": "a", "member": "maybe"}\n', r"data\.jsonl:2: member should be one of true, false"),
    "wrong id": (b'{"text": "a", "id": [1]}\n', r"data\.jsonl:2: id should be a text or a whole number"),
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_is_named_or_with_skip_bad_counted_and_skipped(tmp_path, what):
    line, words = BAD_LINES[what]
    path = packed(tmp_path / "data.jsonl", b'{"text": "good"}\n' + line)
    with pytest.raises(BadInput, match=words) as error:
        File(path=path).read()
    assert "--skip-bad" in str(error.value)
    assert "\n" not in str(error.value)
    loaded = File(path=path, skip_bad=True).read()
    assert [r.id for r in loaded.records] == ["data:1"]
    assert len(loaded.skipped) == 1
    assert f"{path}:2: " in loaded.skipped[0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"c,d,e\n", "3: has 3 values for 2 columns"),
        (b"c\n", "3: has 1 values for 2 columns"),
        (b"caf\xe9,d\n", "3: is not UTF-8"),
        (b'"c"d,e\n', "3: is not CSV"),
        (b'"c,d\n', "3: is not CSV"),
    ],
)
def test_a_bad_row_of_a_table_is_named_or_skipped(tmp_path, line, words):
    path = packed(tmp_path / "data.csv", b"text,note\na,b\n" + line)
    with pytest.raises(BadInput, match=words):
        File(path=path).read()
    assert len(File(path=path, skip_bad=True).read().skipped) == 1


def test_rows_after_a_bad_row_of_a_table_are_read(tmp_path):
    path = packed(tmp_path / "data.csv", b'text,note\na,b\ncaf\xe9,x\n"c"d,e\nf,g\n')
    loaded = File(path=path, skip_bad=True).read()
    assert [r.fields["text"] for r in loaded.records] == ["a", "f"]
    assert [line.split(":")[1] for line in loaded.skipped] == ["3", "4"]


def test_an_error_does_not_quote_what_the_file_holds(tmp_path):
    secret = b'{"text": "Ada Quill lives at 9 Mill Lane" oops}\n'
    with pytest.raises(BadInput) as error:
        File(path=packed(tmp_path / "data.jsonl", secret)).read()
    assert "Quill" not in str(error.value)


WHOLE_FILES = {
    "empty.jsonl": (b"", "empty.jsonl is empty"),
    "blank.jsonl": (b"\n \n", "blank.jsonl is empty: it has no records"),
    "blank.json": (b"\n \n", "blank.json.* is not JSON"),
    "none.json": (b"[]", "none.json is empty: it has no records"),
    "object.json": (b'"text"', "should hold a JSON array"),
    "cut.json": (b'[{"text": "a"},\n', r"cut\.json:2: the file is not JSON"),
    "latin.json": (b'["caf\xe9"]', "latin.json is not UTF-8"),
    "header.csv": (b"text,note\n", "header.csv is empty: it has no records"),
    "twice.csv": (b"text,text\na,b\n", "twice.csv:1: the column text stands there twice"),
    "latin.csv": (b"caf\xe9,text\na,b\n", "latin.csv:1: the line with the names of the columns is not UTF-8"),
    "data.parquet": (b"PAR1 and no more", "no Parquet file, or a broken one"),
    "data.xlsx": (b"x", r"data\.xlsx: the name does not end in a format.*\.jsonl.*\.parquet"),
    "data": (b"x", "does not end in a format"),
    "junk.jsonl.gz": (b"not gzip at all", "junk.jsonl.gz is a broken gzip file"),
    "junk.jsonl.zst": (b"not zstandard", "junk.jsonl.zst is a broken zstandard file"),
    "cut.jsonl.gz": (gzip.compress(jsonl(*[{"text": "a"}] * 50))[:-9], "cut.jsonl.gz is a broken gzip file"),
    "cut.jsonl.zst": (
        zstandard.ZstdCompressor().compress(jsonl(*[{"text": "a"}] * 50))[:-1],
        "cut.jsonl.zst is a broken zstandard file",
    ),
}


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_file_that_cannot_be_used_is_refused_in_one_paragraph(tmp_path, name):
    raw, words = WHOLE_FILES[name]
    (tmp_path / name).write_bytes(raw)
    for skip_bad in (False, True):
        with pytest.raises(BadInput, match=words) as error:
            File(path=tmp_path / name, skip_bad=skip_bad).read()
        assert "\n" not in str(error.value)
        assert error.value.exit_code == 2


def test_a_missing_file_and_a_folder_are_said_to_be_that(tmp_path):
    for read in (lambda f: f.read(), lambda f: f.digest()):
        with pytest.raises(BadInput, match=r"There is no file .*gone\.jsonl"):
            read(File(path=tmp_path / "gone.jsonl"))
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"is a folder"):
        File(path=tmp_path / "folder.jsonl").read()


def test_a_file_of_bad_lines_only_has_no_records(tmp_path):
    path = packed(tmp_path / "data.jsonl", b"x\ny\n")
    with pytest.raises(BadInput, match=r"all of its 2 lines were skipped; the first: .*data\.jsonl:1: is not JSON"):
        File(path=path, skip_bad=True).read()


def test_an_id_used_twice_is_named_by_both_lines_and_not_quoted(tmp_path):
    rows = [{"id": "ada@example.org", "text": t} for t in "ab"]
    path = packed(tmp_path / "data.jsonl", jsonl(rows[0]) + b"\n" + jsonl(rows[1]))
    with pytest.raises(BadInput, match="lines 1 and 3 have the same id") as error:
        File(path=path, skip_bad=True).read()
    assert "ada@" not in str(error.value)


def test_a_file_that_contradicts_the_membership_it_was_given_is_refused(tmp_path):
    path = packed(tmp_path / "data.jsonl", jsonl({"text": "a", "member": True}, {"text": "b", "member": False}))
    with pytest.raises(BadInput, match=r"data\.jsonl:2: the file calls this record a non-member, .* members"):
        File(path=path, member=True, skip_bad=True).read()


def test_a_column_that_is_not_there_is_an_error_that_lists_those_that_are(tmp_path):
    path = packed(tmp_path / "data.jsonl", jsonl({"body": "a", "note": "b"}))
    with pytest.raises(BadInput, match=r"data\.jsonl:1: there is no column bdy, .*there are body, note"):
        File(path=path, columns={"text": "bdy"}).read()
    assert File(path=path, columns={"text": "body"}).read().records[0].fields == {"note": "b", "text": "a"}
