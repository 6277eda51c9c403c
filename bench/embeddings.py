#!/usr/bin/env python3
"""Vectors of many texts from several clients: how fast, and whether both servers say the same.

    bench/embeddings.py

TEXTS (2000) of WORDS (90) words, from CLIENTS (16), each of which sends one text at a time. With STREAMS=n Chasqui also
serves so many streams meanwhile, and their gaps are told. Settings: those of bench/paired.py.
"""
import concurrent.futures
import json
import statistics
import threading
import time
import urllib.request

import asking
import paired

TEXTS = int(paired.from_environment("TEXTS", paired.sized("2000", "20")))
WORDS = int(paired.from_environment("WORDS", paired.sized("90", "20")))
CLIENTS = int(paired.from_environment("CLIENTS", "16"))
STREAMS = int(paired.from_environment("STREAMS", "0"))
SHAPE = (paired.model("random-24m-f16.gguf"), 8, 8 * 2048)
FLAGS = {"chasqui": ["--pooling", "mean"], "llama-server": ["--pooling", "mean", "--embeddings"]}


def embed(server, text):
    answer, took = asking.ask(server, "/v1/embeddings", {"input": text})
    return answer["data"][0]["embedding"], answer["usage"]["prompt_tokens"], took


def follow(server, ended, gaps):
    """One stream after the other, until `ended`."""
    body = {"prompt": asking.words(16, 7), "max_tokens": 2000, "temperature": 0, "ignore_eos": True, "stream": True}
    while not ended.is_set():
        request = urllib.request.Request(server.url + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=paired.RUN_LIMIT_S) as answer:
            last = None
            for line in answer:
                if not line.startswith(b"data: {"):
                    continue
                now = time.monotonic()
                if last is not None:
                    gaps.append(1000 * (now - last))
                last = now
                if ended.is_set():
                    return


def percentile(values, part):
    return sorted(values)[int(part * (len(values) - 1))] if values else None


def run(side, texts):
    gaps, ended = [], threading.Event()
    streams = STREAMS if side == "chasqui" else 0
    with paired.Server(side, *SHAPE, *FLAGS[side]) as server:
        embed(server, texts[0])
        followers = [threading.Thread(target=follow, args=(server, ended, gaps)) for _ in range(streams)]
        for follower in followers:
            follower.start()
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(clients.map(lambda text: embed(server, text), texts))
        took = time.monotonic() - begin
        ended.set()
        for follower in followers:
            follower.join()
    figures = {"tokens/s": sum(tokens for _, tokens, _ in answers) / took,
               "text p50 ms": 1000 * statistics.median(each for _, _, each in answers),
               "text p99 ms": 1000 * percentile([each for _, _, each in answers], 0.99)}
    if streams:
        figures |= {"streams' gap p50 ms": percentile(gaps, 0.5), "streams' gap p99 ms": percentile(gaps, 0.99)}
    return figures, [vector for vector, _, _ in answers]


def main():
    texts = [asking.words(WORDS, seed) for seed in range(TEXTS)]
    columns = {side: [] for side in paired.sides()}
    vectors = {}
    for order in paired.rounds():
        for side in order:
            figures, vectors[side] = run(side, texts)
            columns[side].append(figures)
    if len(vectors) == 2:
        apart = max(abs(a - b) for ours, theirs in zip(*vectors.values()) for a, b in zip(ours, theirs))
        columns["chasqui"][-1]["farthest number apart"] = apart
    beside = f" beside {STREAMS} streams" if STREAMS else ""
    rows = ["tokens/s", "text p50 ms", "text p99 ms", "streams' gap p50 ms", "streams' gap p99 ms",
            "farthest number apart"]
    rows = [row for row in rows if any(row in figures for side in columns.values() for figures in side)]
    paired.print_table(f"{TEXTS} texts of {WORDS} words from {CLIENTS} clients{beside}", columns, rows)


if __name__ == "__main__":
    main()
