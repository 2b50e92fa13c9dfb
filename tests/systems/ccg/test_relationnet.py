from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from offline_models import installed

from hfcf.core import offline
from hfcf.core.artifacts import save_artifact
from hfcf.engines.wordnet import wordnet
from hfcf.systems.ccg.relationnet import ORDERS, RelationNet, Triple, relation_net
from hfcf.systems.ccg.terms import head_word

pytestmark = pytest.mark.skipif(not installed("wordnet"), reason=f"WordNet is not installed: {offline.INSTALL}")

# A wolf is a canine as a dog is, and a cat a carnivore as a canine is.
NEAR, FAR = Triple("wolf", "bottle", "near"), Triple("cat", "bottle", "far")
UNKNOWN = Triple("xyzzyx", "bottle", "unknown")


@cache
def path(word: str) -> list[str]:
    """A word's hypernyms by their first names, by the plain way up."""
    net, found = wordnet(), []
    synset = net.noun(word)
    while synset is not None:
        found.append(f"{net.names(synset)[0]} {synset.offset}")
        above = net.hypernyms(synset)
        synset = above[0] if above else None
    return found


def counted(rows: Iterable[Triple]) -> dict[tuple[str, str], Counter[str]]:
    """The net, by Algorithm 1's own loops."""
    net: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        for above in path(row.head):
            for other in path(row.tail):
                net.setdefault((above, other), Counter())[row.relation] += 1
    return net


def plainly(net: dict[tuple[str, str], Counter[str]], asked: Triple, ratio: float, order: str) -> list[str]:
    """What `expand` gives, by the same loops."""
    heads, tails = path(asked.head), path(asked.tail)
    hops: dict[int, Counter[str]] = {}
    for hop in range(ceil((len(heads) + len(tails) - 2) * ratio) + 1):
        for i in range(len(heads)):
            if 0 <= hop - i < len(tails):
                hops.setdefault(0 if order == "pooled" else hop, Counter()).update(net.get((heads[i], tails[hop - i]), {}))
    found: dict[str, None] = {}
    for counts in hops.values():
        found |= dict.fromkeys(name for name, _ in counts.most_common())  # of equal counts the first counted
    return [name for name in found if name != asked.relation]


def expand(net: RelationNet, head: str, tail: str, own: str, ratio: float = 0.8, order: str = "lca") -> list[str]:
    """What one pair of words may have."""
    return net.expand_all([Triple(head, tail, own)], ratio, order)[0]


@pytest.fixture(scope="module")
def rows() -> list[Triple]:
    """Random pairs of nouns, many of them several times, some unknown to WordNet."""
    rng = random.Random(1)
    words = ["dog", "wolf", "cat", "oak", "bottle", "jar", "honey", "city", "person", "teacher", "Paris", "river", "idea", "virus"]
    words += ["fever", "engine", "wheel", "ran", "geese", "milk", "xyzzyx", "entity", "abstraction", "storm", "flood", "company"]
    return [Triple(rng.choice(words), rng.choice(words), f"relation {rng.randrange(7)}") for _ in range(120)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.8, 1.0])
def test_it_gives_what_the_paper_s_loops_give(rows: list[Triple], ratio: float, order: str) -> None:
    train, asked = rows[:80], rows[40:]
    net, plain = RelationNet.collect(train), counted(train)
    expected = [plainly(plain, row, ratio, order) for row in asked]
    assert net.expand_all(asked, ratio, order) == expected
    assert [expand(net, *row, ratio, order) for row in asked] == expected, "one at a time"
    assert len({tuple(row) for row in expected}) > 5


def test_the_table_counts_every_pair_of_hypernyms() -> None:
    table = RelationNet.collect([NEAR, FAR, FAR, UNKNOWN]).table
    dog, cat = (set(wordnet().hypernym_path(wordnet().noun(word) or pytest.fail(word))) for word in ("wolf", "cat"))
    bottle = path("bottle")
    assert len(table) == len(dog | cat) * len(bottle)
    entity = int(bottle[-1].split()[1])
    assert table[entity, entity] == {"far": 2, "near": 1}
    assert sum(sum(counts.values()) for counts in table.values()) == len(bottle) * (len(dog) + 2 * len(cat))


def test_what_is_near_comes_before_what_is_frequent() -> None:
    net = RelationNet.collect([FAR, FAR, FAR, NEAR, UNKNOWN])
    assert expand(net, "dog", "bottle", "own") == ["near", "far"]
    assert expand(net, "dog", "bottle", "own", order="pooled") == ["far", "near"]
    assert expand(net, "dog", "bottle", "near") == ["far"]


def test_of_equally_frequent_relations_the_first_counted_comes_first() -> None:
    pairs = [Triple("wolf", "bottle", name) for name in ("b", "c", "a", "c")]
    assert expand(RelationNet.collect(pairs), "dog", "bottle", "own") == ["c", "b", "a"]
    assert expand(RelationNet.collect(pairs[::-1]), "dog", "bottle", "own") == ["c", "a", "b"]
    # A row with a word that WordNet doesn't know is not counted.
    assert expand(RelationNet.collect([Triple("xyzzyx", "bottle", "a"), *pairs]), "dog", "bottle", "own") == ["c", "b", "a"]


def test_of_a_hops_pairs_that_of_the_heads_lowest_hypernym_is_counted_first() -> None:
    # The first row is one step from the tail "bottle" (a jar is a vessel, as a bottle is), the second one from the head "dog".
    head, tail = path("dog")[1], path("bottle")[1]
    assert path("wolf")[1] == head
    assert path("jar")[1] == tail
    wide, near = Triple("wolf", "bottle", "a"), Triple("dog", "jar", "b")
    for rows in ([wide, near], [near, wide]):
        assert expand(RelationNet.collect(rows), "dog", "bottle", "own", 0.15) == ["b", "a"]


def test_the_threshold_is_rounded_up_and_itself_included() -> None:
    net, all_hops = RelationNet.collect([NEAR, FAR]), len(path("dog")) + len(path("bottle")) - 2
    assert expand(net, "dog", "bottle", "own", 0) == []
    assert expand(net, "wolf", "bottle", "own", 0) == ["near"]
    assert expand(net, "dog", "bottle", "own", 0.5 / all_hops) == ["near"]
    assert expand(net, "dog", "bottle", "own", 1 / all_hops) == ["near"]
    assert expand(net, "dog", "bottle", "own", 1.01 / all_hops) == ["near", "far"]
    # Everything meets at the root, which only the whole way reaches.
    assert expand(net, "idea", "idea", "own", 0.9) == []
    assert expand(net, "idea", "idea", "own", 1) == ["near", "far"]


def test_head_and_tail_are_not_the_same() -> None:
    net = RelationNet.collect([NEAR])
    assert expand(net, "bottle", "wolf", "own", 0.5) == []


@pytest.mark.parametrize("empty", [RelationNet([], []), RelationNet.collect([]), RelationNet.collect([UNKNOWN])])
def test_a_net_without_known_words_finds_nothing(empty: RelationNet) -> None:
    assert empty.table == {}
    assert expand(empty, "dog", "bottle", "own") == []


def test_unknown_words_have_no_relation_and_leave_the_others_in_place() -> None:
    net = RelationNet.collect([NEAR])
    asked = [Triple("xyzzyx", "bottle", ""), Triple("dog", "bottle", ""), Triple("dog", "", ""), Triple("naïveté", "dog", "")]
    assert net.expand_all(asked) == [[], ["near"], [], []]
    assert net.expand_all([]) == []


def test_it_comes_back_from_its_file_and_a_lost_file_names_the_cure(rows: list[Triple]) -> None:
    net = RelationNet.collect(rows)
    sha = save_artifact({"relation_net": net.content, "another": 1})
    again = relation_net(sha)
    assert again is relation_net(sha)
    assert again.table == net.table
    assert again.expand_all(rows) == net.expand_all(rows)
    with pytest.raises(FileNotFoundError, match=r"ccg\.fit"):
        relation_net("0" * 64)


@pytest.mark.parametrize(
    ("token", "word"),
    [("Songs", "songs"), ("Singer-Songwriter", "songwriter"), ("one-", ""), ("-", ""), ("U.S.", "u.s."), ("a-b-c", "c")],
)
def test_head_words(token: str, word: str) -> None:
    assert head_word(["the", "old", token, "."], {"start": 1, "end": 3}) == word


def test_every_pair_of_known_words_of_semeval_has_a_new_relation(data: Path) -> None:
    """As section 4.5 says of the threshold 0.8."""
    found = []
    for line in (data / "ccg_semeval" / "semeval" / "original" / "train.tsv").read_text(encoding="utf-8").splitlines():
        relation, text = line.split("\t")
        tokens = text.split()
        ends: list[dict[str, Any]] = [{"end": tokens.index(mark)} for mark in ("</e1>", "</e2>")]
        found.append(Triple(head_word(tokens, ends[0]), head_word(tokens, ends[1]), relation))
    rows = [row for row in found if row.relation != "Other"]
    net, noun = RelationNet.collect(rows), wordnet().noun
    assert (len(found), len(rows), len(net.relations), len(net.table)) == (7200, 5944, 17, 126_352)
    for row, new in zip(rows, net.expand_all(rows), strict=True):
        assert bool(new) == (noun(row.head) is not None and noun(row.tail) is not None), row
        assert row.relation not in new


def test_it_loads_neither_models_nor_datasets() -> None:
    code = "import sys, hfcf.systems.ccg.relationnet; print({'datasets', 'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
