#!/usr/bin/env python3
"""Short and long answers mixed: 60 of 12 tokens, 20 of 40 and 10 of 96, by 16 clients on 32 slots."""
import paired

REQUESTS, CLIENTS, TOKENS = paired.sized((90, 16, "12*60/40*20/96*10"), (9, 4, "2*6/4*2/8*1"))

paired.compare(
    f"{REQUESTS} mixed answers by {CLIENTS} clients on 32 slots",
    (paired.model("random-0.5b-q4_0.gguf"), 32, 32 * 256),
    ["--load", f"clients={CLIENTS},requests={REQUESTS},prompt-words=24,max-tokens={TOKENS}"],
    {
        "ok": ("total", "ok"),
        "tokens/s": ("total", "tokens_per_s"),
        "requests/s": ("total", "requests_per_s"),
        "all done s": ("total", "wall_s"),
        "E2E p50 ms": ("total", "e2e_ms", "p50"),
        "E2E p95 ms": ("total", "e2e_ms", "p95"),
        "TTFT p50 ms": ("total", "ttft_ms", "p50"),
        "TTFT p95 ms": ("total", "ttft_ms", "p95"),
        "ITL p50 ms": ("total", "itl_ms", "p50"),
        "ITL p99 ms": ("total", "itl_ms", "p99"),
        "server CPU s": ("server", "cpu_s"),
    })
