"""Invented people: nobody's data, hard to guess, the same for a seed, and drawn alike for both pools."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import numpy as np
import pytest

from leakmeter.core.errors import BadInput
from leakmeter.records.overlap import overlap, warning
from leakmeter.records.people import Invented, invent_people
from leakmeter.records.wordlists import listed


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [r.fields["text"] for r in Invented(people=2000, texts_per_person=1, seed=3).read().records]


def test_the_word_lists_are_long_enough_and_without_repetition():
    for name, least in {"first_names": 300, "last_names": 500, "towns": 50, "streets": 50, "companies": 50}.items():
        words = listed(name)
        assert len(words) >= least
        assert len(set(words)) == len(words)
        assert all(word == word.strip() and word for word in words)


def test_people_differ_in_name_and_address_and_are_stable():
    people = invent_people(3000, seed=1)
    assert len({p.name for p in people}) == len({p.email for p in people}) == len({p.id for p in people}) == 3000
    assert invent_people(100, seed=1) == people[:100]
    assert not {p.name for p in invent_people(100, seed=2)} >= {p.name for p in people[:100]}


def test_more_people_than_names_is_an_error_in_words():
    with pytest.raises(BadInput, match=r"names for 3.*Ask for fewer"):
        invent_people(10**7, seed=0)


def test_every_phone_is_fiction_and_every_domain_an_example(texts):  # G5
    for person in invent_people(2000, seed=3):
        assert re.fullmatch(r"[2-9]\d\d-555-01\d\d", person.phone)
        assert re.fullmatch(r"[a-z0-9._]+@([a-z]+\.)?example\.(org|com|net)", person.email)
    together = "\n".join(texts)
    phones = re.findall(r"\d{3}-\d{3}-\d{4}", together)
    assert len(phones) > 300
    assert all(re.fullmatch(r"\d{3}-555-01\d\d", phone) for phone in phones)
    domains = re.findall(r"\S+@(\S+?)[.,]?(?:\s|$)", together)
    assert len(domains) > 300
    assert all(re.fullmatch(r"([a-z]+\.)?example\.(org|com|net)", domain) for domain in domains)
    assert not re.search(
        r"https?:|www\.|\.(gov|edu|net|com|org)(?<!example\.net)(?<!example\.com)(?<!example\.org)\b", together
    )


def test_texts_are_mails_of_50_to_110_words_without_open_slots(texts):
    for text in texts:
        assert re.match(r"Subject: \S.*\n\n.*,\n\n.*\.\n\n.*,\n\S+ \S+\n\S", text)
        assert 50 <= len(text.split()) <= 110
        assert not re.search(r"[{}]", text)


def test_no_two_texts_are_equal_and_none_is_nearly_another(texts):
    assert len(set(texts)) == len(texts)
    assert warning(overlap(texts[:1000], texts[1000:], threshold=0.3)) is None


def test_what_fills_the_slots_is_hard_to_guess(texts):
    """The commonest of a thousand values of each kind is rare."""
    together = "\n".join(texts)
    for pattern, most in {
        r"\$\d+\.\d\d": 0.005,
        r"\b[A-Z]{2}-\d{5}\b": 0.005,
        r"\b\d+:\d\d [ap]m\b": 0.02,
        r"(?:January|February|March|April|May|June|July|August|September|October|November|December) \d+": 0.02,
        r"(?m)^[A-Z][a-z]+ [A-Z][a-z]+$": 0.005,
    }.items():
        found = Counter(re.findall(pattern, together))
        assert found.total() > 1000
        assert found.most_common(1)[0][1] / found.total() < most, pattern


def test_the_texts_of_a_seed_are_the_same_on_every_machine():
    records = Invented(people=50, texts_per_person=2, seed=7, repeats=(1, 2, 4)).read().records
    joined = "\0".join(f"{r.id}\0{r.group}\0{r.fields['text']}\0{r.fields['repeats']}" for r in records)
    assert (
        hashlib.sha256(joined.encode()).hexdigest()
        == "3fdc94242c0b26e725370b4667fcc90969f2561a71a374ef8b6a378e53611b6e"
    )


def test_a_person_is_the_group_of_their_texts_and_more_people_change_none_of_them():
    few, many = (
        Invented(people=n, texts_per_person=3, seed=1, split="train", member=True).read().records for n in (5, 9)
    )
    assert [r.fields["text"] for r in many[:15]] == [r.fields["text"] for r in few]
    assert Counter(r.group for r in many) == Counter({f"person-1-{i}": 3 for i in range(9)})
    assert len({r.id for r in many}) == 27
    assert {(r.split, r.member) for r in many} == {("train", True)}


def test_repeats_are_dealt_out_evenly_and_not_in_order():
    records = Invented(people=100, texts_per_person=1, repeats=(1, 2, 4, 8)).read().records
    dealt = [r.fields["repeats"] for r in records]
    assert Counter(dealt) == Counter({"1": 25, "2": 25, "4": 25, "8": 25})
    assert dealt[:8] != ["1", "2", "4", "8"] * 2


def told_apart(one: list[str], other: list[str]) -> float:
    """How many standard deviations from 0.5 a bag of words fitted on half of two pools comes on the other half.

    Cross-validation would use every pair of texts twice, and its AUC would vary more than that of independent scores.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    half = len(one) // 2
    words = CountVectorizer(binary=True)
    seen = words.fit_transform([*one[:half], *other[:half]])
    fitted = LogisticRegression(C=0.1, solver="liblinear").fit(seen, np.repeat([1, 0], half))
    score = fitted.decision_function(words.transform([*one[half:], *other[half:]]))
    auc = roc_auc_score(np.repeat([1, 0], half), score)
    return float((auc - 0.5) / np.sqrt((2 * half + 1) / (12 * half**2)))


def test_two_draws_cannot_be_told_apart_by_their_words(texts):  # H4
    assert abs(told_apart(texts[:1000], texts[1000:])) < 2.58
    again = [r.fields["text"] for r in Invented(people=2000, texts_per_person=1, seed=11).read().records]
    assert abs(told_apart(texts, again)) < 2.58


def test_a_pool_with_a_line_of_its_own_in_a_tenth_of_the_texts_is_told_apart(texts):
    changed = [text + ("" if i % 10 else "\nSent from the north office") for i, text in enumerate(texts[1000:])]
    assert told_apart(changed, texts[:1000]) > 2.58
