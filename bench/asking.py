"""What the scripts share that ask one thing after the other and look at each answer: words, requests, figures."""
import json
import random
import time
import urllib.request

import paired

NOUNS = ("sun", "moon", "river", "stone", "relay", "runner", "house", "tree", "bird", "road", "water", "fire", "hand",
         "night", "day", "year", "door", "book", "voice", "light", "wind", "rain", "snow", "city", "field", "horse")


def words(count, seed):
    """Of a vocabulary's most common ones, one token each in most; the same for the same seed."""
    dice = random.Random(seed)
    return " ".join(dice.choice(NOUNS) for _ in range(count))


def ask(server, path, body):
    """The answer to a POST, and how many seconds it took."""
    started = time.monotonic()
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S) as answer:
        return json.load(answer), time.monotonic() - started


def complete(server, prompt, tokens, **fields):
    return ask(server, "/v1/completions", {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                                           **fields})


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def computed(answer):
    """Tokens of the prompt that were not there before."""
    return answer["usage"]["prompt_tokens"] - cached(answer)


_before = [""]


def told(what, value, promise=""):
    """A figure whose name begins with "…" is of what the one before it was of."""
    if not what.startswith("…"):
        _before[0] = what.split(":")[0]
    paired.record("What is computed again", {what if not what.startswith("…") else f"{_before[0]} {what}": {"chasqui": value}})
    print(f"  {what:<62}{paired.shown(value):>10}   {promise}", flush=True)


def resident_bytes(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
