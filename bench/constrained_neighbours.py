#!/usr/bin/env python3
"""What constraints of others cost a stream: its gaps alone, beside eight clients whose answers keep to what is hard to
keep to (large enums, many alternatives, patterns, recursion), and beside eight whose answers keep to nothing; in turns.
Each of the latter's answers is as long as one of those before, so that as many prompts are read, and as rarely
together: answers of one length end together, and their clients' next prompts are one step instead of eight. Every token
that the model likes is refused by the constraints, since it is drawn as if all were equally likely.

    bench/constrained_neighbours.py          MODEL=build/models/random-0.5b-q4_0.gguf ROUNDS=3
"""
import json
import os
import statistics
import threading
import time
import urllib.request

import asking
import paired

NEIGHBOURS = 8
TOKENS = paired.sized(120, 10)
WILD = {"temperature": 50, "top_k": 0, "top_p": 1, "min_p": 0, "max_tokens": paired.sized(200, 10)}
VALUES = [f"value {i * 7919 % 100_003} of the list" for i in range(1000)]
PARTS = {"type": "array", "items": {"$ref": "#/$defs/tree"}}
TREE = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}, "parts": PARTS},
        "required": ["name", "parts"], "additionalProperties": False}
HOSTILE = (
    {"json_schema": {"type": "object", "properties": {"k": {"enum": VALUES}}, "required": ["k"]}},
    {"grammar": f"root ::= ({' | '.join(['[ऀ-ॿ]'] * 1300)}){{1,12}}"},
    {"json_schema": {"type": "string", "pattern": "^([a-f0-9]{2,40}-){1,20}[A-Z]{3,90}$"}},
    {"json_schema": {"$defs": {"tree": TREE}, "$ref": "#/$defs/tree"}},
)


class Neighbours:
    """Eight clients that ask again and again while a `with` block runs."""

    def __init__(self, server, lengths=None):
        self.server, self.over, self.answers = server, threading.Event(), 0
        self.cut = 0  # answers that ended before their grammar did, and before max_tokens
        self.as_long_as = lengths  # None: constrained
        self.lengths = [[] for _ in range(NEIGHBOURS)]
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(NEIGHBOURS)]

    def ask(self, number):
        seed = number
        while not self.over.is_set():
            fields = HOSTILE[number % len(HOSTILE)]
            if self.as_long_as:
                lengths = self.as_long_as[number]
                fields = {"ignore_eos": True, "max_tokens": lengths[len(self.lengths[number]) % len(lengths)]}
            answer, _ = asking.ask(self.server, "/v1/chat/completions",
                                   {"messages": [{"role": "user", "content": "go on"}], **WILD, **fields, "seed": seed})
            choice, used = answer["choices"][0], answer["usage"]["completion_tokens"]
            self.cut += not self.as_long_as and choice["finish_reason"] == "length" and used < WILD["max_tokens"]
            self.answers += 1
            self.lengths[number].append(max(1, used))
            seed += NEIGHBOURS

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.over.set()
        for thread in self.threads:
            thread.join()


def gaps(server):
    """Milliseconds between the tokens of a stream, ascending."""
    body = {"messages": [{"role": "user", "content": "a story"}], "stream": True, "temperature": 0, "ignore_eos": True,
            "max_tokens": TOKENS, "class": "interactive"}
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    times = []
    with urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S) as answer:
        for line in answer:
            if b'"content":"' in line:
                times.append(time.monotonic())
    return sorted(1000 * (b - a) for a, b in zip(times, times[1:]))


def keep(found, what, times, answers=0, cut=0):
    found.setdefault(what, []).append((times[len(times) // 2], times[len(times) * 99 // 100], answers, cut))


def main():
    path = paired.model("random-0.5b-q4_0.gguf")
    print(f"a stream beside {NEIGHBOURS} others: ms between its tokens, medians of {paired.ROUNDS} rounds, "
          f"load average {os.getloadavg()[0]:.2f}")
    found = {}
    with paired.Server("chasqui", path, NEIGHBOURS + 1, (NEIGHBOURS + 1) * 1024) as server:
        for _ in range(paired.ROUNDS):
            lengths = None
            keep(found, "alone", gaps(server))
            for what in "constrained", "plain":
                with Neighbours(server, lengths) as neighbours:
                    times = gaps(server)
                lengths = neighbours.lengths
                keep(found, what, times, neighbours.answers, neighbours.cut)
    for what, rounds in found.items():
        p50, p99, answers, cut = (statistics.median(column) for column in zip(*rounds))
        print(f"  {what:<12} p50 {p50:>8.1f}  p99 {p99:>8.1f}  {answers:.0f} answers of others, {cut:.0f} of them cut",
              flush=True)
        paired.record("A stream beside eight constrained ones",
                      {f"{what}, ITL p50 ms": {"chasqui": p50}, f"{what}, ITL p99 ms": {"chasqui": p99}})


if __name__ == "__main__":
    main()
