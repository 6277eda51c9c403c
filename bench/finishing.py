#!/usr/bin/env python3
"""Two streams beside sequences of 256 KiB a token that finish: how long do the streams pause while what was finished is
kept, and without keeping anything (--cache-ram 0)? Four long prompts at a time need the slots of those before them.

    bench/finishing.py

MODEL, ROUNDS and the like: bench/paired.py.
"""
import paired

SECONDS, WORDS = paired.sized((120, 2000), (3, 40))
STREAMS = f"name=streams,clients=2,duration={SECONDS},prompt-words=8,max-tokens=400,priority=interactive"
FINISHING = f"name=finishing,clients=4,duration={SECONDS},prompt-words={WORDS},max-tokens=4"
MODEL = paired.model("random-heavy-kv-q4_0.gguf")
SHAPE = (MODEL, 6, 6 * 4096)
FIGURES = {
    "streams ITL p50 ms": ("streams", "itl_ms", "p50"),
    "streams ITL p99 ms": ("streams", "itl_ms", "p99"),
    "streams ITL max ms": ("streams", "itl_ms", "max"),
    "finished": ("finishing", "ok"),
    "finishing TTFT p50 ms": ("finishing", "ttft_ms", "p50"),
    "streams tokens/s": ("streams", "tokens_per_s"),
}
KINDS = {"kept": (), "not kept": ("--cache-ram", "0")}

columns = {kind: [] for kind in KINDS}
for number in range(paired.ROUNDS):
    for kind in list(KINDS) if number % 2 == 0 else list(KINDS)[::-1]:
        with paired.Server("chasqui", *SHAPE, *KINDS[kind]) as server:
            report = server.bench(["--load", STREAMS, "--load", FINISHING, "--timeout", "600"])
            figures = {row: paired.at(report, path) for row, path in FIGURES.items()}
            figures["slots copied out"] = server.metric("chasqui_cached_slots_copied_out_total")
            columns[kind].append(figures)
paired.print_table(f"two streams beside prompts of {WORDS:,} words that finish", columns, [*FIGURES, "slots copied out"])
