#!/usr/bin/env python3
"""What constraints cost and what forced tokens bring: tokens a second of streams without a grammar, with a schema of eight
fixed keys (which leaves white space free) and with a grammar that leaves none, with and without forced tokens. Answers
are compared by the time of a token, since a model with random weights makes them of any length.

    bench/forced_tokens.py [STREAMS …]          MODEL=build/models/random-0.5b-q4_0.gguf ROUNDS=3
"""
import concurrent.futures
import os
import statistics
import sys

import asking
import paired

STREAMS = [int(word) for word in sys.argv[1:]] or paired.sized([1, 4], [1])
KEYS = ("customer_name", "delivery_address", "order_number", "payment_method", "contact_email", "shipping_date",
        "total_amount", "remarks")
TEXT = {"type": "string", "minLength": 4, "maxLength": 12}
SCHEMA = {"type": "object", "properties": dict.fromkeys(KEYS, TEXT), "required": list(KEYS), "additionalProperties": False}
GRAMMAR = 'root ::= "{' + ', " text ", '.join(f'\\"{key}\\": ' for key in KEYS) + '" text "}"\ntext ::= "\\"" [a-z ]{4,12} "\\""'
SIDES = {"plain": {"ignore_eos": True, "max_tokens": 120}, "schema": {"json_schema": SCHEMA, "max_tokens": 400},
         "grammar": {"grammar": GRAMMAR, "max_tokens": 400}}


def rate(server, streams, fields, first_seed):
    """Tokens a second of one stream, and how many of a hundred tokens were forced."""
    bodies = [{"prompt": asking.words(24, first_seed + i), "temperature": 0.8, "seed": first_seed + i, "cache_prompt": False,
               **fields} for i in range(streams * paired.sized(2, 1))]
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        answers = [answer["timings"] for answer, _ in pool.map(lambda body: asking.ask(server, "/completion", body), bodies)]
    tokens = sum(each["predicted_n"] for each in answers)
    return (1000 * (tokens - len(answers)) / sum(each["predicted_ms"] for each in answers),
            100 * sum(each.get("forced_n", 0) for each in answers) / tokens)


def main():
    path = paired.model("random-0.5b-q4_0.gguf")
    print(f"tokens a second of a stream, and forced ones of a hundred, medians of {paired.ROUNDS} rounds, "
          f"load average {os.getloadavg()[0]:.2f}")
    for streams in STREAMS:
        found = {}
        with paired.Server("chasqui", path, streams, streams * 1024) as forces, \
                paired.Server("chasqui", path, streams, streams * 1024, "--no-forced-tokens") as samples:
            for turn in range(paired.ROUNDS):
                for server, how in (forces, "forced"), (samples, "sampled"):
                    for side, fields in SIDES.items():
                        found.setdefault((side, how), []).append(rate(server, streams, fields, 100 * turn))
        for (side, how), rounds in found.items():
            speed, share = (statistics.median(column) for column in zip(*rounds))
            print(f"  {streams} streams, {side:<8}{how:<8}{speed:>8.2f}{share:>8.1f}", flush=True)
            paired.record(f"Forced tokens, {streams} streams", {f"{side}, {how}": {"chasqui": speed}})


if __name__ == "__main__":
    main()
