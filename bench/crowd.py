#!/usr/bin/env python3
"""500 clients on 64 slots, or as many as the first argument says: what the crowd gets, none of whom tries again, what it
costs in memory, and whether the server still answers those who ask how it is. Model: the second argument, a file of
build/models, or `demo`."""
import os
import sys

import paired

DEMO = os.path.join(paired.ROOT, "models/demo/chasqui-demo.gguf")

CLIENTS, SLOTS, TOKENS = paired.sized((500, 64, 32), (20, 4, 8))
CLIENTS = int(sys.argv[1]) if len(sys.argv) > 1 else CLIENTS
MODEL = sys.argv[2] if len(sys.argv) > 2 else "random-24m-f16.gguf"

paired.compare(
    f"{CLIENTS} clients on {SLOTS} slots",
    (DEMO if MODEL == "demo" else paired.model(MODEL), SLOTS, SLOTS * 512),
    ["--load", f"clients={CLIENTS},requests={2 * CLIENTS},prompt-words=24,max-tokens={TOKENS}", "--health-probes", "20", "--timeout", "600"],
    {
        "ok": ("total", "ok"),
        "refused": ("total", "refused"),
        "errors": ("total", "errors"),
        "tokens/s": ("total", "tokens_per_s"),
        "TTFT p50 ms": ("total", "ttft_ms", "p50"),
        "TTFT p99 ms": ("total", "ttft_ms", "p99"),
        "ITL p50 ms": ("total", "itl_ms", "p50"),
        "ITL p99 ms": ("total", "itl_ms", "p99"),
        "health p50 ms": ("health", "ms", "p50"),
        "health p99 ms": ("health", "ms", "p99"),
        "health max ms": ("health", "ms", "max"),
        "health errors": ("health", "errors"),
        "server CPU s": ("server", "cpu_s"),
        "server threads": ("server", "threads_most"),
        "server bytes": ("server", "rss_most_bytes"),
    })
