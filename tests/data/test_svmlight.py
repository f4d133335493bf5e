"""Reading is exact and strict; writing reads back."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import os
import threading
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from resvm_cli.data import _svmlight, svmlight
from resvm_cli.data.fields import whole_lines
from resvm_cli.data.inputs import read_file
from resvm_cli.data.streams import read_pieces
from resvm_cli.data.svmlight import (
    Block,
    format_block,
    parse_pieces,
)
from resvm_cli.errors import DataError, FileError
from resvm_cli.rows import Rows
from tests.misuse import (
    assert_refused,
)
from tests.programs import PATIENCE_SECONDS


def parse(text: bytes, cuts: tuple[int, ...] = (), **options) -> Block:
    pieces = [text[a:b] for a, b in zip((0, *cuts), (*cuts, len(text)), strict=True)]
    return Block.concatenate(list(parse_pieces(pieces, "data.svm", **options)))


def contents(block: Block) -> list[tuple]:
    return [
        (
            repr(block.labels[row]),
            int(block.qids[row]),
            block.rows.indices[a:b].tolist(),
            block.rows.values[a:b].tolist(),
        )
        for row, (a, b) in enumerate(
            zip(block.rows.indptr[:-1], block.rows.indptr[1:], strict=True)
        )
    ]


@pytest.mark.parametrize(
    ("text", "label", "qid", "indices", "values"),
    [
        (b"1 1:0.5 3:2\n", 1.0, -1, [1, 3], [0.5, 2.0]),
        (b"+1 1:+0.5\n", 1.0, -1, [1], [0.5]),
        (b"-1.0 2:-3\n", -1.0, -1, [2], [-3.0]),
        (b"1e1 1:1e-3 2:1E+2 3:.5 4:5.\n", 10.0, -1, [1, 2, 3, 4], [1e-3, 100.0, 0.5, 5.0]),
        (b"1\t1:2\t  2:3  \n", 1.0, -1, [1, 2], [2.0, 3.0]),
        (b"  1 1:2\r\n", 1.0, -1, [1], [2.0]),
        (b"\xef\xbb\xbf1 1:2\n", 1.0, -1, [1], [2.0]),
        (b"1 1:2", 1.0, -1, [1], [2.0]),
        (b"1 1:2\r", 1.0, -1, [1], [2.0]),
        (b"1 1:0 2:1\n", 1.0, -1, [1, 2], [0.0, 1.0]),
        (b"1\n", 1.0, -1, [], []),
        (b"1 qid:12 1:2\n", 1.0, 12, [1], [2.0]),
        (b"qid:3 1:2\n", np.nan, 3, [1], [2.0]),
        (b"1:2 5:1\n", np.nan, -1, [1, 5], [2.0, 1.0]),
        (b"1 1:2 # name\n", 1.0, -1, [1], [2.0]),
        (b"1 1:2#name\n", 1.0, -1, [1], [2.0]),
        (b"1 # nan:inf 0:0\n", 1.0, -1, [], []),
        (b"1 2147483646:1\n", 1.0, -1, [2147483646], [1.0]),
        (b"1 1:-0\n", 1.0, -1, [1], [-0.0]),
        (b"1 1:1e-400\n", 1.0, -1, [1], [0.0]),
    ],
)
def test_what_the_grammar_accepts(text, label, qid, indices, values):
    assert contents(parse(text)) == [(repr(np.float64(label)), qid, indices, values)]


def test_blank_and_comment_lines_are_skipped_but_counted():
    block = parse(b"\n# head\n1 1:1\n \t\r\n\n-1 2:1\n\n")
    assert block.labels.tolist() == [1.0, -1.0]
    assert block.lines.tolist() == [3, 6]


def test_comments_are_carried_trimmed_and_undamaged():
    text = b"1 1:1 #  gene a \r\n1 1:1\n1 1:1 #\n1 1:1 # \xff\xc3\xa9\n"
    block = parse(text, with_comments=True)
    assert block.comments is not None
    assert block.comments[:3] == ["gene a", "", ""]
    assert block.comments[3].encode("utf-8", "surrogateescape") == b"\xff\xc3\xa9"


def test_files_that_count_from_zero_need_the_option():
    assert parse(b"1 0:5 1:6\n", zero_based=True).rows.indices.tolist() == [0, 1]


REFUSALS = [
    (b"1 1:nan\n", "1:3", "'1:nan' is not finite"),
    (b"1 1:-Inf\n", "1:3", "not finite"),
    (b"1 1:infinity\n", "1:3", "not finite"),
    (b"nan 1:1\n", "1:1", "not finite"),
    (b"1 1:1\n1 1:1e309\n", "2:3", "too large for a double"),
    (b"1 1:-2e308\n", "1:3", "too large for a double"),
    (b"1 1:1x\n", "1:3", "cannot read '1:1x'"),
    (b"1 a:1\n", "1:3", "cannot read 'a:1'"),
    (b"1 1=1\n", "1:3", "cannot read '1=1'"),
    (b"1 1:1 2\n", "1:7", "cannot read '2'; expected an index:value pair"),
    (b"1 1:1:1\n", "1:3", "cannot read"),
    (b"1 1:0x10\n", "1:3", "cannot read"),
    (b"1 1:1_0\n", "1:3", "cannot read"),
    (b"1 1:1,5\n", "1:3", "cannot read"),
    (b"1 1:1e\n", "1:3", "cannot read"),
    (b"1 1:.\n", "1:3", "cannot read"),
    (b"1 1:--1\n", "1:3", "cannot read"),
    (b"1 1:\n", "1:3", "feature 1 has no value"),
    (b"1 1: 2\n", "1:3", "feature 1 has no value"),
    (b"1 :2\n", "1:3", "cannot read ':2'"),
    (b"1 +1:2\n", "1:3", "cannot read '+1:2'"),
    (b"1 1.5:2\n", "1:3", "cannot read '1.5:2'"),
    (b"spam 1:1\n", "1:1", "cannot read 'spam'; expected a numeric label"),
    (b"1,2 1:1\n", "1:1", "cannot read '1,2'"),
    (b"1.5:1\n", "1:1", "cannot read '1.5:1'"),
    (b"1 0:1\n", "1:3", "index 0 in '0:1'"),
    (b"0:1 1:1\n", "1:1", "index 0"),
    (b"1 -4:1\n", "1:3", "negative index"),
    (b"-4:1\n", "1:1", "negative index"),
    (b"\n\n1 1:1\n1 9:1 4:1\n", "4:7", "feature 4 comes after feature 9; indices must increase"),
    (b"1 4:1 4:1\n", "1:7", "feature 4 appears twice"),
    (b"1 2147483647:1\n", "1:3", "index 2147483647 is too large"),
    (b"1 4294967297:1\n", "1:3", "index 4294967297 is too large"),
    (b"1 99999999999999999999999:1\n", "1:3", "too large"),
    (b"1 1:1\0\n", "1:3", "a NUL byte"),
    (b"\0\n", "1:1", "a NUL byte"),
    (b"1 1:1 # a\0b\n", "1:10", "a NUL byte"),
    (b"# a\0b\n", "1:4", "a NUL byte"),
    (b"1 qid:x 1:1\n", "1:3", "cannot read 'qid:x'; expected one qid:NUMBER"),
    (b"1 qid:1 qid:2 1:1\n", "1:9", "cannot read 'qid:2'"),
    (b"1 1:1 qid:2\n", "1:7", "cannot read 'qid:2'"),
    (b"1 1:1\r2:1\n", "1:3", "cannot read"),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSALS)
def test_what_is_refused_names_file_line_and_column(text, place, message):
    with pytest.raises(DataError) as caught:
        parse(text)
    assert caught.value.message.startswith(f"data.svm:{place}: ")
    assert message in caught.value.message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path, text):
    path = tmp_path / "empty.svm"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"empty\.svm: no rows"):
        read_file(str(path))


def test_a_missing_file_and_a_directory_are_reading_errors(tmp_path):
    for path in (tmp_path / "nowhere.svm", tmp_path):
        with pytest.raises(FileError, match="cannot read") as caught:
            read_file(str(path))
        assert caught.value.exit_code == 5


decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(
        r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True
    ),
    st.builds("{}e{}".format, st.integers(0, 10**19), st.integers(-345, 289)),
    # close to the middle between two doubles, where rounding twice goes wrong
    st.builds(
        lambda bits, exponent: f"{(bits << 12 | 0x800)}e{exponent}",
        st.integers(0, 2**52 - 1),
        st.integers(-27, 27),
    ),
)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(st.lists(decimals, min_size=1, max_size=20))
def test_every_decimal_equals_pythons_float(texts):
    kept = [text for text in texts if abs(float(text)) < np.inf]
    line = " ".join(f"{i}:{text}" for i, text in enumerate(kept, 1))
    values = parse(f"1 {line}\n".encode()).rows.values
    expected = np.array([float(text) for text in kept])
    assert values.tobytes() == expected.tobytes()


def test_halfway_decimals_equal_pythons_float():
    # integers and fractions that lie exactly between two doubles, and their neighbours
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(3000):
        odd = int(rng.integers(2**53, 2**54)) | 1  # needs 54 bits: a tie
        shift = int(rng.integers(-10, 10))
        scaled = odd * 2**shift if shift >= 0 else odd * 5**-shift
        for number in (scaled - 1, scaled, scaled + 1):
            texts.append(f"{number}e{min(shift, 0)}")
    line = " ".join(f"{i}:{text}" for i, text in enumerate(texts, 1))
    values = parse(f"1 {line}\n".encode()).rows.values
    assert values.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_cutting_the_text_at_every_byte_changes_nothing():
    text = b"\xef\xbb\xbf# head\r\n+1 qid:3 1:0.1 20:1e-7 # a b\r\n\n-1\n2:3.25 # x\n5 1:2"
    whole = contents(parse(text, with_comments=True))
    assert len(whole) == 4
    for cut in range(1, len(text)):
        assert contents(parse(text, (cut,), with_comments=True)) == whole


def test_starts_are_where_lines_begin_whatever_the_cuts_and_workers():
    lines = [b"\xef\xbb\xbf# head\n", b"1 1:2\n", b"\n", b"  2 3:4 # x\n", b"3\n", b"5 1:1"]
    begin = np.cumsum([0, *map(len, lines)])
    expected = [int(begin[i]) for i in (1, 3, 4, 5)]
    text = b"".join(lines)
    for cut in range(len(text)):
        for workers in (0, 2):
            assert parse(text, (cut,), workers=workers).starts.tolist() == expected


def test_bad_lines_can_be_passed_over_and_are_all_reported():
    text = b"1 1:1\n2 1:x\n\n3 0:1\nspam\n4 1:1\n5 1:1 1:2\n6"
    for cut in range(len(text)):
        refused = []
        pieces = [text[:cut], text[cut:]]
        blocks = parse_pieces(pieces, "d", on_bad_line=refused.append)
        assert Block.concatenate(list(blocks)).labels.tolist() == [1.0, 4.0, 6.0]
        assert [(one.line, one.column) for one in refused] == [(2, 3), (4, 3), (5, 1), (7, 7)]
        assert refused[1].error("d").message.startswith("d:4:3: index 0")


def test_arrays_grow_for_a_long_row_and_split_for_many_rows(monkeypatch):
    monkeypatch.setattr(svmlight, "ROW_CAPACITY", 3)
    monkeypatch.setattr(svmlight, "NONZERO_CAPACITY", 2)
    monkeypatch.setattr(svmlight, "_scratch", svmlight._Scratch())
    line = " ".join(f"{i}:{i}" for i in range(1, 40))
    text = f"1 {line}\n".encode() + b"2 1:1\n" * 10 + b"3 1:1 2:2\n\n" * 5
    block = parse(text)
    assert block.labels.tolist() == [1.0] + [2.0] * 10 + [3.0] * 5
    assert block.rows.values[:39].tolist() == list(range(1, 40))
    assert block.lines.tolist() == [*range(1, 12), *range(12, 22, 2)]


COMPRESSED = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.compress,
}
TEXT = b"".join(b"%d 1:%d 3:0.125\n" % (i % 2, i) for i in range(1, 3000))


def test_zeros_after_compressed_data_are_padding(tmp_path):
    path = tmp_path / "padded"
    path.write_bytes(gzip.compress(b"1 1:2\n") + bytes(512))
    assert len(read_file(str(path))) == 1
    path.write_bytes(gzip.compress(b"1 1:2\n") + bytes(512) + b"x")
    with pytest.raises(DataError, match="damaged"):
        read_file(str(path))


def test_a_long_token_is_cut_in_messages(tmp_path):
    (tmp_path / "x").write_text("1 1:" + "a" * 90 + "\n")
    with pytest.raises(DataError, match=r"a\.\.\."):
        read_file(str(tmp_path / "x"))


@pytest.mark.parametrize("kind", list(COMPRESSED))
def test_compressed_files_are_known_by_their_first_bytes(tmp_path, kind):
    compress = COMPRESSED[kind]
    path = tmp_path / "data.txt"
    half = TEXT.index(b"\n", len(TEXT) // 2) + 1
    path.write_bytes(compress(TEXT[:half]) + compress(TEXT[half:]))  # two streams, joined
    assert contents(read_file(str(path))) == contents(parse(TEXT))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) * 3 // 4], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"data\.txt: damaged .* data"):
            read_file(str(path))


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz"])  # zstandard frames carry no checksum here
def test_a_flipped_bit_in_compressed_data_is_noticed(tmp_path, kind):
    path = tmp_path / "data.txt"
    whole = bytearray(COMPRESSED[kind](TEXT))
    whole[len(whole) // 2] ^= 0x10
    path.write_bytes(whole)
    with pytest.raises(DataError):
        read_file(str(path))


def test_a_gzip_that_expands_a_thousandfold_streams_in_small_blocks(tmp_path):
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 3_000_000))
    sizes = [len(block) for block in parse_pieces(read_pieces(str(path)), str(path))]
    assert sum(sizes) == 3_000_000
    assert max(sizes) <= svmlight.ROW_CAPACITY


def test_a_named_pipe_is_read_as_it_fills(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    released = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(b"1 1:1\n2 1:2")
            assert released.wait(PATIENCE_SECONDS)
            pipe.write(b"5\n3 1:3\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    labels: list[float] = []
    values: list[float] = []
    for block in parse_pieces(read_pieces(str(path)), str(path)):
        labels += block.labels.tolist()
        values += block.rows.values.tolist()
        released.set()  # the first row came out while the pipe was still open
    writer.join(PATIENCE_SECONDS)
    assert labels == [1.0, 2.0, 3.0]
    assert values == [1.0, 25.0, 3.0]


def test_the_same_matrix_as_scikit_learn(tmp_path):
    rng = np.random.default_rng(3)
    matrix = np.round(rng.standard_normal((200, 30)), 7) * (rng.random((200, 30)) < 0.4)
    path = str(tmp_path / "data.svm")
    dump_svmlight_file(matrix, rng.integers(0, 5, 200), path, zero_based=False)
    theirs, labels = load_svmlight_file(path, zero_based=False)
    ours = read_file(path)
    assert np.array_equal(ours.rows.indptr, theirs.indptr)
    assert np.array_equal(ours.rows.indices - 1, theirs.indices)
    assert np.array_equal(ours.rows.values, theirs.data)
    assert np.array_equal(ours.labels, labels)


@st.composite
def blocks(draw) -> Block:
    n_rows = draw(st.integers(1, 6))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    rows = [sorted(draw(st.sets(st.integers(1, 2**31 - 2), max_size=5))) for _ in range(n_rows)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.array([index for row in rows for index in row], np.int32)
    values = np.array(
        draw(st.lists(finite, min_size=len(indices), max_size=len(indices))), np.float64
    )
    labels = draw(st.lists(finite, min_size=n_rows, max_size=n_rows))
    qids = draw(st.lists(st.integers(-1, 10**17), min_size=n_rows, max_size=n_rows))
    words = st.text(
        st.characters(blacklist_characters="\n\r\0", blacklist_categories=["Cs"]), max_size=8
    ).map(lambda text: text.strip(" \t"))
    comments = draw(st.lists(words, min_size=n_rows, max_size=n_rows))
    return Block(
        Rows(indptr, indices, values),
        np.array(labels),
        np.array(qids, np.int64),
        np.arange(1, n_rows + 1),
        np.zeros(n_rows, np.int64),
        comments,
    )


@settings(max_examples=100, deadline=None)
@given(blocks())
def test_what_is_written_reads_back_exactly(block):
    again = parse(format_block(block), with_comments=True)
    assert again.rows.indptr.tolist() == block.rows.indptr.tolist()
    assert again.rows.indices.tolist() == block.rows.indices.tolist()
    assert again.rows.values.tobytes() == block.rows.values.tobytes()
    assert again.labels.tobytes() == block.labels.tobytes()
    assert again.qids.tolist() == block.qids.tolist()
    assert again.comments == block.comments


def test_a_line_leaves_out_what_there_is_not():
    rows = Rows.from_dense([[0.5, -3.0], [0.0, 0.0], [0.0, 1e-5], [0.0, 0.0], [1e16, 0.0]])
    nan = float("nan")
    block = Block.from_rows(rows, np.array([1.0, -0.0, nan, nan, 2.5]))
    assert format_block(block) == b"1 1:0.5 2:-3\n-0\n2:1e-05\n\n2.5 1:1e+16\n"
    more = replace(
        block, qids=np.array([3, -1, 0, -1, -1]), comments=["a b", "", "", "c", "\udcff"]
    )
    assert format_block(more) == (
        b"1 qid:3 1:0.5 2:-3 # a b\n-0\nqid:0 2:1e-05\n# c\n2.5 1:1e+16 # \xff\n"
    )
    assert format_block(Block.from_rows(Rows.empty())) == b""


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_refused_but_never_crash(text):
    with suppress(DataError):
        assert len(parse(text + b"\n1 1:1\n")) >= 1


@pytest.mark.parametrize(
    "closing", [b"", b" # far from the end of the text, so eight bytes may be read"]
)
def test_numbers_of_any_length_are_read_to_the_last_digit(closing):
    digits = b"98765432101234567890123456789"
    for whole in range(30):
        for fraction in range(0 if whole else 1, 26):
            number = (
                digits[:whole] + b"." * (fraction > 0) + digits[29 - fraction :] * (fraction > 0)
            )
            index = digits[: min(whole, 9)] or b"1"
            (block,) = svmlight.parse_pieces([b"1 %b:%b%b\n" % (index, number, closing)], "x")
            assert block.rows.indices.tolist() == [int(index)]
            assert block.rows.values.tolist() == [float(number)]


def test_decimals_next_to_a_tie_between_two_doubles_are_rounded_once():
    # nineteen digits come so near to a tie that 64 bits of them are the tie itself
    rng = np.random.default_rng(3)
    numbers = []
    for exponent in range(-27, 28):
        for odd in (2 * rng.integers(1 << 52, 1 << 53, 40) + 1).tolist():
            tie = Fraction(odd) * Fraction(2) ** round(64 + (exponent - 1) * math.log2(10) - 54)
            mantissa = round(tie / Fraction(10) ** exponent)
            numbers += [b"%de%d" % (mantissa + step, exponent) for step in (-1, 0, 1)]
    assert {len(number.partition(b"e")[0]) for number in numbers} == {18, 19}
    for number in numbers:
        (block,) = svmlight.parse_pieces([b"1 1:%b\n" % number], "x")
        assert block.rows.values.tolist() == [float(number)], number


LINES = np.frombuffer(b"1 2:3 # a\n-1 1:1\n", np.uint8)
PER_ROW = {
    "ends": np.zeros(4, np.int64),
    "labels": np.zeros(4),
    "qids": np.zeros(4, np.int64),
    "lines": np.zeros(4, np.int64),
    "starts": np.zeros(4, np.int64),
    "comments": np.zeros((4, 2), np.int64),
}
CALLS = {
    "scan": (
        _svmlight.scan,
        {
            "text": LINES,
            "zero_based": False,
            "first_line": 1,
            **PER_ROW,
            "indices": np.zeros(9, np.int32),
            "values": np.zeros(9),
        },
    ),
    "columns": (
        _svmlight.columns,
        {
            "text": LINES,
            "separator": 0,
            "first": 0,
            "second": 0,
            "firsts": np.zeros(4),
            "seconds": np.zeros(4),
        },
    ),
    "cells": (
        _svmlight.cells,
        {
            "text": np.frombuffer(b"1,a\n2,b\n", np.uint8),
            "separator": 44,
            "kinds": np.array([1, 2]),
            "rows": 2,
            "values": np.zeros(2),
            "spans": np.zeros((2, 2), np.int64),
            "odd": np.zeros(6, np.int64),
        },
    ),
    "vectors": (
        _svmlight.vectors,
        {
            "text": np.frombuffer(b"1 2:3\n-1 1:1\n", np.uint8),
            "lines": {},
            "coefficients": np.zeros(2),
            "numbers": np.zeros(2, np.int64),
        },
    ),
}


def numbered(lines, text, size):
    coefficients, numbers = np.zeros(size), np.zeros(size, np.int64)
    status, count = _svmlight.vectors(text, lines, coefficients, numbers)
    return status, coefficients[:count].tolist(), numbers[:count].tolist()


@given(st.lists(st.lists(st.text("01:. ", max_size=40), max_size=40), max_size=5))
def test_lines_that_members_share_are_kept_once_in_order_of_appearance(members):
    lines, known = {}, {}
    for member in members:
        text = "".join(f"1 {line}\n" for line in member).encode()
        expected = [known.setdefault(f"{line}\n".encode(), len(known)) for line in member]
        assert numbered(lines, text, len(member)) == (0, [1.0] * len(member), expected)
    assert list(lines.items()) == list(known.items())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"x 1:2\n", _svmlight.MALFORMED),
        (b" 1 1:2\n", _svmlight.MALFORMED),
        (b"1\t1:2\n", _svmlight.MALFORMED),
        (b"\n", _svmlight.MALFORMED),
        (b"1 1:2 # comment\n", _svmlight.MALFORMED),
        (b"1 qid:1 1:2\n", _svmlight.MALFORMED),
        (b"nan 1:2\n", _svmlight.NOT_FINITE),
        (b"-inf 1:2\n", _svmlight.NOT_FINITE),
        (b"1e999 1:2\n", _svmlight.VALUE_OVERFLOW),
        (b"1 1:2\n1 1:2\n", _svmlight.ROWS_FULL),
    ],
)
def test_what_is_no_support_vector_is_refused(text, status):
    assert numbered({}, text, 1)[0] == status


def test_lines_are_kept_in_a_dict_alone():
    for other in (None, 3, b""):
        with pytest.raises(TypeError, match="lines must be a dict"):
            _svmlight.vectors(b"1\n", other, np.zeros(1), np.zeros(1, np.int64))


@pytest.mark.parametrize("function", ["scan", "columns", "cells", "vectors"])
def test_text_without_a_closing_newline_is_refused(function):
    assert_refused(CALLS, function, "text", b"1 1:1", ValueError, "must end in a newline")


def test_a_column_far_beyond_the_line_is_missed_at_once():
    call, arguments = CALLS["columns"]
    for separator in (0, 9):
        far = {**arguments, "separator": separator, "first": 2**62, "second": 2**63 - 1}
        assert call(*far.values())[0] == _svmlight.NO_VALUE


@given(
    st.lists(st.integers(0, 12), max_size=60), st.integers(1, 7), st.integers(1, 50), st.booleans()
)
def test_text_is_cut_behind_multiples_of_lines_and_nothing_is_lost(lengths, multiple, size, ends):
    text = b"\n".join(b"x" * length for length in lengths) + (b"\n" if ends else b"")
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    cut = list(whole_lines(pieces, multiple))
    whole = b"".join(cut)
    assert whole == text if text.endswith(b"\n") or not text else whole == text + b"\n"
    assert all(part.endswith(b"\n") for part in cut)
    for part in cut[:-1]:
        n_lines = part.count(b"\n")
        assert n_lines % multiple == 0 or n_lines < multiple
