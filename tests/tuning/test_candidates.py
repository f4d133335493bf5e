"""Searches propose the right candidates in the right order, and extend ranges at their edges."""

from __future__ import annotations

import math

import pytest

from resvm_cli.parameters import Params
from resvm_cli.tuning.candidates import SearchOptions, Trial, sampled, search, winner
from resvm_cli.tuning.space import Candidate, Space, parse_axis

PLANE = Space(
    "resvm",
    (
        parse_axis("gamma", "0.01..100:log").limited(1e-6, 1e6),
        parse_axis("c_unl", "0.01..100:log").limited(1e-6, 1e6),
    ),
)


def drive(space, score, **changes):
    """Run a whole search with a scoring function; return the outcome and the rounds."""
    settings = {"search": "random", "trials": 40, "n_models": 27, "max_extensions": 3}
    going = search(space, SearchOptions(base=Params(seed=5), **(settings | changes)))
    rounds = []
    number = 0
    try:
        candidates = next(going)
        while True:
            rounds.append(candidates)
            trials = []
            for candidate in candidates:
                trials.append(Trial(number, candidate, 27, score(candidate)))
                number += 1
            candidates = going.send(trials)
    except StopIteration as ended:
        return ended.value, rounds


def peak(gamma, c_unl):
    def score(one):
        return -abs(math.log(one["gamma"] / gamma)) - 99 * abs(math.log(one["c_unl"] / c_unl))

    return score


def test_an_optimum_inside_needs_one_round():
    outcome, rounds = drive(PLANE, peak(1.0, 1.0))
    assert len(rounds) == 1
    assert len(rounds[0]) == 40
    assert (outcome.extensions, outcome.edges) == (0, ())
    assert outcome.best.score == max(trial.score for trial in outcome.trials)


def test_ranges_are_extended_towards_an_optimum_outside():
    outcome, rounds = drive(PLANE, peak(1.0, 1000.0), trials=200, max_extensions=8)
    assert outcome.extensions >= 1
    assert outcome.best.candidate["c_unl"] > 100
    fresh = [candidate["c_unl"] for candidate in rounds[1]]
    assert max(fresh) > 100
    assert max(fresh) <= 100 * 10 ** (4 / 3) * 1.0001
    assert len(fresh) == 40  # one fifth of the trials
    assert outcome.edges == ()


def test_without_extensions_the_edge_is_only_remarked_on():
    outcome, rounds = drive(PLANE, peak(1.0, 1e9), trials=200, no_extend=True)
    assert len(rounds) == 1
    assert any(
        "`c_unl`: the best value lies on the upper edge" in str(text) for text in outcome.edges
    )


def test_at_its_limit_a_range_is_not_extended():
    space = Space("resvm", (parse_axis("n_pos", "5..20").limited(1.0, 20.0),))
    outcome, rounds = drive(space, lambda one: one["n_pos"], trials=15)
    assert len(rounds) == 1
    assert "cannot be extended" in str(outcome.edges[0])


def test_a_grid_gains_the_whole_next_line():
    space = Space(
        "resvm",
        (parse_axis("gamma", "1,10"), parse_axis("c_unl", "1,2,4").limited(1e-6, 1e6)),
    ).replaced(parse_axis("gamma", "1,10").limited(1e-9, 1e9))
    outcome, rounds = drive(
        space,
        lambda one: -abs(one["c_unl"] - 8) - abs(one["gamma"] - 1) / 99,
        search="grid",
    )
    assert len(rounds[0]) == 6
    added = {(one["gamma"], one["c_unl"]) for one in rounds[1]}
    assert {(1.0, 8.0), (10.0, 8.0)} <= added
    assert outcome.best.candidate["c_unl"] == 8


def test_candidates_that_cannot_be_scored_lose():
    outcome, _ = drive(PLANE, lambda one: None if one["gamma"] > 1 else 1.0)
    assert outcome.best.candidate["gamma"] <= 1
    nothing, _ = drive(PLANE, lambda one: None)
    assert nothing is None


def test_of_equal_scores_the_cheaper_candidate_wins():
    def candidate(n_pos, unl_per_pos, c_unl):
        values = (("n_pos", n_pos), ("unl_per_pos", unl_per_pos), ("c_unl", c_unl))
        return Candidate("resvm", values)

    trials = [
        Trial(0, candidate(20, 5, 1), 50, 0.8),
        Trial(1, candidate(10, 5, 10), 50, 0.8),
        Trial(2, candidate(10, 5, 1), 50, 0.8),
        Trial(3, candidate(10, 5, 1), 50, 0.8),
        Trial(4, candidate(1, 1, 1), 50, 0.7),
    ]
    assert winner(trials).number == 2


def test_sampling_depends_on_the_seed_alone_and_repeats_nothing():
    first = sampled(PLANE, 50, 3, 0)
    assert first == sampled(PLANE, 50, 3, 0)
    assert first[:20] == sampled(PLANE, 20, 3, 0)
    assert len(set(first)) == 50
    assert sampled(PLANE, 5, 4, 0) != first[:5]
    few = Space("resvm", (parse_axis("c_unl", "1,2,3"),))
    assert len(sampled(few, 50, 0, 0)) == 3


@pytest.mark.parametrize("strategy", ["random", "grid"])
def test_a_search_is_deterministic(strategy):
    assert drive(PLANE, peak(0.2, 500.0), search=strategy) == drive(
        PLANE, peak(0.2, 500.0), search=strategy
    )
