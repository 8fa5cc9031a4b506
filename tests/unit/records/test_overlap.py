"""Overlap: what two pools share is found, counted and said without quoting it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leakmeter.core.errors import BadInput
from leakmeter.records.overlap import Overlap, overlap, require_distinct, warning

WORDS = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)


def brute_force(left: list[str], right: list[str], n: int) -> list[float]:
    """From the definition: the share of each right text's n-grams that occur anywhere in left."""
    shares = []
    for text in right:
        split = text.split()
        k = min(n, len(split))
        grams = [tuple(split[i : i + k]) for i in range(len(split) - k + 1)] if k else []
        pool = {tuple(other.split()[i : i + k]) for other in left for i in range(len(other.split()) - k + 1)}
        shares.append(sum(gram in pool for gram in grams) / len(grams) if grams else 0.0)
    return shares


@settings(deadline=None)
@given(left=st.lists(WORDS, max_size=6), right=st.lists(WORDS, max_size=6), n=st.integers(1, 5))
def test_overlap_agrees_with_brute_force(left, right, n):
    found = overlap(left, right, n=n, threshold=0.6)
    shares = brute_force(left, right, n)
    exact = [text in left for text in right]
    near = [share >= 0.6 and not same for share, same in zip(shares, exact, strict=True)]
    assert (found.exact, found.near) == (sum(exact), sum(near))
    assert (found.n_left, found.n_right) == (len(left), len(right))
    assert sorted(w.right for w in found.worst) == [i for i in range(len(right)) if exact[i] or near[i]]
    for left_index, right_index, share in found.worst:
        assert share == pytest.approx(1.0 if exact[right_index] else shares[right_index])
        if exact[right_index]:
            assert left[left_index] == right[right_index]
        else:
            alone = [brute_force([other], [right[right_index]], n)[0] for other in left]
            assert alone[left_index] > 0


def test_the_partner_of_a_near_duplicate_is_the_text_it_was_copied_from():
    left = [f"{i} alpha beta gamma delta epsilon zeta eta theta iota kappa {i}" for i in range(20)]
    left[13] = "the heron landed on the old quay at noon and nobody in the harbour looked up from their work"
    right = ["something else entirely", "today " + left[13] + " again"]
    found = overlap(left, right)
    assert (found.exact, found.near) == (0, 1)
    assert [(w.left, w.right) for w in found.worst] == [(13, 1)]


def test_the_worst_come_first_and_only_ten_of_them():
    texts = [" ".join(f"w{i}x{j}" for j in range(12)) for i in range(15)]
    found = overlap(texts, [*texts[:14], texts[14] + " more"])
    assert (found.exact, found.near) == (14, 1)
    assert len(found.worst) == 10
    assert [w.share for w in found.worst] == sorted((w.share for w in found.worst), reverse=True)


def test_case_and_punctuation_do_not_hide_a_near_duplicate():
    found = overlap(["The parcel waits at the old mill."], ["the PARCEL waits, at the old mill"])
    assert (found.exact, found.near) == (0, 1)


def test_empty_pools_share_nothing():
    assert overlap([], ["a b"]) == Overlap(0, 0, 0, 1, [])
    assert overlap(["a b"], []) == Overlap(0, 0, 1, 0, [])


def test_the_warning_counts_and_quotes_nothing():
    secret = "Ada Quill owes 4512 crowns to the miller of Wexport since the last flood"
    said = warning(overlap([secret, "x y z"], [secret, secret + " indeed", "p q r"]))
    assert said is not None
    assert "3 texts" in said
    assert re.findall(r"first: (\d+); .* them: (\d+)", said) == [("1", "1")]
    assert not any(word in said for word in ("Quill", "4512", "miller"))


def test_pools_without_a_shared_text_give_no_warning():
    assert warning(overlap(["one two three"], ["four five six"])) is None


@pytest.mark.parametrize(
    ("members", "nonmembers", "words"),
    [
        (["a", "b"], ["b", "a "], "are the same texts"),
        (["a", "b", "c"], ["a", "b"], "Every non-member is also a member"),
        (["a"], ["a", "b"], "Every member is also a non-member"),
    ],
)
def test_pools_that_cannot_be_told_apart_are_refused(members, nonmembers, words):
    with pytest.raises(BadInput, match=words):
        require_distinct(members, nonmembers)


def test_pools_that_share_some_texts_are_not_refused():
    require_distinct(["a", "b"], ["b", "c"])
    require_distinct(["a"], [])
