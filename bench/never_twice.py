#!/usr/bin/env python3
"""What is computed again of what was there before, and what it costs to bring it back: bench/never_twice.py [NAME …].

Figures are printed with what is promised beside them; nothing is asserted, since machines differ. Times are medians.
"""
import os
import statistics
import sys
import tempfile
import threading
import time
import urllib.request

import paired
from scrape import cpu_seconds
from asking import ask, cached, complete, computed, resident_bytes, told, words

MODEL = paired.model("random-0.5b-q4_0.gguf")
# Its answers are text that tokenizes to what was said, as a client's history needs it; random weights say no such thing.
DEMO = os.path.join(paired.ROOT, "models/demo/chasqui-demo.gguf")
MIB = 1 << 20
TURNS = paired.sized(10, 2)


def plain_turns(server, ask_turn):
    """Ten turns with all of the history each time: the most that was computed beyond what was new."""
    messages = [{"role": "system", "content": "You are Chasqui, and answer briefly."}]
    known, most = 0, 0
    for number in range(TURNS):
        messages.append({"role": "user", "content": ask_turn(number)})
        answer, _ = ask(server, "/v1/chat/completions", {"messages": messages, "max_tokens": 24, "temperature": 0})
        fresh = answer["usage"]["prompt_tokens"] - known
        if number > 0:
            most = max(most, computed(answer) - fresh)
        known = answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
        messages.append(answer["choices"][0]["message"])
    return most, known


def session_turns(server, ask_turn):
    """The same through a session, which sends what is new only."""
    session, _ = ask(server, "/v1/sessions", {"messages": [{"role": "system", "content": "You are Chasqui."}]})
    path = f"/v1/sessions/{session['id']}"
    known, most = 0, 0
    for number in range(TURNS):
        ask(server, path + "/append", {"message": {"role": "user", "content": ask_turn(number)}})
        answer, _ = ask(server, path + "/generate", {"max_tokens": 24, "temperature": 0})
        fresh = answer["usage"]["prompt_tokens"] - known
        if number > 0:
            most = max(most, computed(answer) - fresh)
        known = answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
    return most, known


def turns():
    """Ten turns of a conversation."""
    for name, model, way in ("plain, demo model", DEMO, plain_turns), ("session, demo model", DEMO, session_turns), \
            ("session, 0.5 B", MODEL, session_turns):
        with paired.Server("chasqui", model, 2, 2 * 2048) as server:
            most, known = way(server, lambda number: words(12, f"turn {number}"))
        told(f"{name}: tokens at the end", known)
        told("… computed beyond what was new, most of any turn", most, "≤ 8")


def forks():
    """Four forks of 2,000 words while the session that they are of generates."""
    with paired.Server("chasqui", MODEL, 8, 8 * 4096) as server:
        session, _ = ask(server, "/v1/sessions", {"text": words(paired.sized(2000, 50), "fork")})
        path = f"/v1/sessions/{session['id']}"
        request = urllib.request.Request(
            server.url + path + "/generate",
            b'{"stream":true,"max_tokens":1500,"ignore_eos":true,"temperature":0}', {"Content-Type": "application/json"})
        stream = urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S)
        while not stream.readline().startswith(b"data:"):
            pass  # comments, until the first token is there: then all of the history is computed
        before = server.metric("chasqui_prompt_tokens_total")
        answers = []

        def branch(number):
            fork, _ = ask(server, path + "/fork", {})
            ask(server, f"/v1/sessions/{fork['id']}/append", {"text": " " + words(5, f"branch {number}")})
            answers.append((*ask(server, f"/v1/sessions/{fork['id']}/generate", {"max_tokens": 5}), fork["tokens"]))

        threads = [threading.Thread(target=branch, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        running = server.metric("chasqui_requests_running")
        stream.close()
        fresh = sum(answer["usage"]["prompt_tokens"] - tokens for answer, _, tokens in answers)
        told("tokens of the history", answers[0][2])
        told("tokens that the four forks add", fresh)
        told("prompt tokens computed for them", sum(computed(answer) for answer, _, _ in answers), "≤ those + 8 each")
        told("… as the server counts them", server.metric("chasqui_prompt_tokens_total") - before)
        told("slowest fork, s", max(took for _, took, _ in answers))
        told("the session still generates", running, "1")


class Conversations:
    """Three times the tokens that the context holds; `again` asks all of them for another turn."""

    SLOTS, CELLS = 2, 1024
    WORDS, COUNT = paired.sized((700, 9), (100, 3))

    def __init__(self):
        self.prompts = [words(self.WORDS, f"conversation {number}") for number in range(self.COUNT)]
        self.turn = 0

    def server(self, *flags):
        return paired.Server("chasqui", MODEL, self.SLOTS, self.SLOTS * self.CELLS, *flags)

    def first(self, server):
        """The times of computing each."""
        return [complete(server, prompt, 1)[1] for prompt in self.prompts]

    def again(self, server):
        """Another turn of each: the times, and the smallest share of a prompt that was not computed."""
        self.turn += 1
        times, shares = [], []
        for prompt in self.prompts:
            answer, took = complete(server, f"{prompt} {words(4, f'turn {self.turn}')}", 1)
            times.append(took)
            shares.append(cached(answer) / answer["usage"]["prompt_tokens"])
        return times, min(shares)


def rest_until_written(server, files):
    """An idle server writes what is not on disk; so many files there will be then."""
    end = time.monotonic() + 120
    while server.metric("chasqui_disk_snapshots") < files and time.monotonic() < end:
        time.sleep(0.05)


def told_again(what, conversations, server, computing, promise):
    times, share = conversations.again(server)
    told(f"{what}: median s", statistics.median(times))
    told("… over computing", statistics.median(times) / computing, promise)
    told("… smallest share of a prompt that came back", share, "≥ 0.98")


def tiers():
    """A working set of three times the KV of the context: turn N after it had to go."""
    conversations = Conversations()
    with conversations.server("--cache-ram", "1024") as server:
        before = resident_bytes(server)
        computing = statistics.median(conversations.first(server))
        told("computing a conversation, median s", computing)
        told_again("from host memory", conversations, server, computing, "≤ 0.10")
        held = server.metric("chasqui_snapshot_bytes")
        told("snapshots, MiB", held / MIB, "≤ 1024")
        told("resident memory grew by, MiB", (resident_bytes(server) - before) / MIB, "")
    with tempfile.TemporaryDirectory(prefix="chasqui-bench-") as folder:
        flags = ["--cache-ram", "32", "--cache-disk", folder, "--cache-disk-mib", "1024"]
        with conversations.server(*flags) as server:
            before = resident_bytes(server)
            for number, prompt in enumerate(conversations.prompts):
                complete(server, prompt, 1)
                rest_until_written(server, number + 1)
            told_again("from disk, 32 MiB of memory", conversations, server, computing, "≤ 0.20")
            told("snapshots in memory, MiB", server.metric("chasqui_snapshot_bytes") / MIB, "≤ 24")
            told("resident memory grew by, MiB", (resident_bytes(server) - before) / MIB, "")
        size = sum(entry.stat().st_size for entry in os.scandir(os.path.join(folder, "snapshots")))
        told("files, MiB", size / MIB, "≤ 1024")
        with conversations.server(*flags) as server:
            told_again("after a restart", conversations, server, computing, "≤ 0.20")


def told_copies(server, what, count, run):
    """What `run` costs for each of `count` requests: processor time, and copies of KV between slots and host memory."""
    ways = {"out of slots": "chasqui_kv_save_seconds", "into slots": "chasqui_kv_restore_seconds"}
    before = {name: (server.metric(f"{name}_count"), server.metric(f"{name}_sum")) for name in ways.values()}
    tokens, cpu = server.metric("chasqui_prompt_tokens_total"), cpu_seconds(server.process.pid)
    run()
    told(f"{what}: processor time of one, ms", 1000 * (cpu_seconds(server.process.pid) - cpu) / count)
    told("… prompt tokens computed for one", (server.metric("chasqui_prompt_tokens_total") - tokens) / count)
    for way, name in ways.items():
        steps, seconds = before[name]
        told(f"… steps with copies {way}, of one", (server.metric(f"{name}_count") - steps) / count)
        told(f"… ms of them, of one", 1000 * (server.metric(f"{name}_sum") - seconds) / count)
    told("… MiB of snapshots at the end", server.metric("chasqui_snapshot_bytes") / MIB)


def copies():
    """What is copied for a turn of a conversation, and for short requests that have nothing in common."""
    with paired.Server("chasqui", MODEL, 16, 16 * 2048) as server:
        turn_tokens = paired.sized(12, 2)
        prompt = [words(paired.sized(600, 20), "copies")]
        complete(server, prompt[0], 1)

        def conversation():
            for number in range(TURNS):
                prompt[0] += " " + words(12, f"turn {number}")
                complete(server, prompt[0], turn_tokens)

        told_copies(server, "a turn", TURNS, conversation)
    with paired.Server("chasqui", MODEL, 16, 16 * 2048) as server:
        number = paired.sized(12, 2)

        def unrelated():
            for each in range(number):
                complete(server, f"{each} {words(50, f'short {each}')}", 8)

        told_copies(server, "a short request", number, unrelated)
    with paired.Server("chasqui", MODEL, 4, 4 * 2048) as server:
        prefix = words(paired.sized(600, 20), "prefix")

        def sharing():
            for each in range(8):
                complete(server, f"{prefix} {words(20, f'question {each}')}", 8)

        told_copies(server, "a prompt that shares 600 words, four slots", 8, sharing)


MEASURES = {each.__name__: each for each in (turns, forks, tiers, copies)}

if __name__ == "__main__":
    for wanted in sys.argv[1:] or MEASURES:
        if wanted not in MEASURES:
            sys.exit(f"{wanted}: no such measure; there are {', '.join(MEASURES)}")
        print(f"{wanted}: {MEASURES[wanted].__doc__}", flush=True)
        MEASURES[wanted]()
