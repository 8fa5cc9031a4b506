"""N-grams: equal hashes for equal runs of words, in order, within one text."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from leakmeter.text.ngrams import words

TEXTS = st.lists(st.text(alphabet="ab C,.é", max_size=12), max_size=8)


@settings(deadline=None)
@given(texts=TEXTS, n=st.integers(1, 4))
def test_ngrams_agree_with_those_of_the_words_themselves(texts, n):
    hashes, text = words(texts).ngrams(n)
    plain = []
    for i, one in enumerate(texts):
        split = re.findall(r"\w+", one.lower())
        plain += [(i, tuple(split[at : at + n])) for at in range(len(split) - n + 1)]
    assert text.tolist() == [i for i, _ in plain]
    by_hash = dict(zip(hashes.tolist(), (gram for _, gram in plain), strict=True))
    by_gram = {gram: value for value, gram in by_hash.items()}
    assert [by_hash[value] for value in hashes.tolist()] == [gram for _, gram in plain]
    assert len(by_gram) == len(by_hash)


def test_the_order_of_words_counts():
    hashes, _ = words(["a b", "b a"]).ngrams(2)
    assert hashes[0] != hashes[1]


def test_some_texts_can_be_taken_out_of_many():
    many = words(["one two three", "", "four five"])
    hashes, text = many.take(np.array([2, 0])).ngrams(2)
    assert (
        hashes.tolist()
        == np.concatenate([words(["four five"]).ngrams(2)[0], words(["one two three"]).ngrams(2)[0]]).tolist()
    )
    assert text.tolist() == [0, 1, 1]
