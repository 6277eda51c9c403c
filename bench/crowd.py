#!/usr/bin/env python3
"""500 clients on 64 slots: what the crowd gets, and whether the server still answers those who ask how it is."""
import paired

CLIENTS, SLOTS, TOKENS = paired.sized((500, 64, 32), (20, 4, 8))

paired.compare(
    f"{CLIENTS} clients on {SLOTS} slots",
    (paired.model("random-24m-f16.gguf"), SLOTS, SLOTS * 512),
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
