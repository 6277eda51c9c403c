#!/usr/bin/env python3
"""What --record costs: the processor time of a server with it over that of one without, under the same load.

    bench/record_cost.py [--rounds 9] [--requests 400] [--clients 8] [-- MORE FLAGS OF serve]

Each round is a pair of runs, one after the other, and the next round turns their order round, so that a machine that
becomes slower favours neither side. The cost of a pair is the ratio of its two times, less 1. Reported are the median
of the costs and how certain it is: the interval that has the true median with a probability of 90 % or more, whatever
the costs are distributed like. Its ends are costs themselves: each cost lies below the true median with a probability
of one half, so that the k-th lowest lies above it only where less than k of all do not, which the binomial
distribution has a figure for; k is the largest one for which that is 5 % or less, and the upper end is the k-th
highest. Five rounds are the fewest that have such an interval (the lowest and the highest cost); with fewer nothing is
decided.

Exit status 1: the median is above 1 %, and so is the lower end. Where the lower end is not, the excess may be noise,
which is said, and the exit status is 0: more rounds tell. Only processor time counts, so other work on the machine
makes the interval wider and moves neither side; a quiet machine needs fewer rounds.

CHASQUI, THREADS, OUR_ARGS and BENCH_RECORD are as in bench/paired.py; without THREADS there is one compute thread, since
several wait for each other spinning.
"""
import argparse
import concurrent.futures
import json
import math
import os
import statistics
import sys
import tempfile
import time
import urllib.request

import paired

COST_MOST = 0.01
DOUBT_MOST = 0.05  # that an end of the interval is on the wrong side of the true median
WARM_UP = 16  # requests


def ask(url, number):
    body = {
        "messages": [{"role": "user", "content": f"Question {number % 7}: " + "What is a slot? " * (number % 40)}],
        "max_tokens": 16 + 8 * (number % 8), "temperature": 0, "ignore_eos": True, "seed": number,
    }
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["usage"]["completion_tokens"]


def processor_seconds(pid):
    """Of all threads of a process, in nanoseconds rather than ticks: Linux has a clock for each process."""
    return time.clock_gettime(~pid << 3 | 2)


def run(flags, requests, clients):
    threads = [] if paired.THREADS else ["-t", "1"]
    with paired.Server("chasqui", "", 8, None, *threads, *flags) as server:
        warm_up = sum(ask(server.url, number) for number in range(WARM_UP))
        before = processor_seconds(server.process.pid)
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            tokens = warm_up + sum(pool.map(lambda number: ask(server.url, number), range(requests)))
        return processor_seconds(server.process.pid) - before, tokens


def interval(costs):
    """(lower end, upper end), as above; None: there are too few."""
    count = len(costs)
    place = -1
    while sum(math.comb(count, below) for below in range(place + 2)) <= DOUBT_MOST * 2 ** count:
        place += 1
    return None if place < 0 else (sorted(costs)[place], sorted(costs)[count - 1 - place])


def judge(costs):
    """(what is to be said of the median, whether it is above the bound)"""
    middle, ends = statistics.median(costs), interval(costs)
    text = f"--record costs {middle:+.2%} of processor time, median of {len(costs)} pairs"
    if ends is None:
        return f"{text} ({min(costs):+.2%} to {max(costs):+.2%}): too few to decide", False
    text += f", {ends[0]:+.2%} to {ends[1]:+.2%}"
    if middle <= COST_MOST:
        return f"{text}: at most {COST_MOST:.0%}", False
    if ends[0] <= COST_MOST:
        return f"{text}: above {COST_MOST:.0%}, which may be noise; more rounds tell", False
    return f"{text}: ABOVE {COST_MOST:.0%}", True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("flags", nargs="*", help="more flags of serve, after --")
    options = parser.parse_args()
    if min(options.rounds, options.requests, options.clients) < 1:
        parser.error("--rounds, --requests and --clients are 1 or more")
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "record")
        sides = {"without": [], "with": ["--record", path]}
        for turn in range(options.rounds):
            used = {}
            for name in list(sides) if turn % 2 == 0 else list(sides)[::-1]:
                used[name], tokens = run([*sides[name], *options.flags], options.requests, options.clients)
            costs.append(used["with"] / used["without"] - 1)
            print(f"round {turn + 1} of {options.rounds}, load average {os.getloadavg()[0]:.2f}: "
                  f"{used['without']:.3f} s without, {used['with']:.3f} s with, {costs[-1]:+.2%}; {tokens} tokens",
                  file=sys.stderr, flush=True)
        size = os.path.getsize(path)
    text, above = judge(costs)
    print(f"{text}; the file has {size / tokens:.1f} bytes a token")
    paired.record("What --record costs", {"processor time, %": {"chasqui": 100 * statistics.median(costs)}})
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
