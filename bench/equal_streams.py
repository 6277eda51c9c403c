#!/usr/bin/env python3
"""Equal streams, beside what libllama does alone with the same rows in the same round.

    bench/equal_streams.py [STREAMS …]          by default 32 and 64

TOKENS: of each answer (48). Settings: those of bench/paired.py.
"""
import os
import sys

import paired

STREAMS = [int(word) for word in sys.argv[1:]] or paired.sized([32, 64], [2])
TOKENS = int(paired.from_environment("TOKENS", paired.sized("48", "4")))
WORDS = 24
CELLS = 208 + TOKENS  # of each stream


def figures(report):
    total = report["total"]
    return {
        "tokens/s": total["tokens_per_s"],
        "ITL p50 ms": total["itl_ms"]["p50"],
        "ITL p99 ms": total["itl_ms"]["p99"],
        "TTFT p50 ms": total["ttft_ms"]["p50"],
        "TTFT max ms": total["ttft_ms"]["max"],
        "server CPU s": report["server"]["cpu_s"],
    }


def compare(streams):
    path = paired.model("random-0.5b-q4_0.gguf")
    flags = ["--load", f"clients={streams},requests={streams},prompt-words={WORDS},max-tokens={TOKENS}"]
    columns = {side: [] for side in [*paired.sides(), "raw_decode"]}
    for order in paired.rounds():
        prompt = WORDS
        for side in order:
            report = paired.measure(side, (path, streams, streams * CELLS), flags)
            columns[side].append(figures(report))
            prompt = max(1, report["total"]["prompt_tokens"] // report["total"]["ok"])
        raw = paired.raw_decode(path, streams, prompt, TOKENS)
        columns["raw_decode"].append({"tokens/s": raw["total_tokens_per_s"], "ITL p50 ms": raw["step_ms_median"]})
        for side in order:
            last = columns[side][-1]
            last["share of raw"] = last["tokens/s"] / raw["total_tokens_per_s"]
    rows = ["tokens/s", "share of raw", "ITL p50 ms", "ITL p99 ms", "TTFT p50 ms", "TTFT max ms", "server CPU s"]
    beside = f", core {paired.NEIGHBOUR} busy" if paired.NEIGHBOUR else ""
    name = os.path.basename(path).removesuffix(".gguf")
    paired.print_table(f"{streams} equal streams of {TOKENS} tokens, {name}{beside}", columns, rows)


for count in STREAMS:
    compare(count)
