#!/usr/bin/env python3
"""What speculative decoding brings, by how many streams there are: tokens/s without draft tokens, with as many as pay
(the default), and with always so many, in turns. Draft tokens count as accepted with a synthetic rate, so that no pair
of models has to be trained for it; every side does the same work otherwise. With CHANCE=real they count as what they
are.

    bench/speculation.py [STREAMS …]          1 2 4 8 16 32 by default

MODEL (default: the 24 M one), DRAFT (a draft model, or heads in a file of their own; without one draft tokens cost
nothing: they come from what was said before, or are anything where nothing was), CHANCE (0.8, or real), ALWAYS (3 draft
tokens), TOKENS (192), ROUNDS; the others as in bench/paired.py.
"""
import contextlib
import os
import statistics
import sys

import paired

MODEL = paired.model("random-24m-f16.gguf")
DRAFT = paired.from_environment("DRAFT", "")
CHANCE = paired.from_environment("CHANCE", "0.8")
ALWAYS = paired.from_environment("ALWAYS", "3")
TOKENS = int(paired.from_environment("TOKENS", "192"))
CELLS = 512

SIDES = {
    "none": ["--spec-type", "none"],
    "as many as pay": [],
    f"always {ALWAYS}": ["--spec-draft-n-min", ALWAYS, "--spec-draft-n-max", ALWAYS],
}


def tokens_per_second(server, streams, each):
    load = f"clients={streams},prompt-words=16,max-tokens={TOKENS},requests={each * streams}"
    return server.bench(["--load", load])["total"]["tokens_per_s"]


def server_of(side, slots):
    drafter = ["--model-draft", DRAFT] if DRAFT else ["--spec-type", "ngram"]
    chance = [] if CHANCE == "real" else ["--spec-synth-rates", CHANCE]
    flags = SIDES[side] + ([*drafter, *chance] if side != "none" else [])
    return paired.Server("chasqui", MODEL, slots, slots * CELLS, "--no-log-requests", *flags)


def main():
    streams = [int(n) for n in sys.argv[1:]] or [1, 2, 4, 8, 16, 32]
    found = {n: {side: [] for side in SIDES} for n in streams}
    # All at once, and in turns: the speed of a shared machine changes from one minute to the next.
    with contextlib.ExitStack() as stack:
        servers = {side: stack.enter_context(server_of(side, max(streams))) for side in SIDES}
        for n in streams:
            for server in servers.values():
                tokens_per_second(server, n, 4)  # whatever has to be learned is known afterwards
            for number in range(paired.ROUNDS):
                for side in list(SIDES) if number % 2 == 0 else list(SIDES)[::-1]:
                    found[n][side].append(tokens_per_second(servers[side], n, 2))
    rate = "their own rate" if CHANCE == "real" else "a rate of " + CHANCE
    source = "of " + os.path.basename(DRAFT) if DRAFT else "from what was said"
    print(f"draft tokens accepted with {rate}, {source}; medians of "
          f"{paired.ROUNDS} rounds")
    print("| streams | " + " | ".join(SIDES) + " | as many as pay, over the better of the two |")
    print("|---:|" + "---:|" * (len(SIDES) + 1))
    for n in streams:
        medians = [statistics.median(found[n][side]) for side in SIDES]
        better = 0 if medians[0] > medians[2] else 2
        rounds = list(zip(*found[n].values()))
        ratio = statistics.median(tokens[1] / tokens[better] for tokens in rounds)
        print(f"| {n} | " + " | ".join(f"{value:.0f}" for value in medians) + f" | {ratio:.2f} |")
        paired.record(f"{n} streams, with draft tokens", {"tokens/s": {"chasqui": medians[1]}})


main()
