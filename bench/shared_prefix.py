#!/usr/bin/env python3
"""24 requests that share 1,200 words, 8 at a time: how many prompt tokens are computed, and how long it takes beside one
reading of the prefix and all the rest measured alone."""
import concurrent.futures
import time

import paired
from asking import ask, complete, computed, words

REQUESTS, AT_ONCE, SHARED, OWN, TOKENS = paired.sized((24, 8, 1200, 20, 8), (4, 2, 50, 5, 2))


def crowd(server, prompts):
    """All of them, so many at once: answers with their times, and how long all took."""
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda prompt: complete(server, prompt, TOKENS), prompts))
    return answers, time.monotonic() - started


def token_count(server, text):
    return len(ask(server, "/tokenize", {"content": text})[0]["tokens"])


def figures(side, path, seed):
    own = [words(OWN, f"{seed} own {i}") for i in range(REQUESTS)]
    prefix = words(SHARED, f"{seed} shared")
    with paired.Server(side, path, AT_ONCE, AT_ONCE * 2048) as server:
        crowd(server, [words(OWN, f"{seed} warm {i}") for i in range(2)])
        _, once = complete(server, words(SHARED, f"{seed} alone"), 1)  # of other words: nothing of it is known
        _, rest = crowd(server, [words(OWN, f"{seed} rest {i}") for i in range(REQUESTS)])
        answers, wall = crowd(server, [f"{prefix} {each}" for each in own])
        shared = token_count(server, prefix)
    bodies = [answer for answer, _ in answers]
    unique = shared + sum(body["usage"]["prompt_tokens"] - shared for body in bodies)
    return {
        "wall s": wall,
        "prefix once s": once,
        "rest alone s": rest,
        "wall over both": wall / (once + rest),
        "prompt tokens": sum(body["usage"]["prompt_tokens"] for body in bodies),
        "unique": unique,
        "computed": sum(map(computed, bodies)),
        "computed over unique": sum(map(computed, bodies)) / unique,
        "slowest answer s": max(took for _, took in answers),
    }


if __name__ == "__main__":
    model = paired.model("random-0.5b-q4_0.gguf")
    columns = {side: [] for side in paired.sides()}
    for number, order in enumerate(paired.rounds()):
        for side in order:
            columns[side].append(figures(side, model, number))
    rows = list(next(iter(columns.values()))[0])
    paired.print_table(f"{REQUESTS} requests that share {SHARED} words, {AT_ONCE} at a time", columns, rows)
