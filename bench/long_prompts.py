#!/usr/bin/env python3
"""Four people chat while two prompts of 3,000 words arrive. No stream should pause."""
import paired

SECONDS, WORDS, START = paired.sized((45, 3000, 5), (3, 100, 1))
SHORT = f"name=short,clients=4,duration={SECONDS},prompt-words=24,max-tokens=64,priority=interactive"
LONG = f"name=long,clients=2,requests=2,prompt-words={WORDS},max-tokens=8,start={START}"

paired.compare(
    f"4 streams while two prompts of {WORDS:,} words arrive",
    (paired.model("random-0.5b-q4_0.gguf"), 8, 8 * 4608),
    ["--load", SHORT, "--load", LONG, "--goodput", "ttft:1000,itl:200"],
    {
        "short ITL p50 ms": ("short", "itl_ms", "p50"),
        "short ITL p99 ms": ("short", "itl_ms", "p99"),
        "short ITL max ms": ("short", "itl_ms", "max"),
        "short TTFT p50 ms": ("short", "ttft_ms", "p50"),
        "short TTFT max ms": ("short", "ttft_ms", "max"),
        "short tokens/s": ("short", "tokens_per_s"),
        "short goodput share": ("short", "goodput", "share"),
        "short ok": ("short", "ok"),
        "long ok": ("long", "ok"),
        "long TTFT p50 ms": ("long", "ttft_ms", "p50"),
        "long TTFT max ms": ("long", "ttft_ms", "max"),
    })
