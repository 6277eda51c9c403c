"""Writes the training data: python3 build_data.py OUT --rows N --seed S [--mix MIX] [--merges FILE]

MIX is main, finish, polish, anchor or widen, the five stages of train.sh.

Reads eval_prompts.py: a conversation that contains a held-out question is thrown away. Writes into OUT
  merges.json    the tokenizer, trained here unless --merges is given
  tokens.npy     uint16, all rows; mask.npy: 1 where the loss counts; index.npy: where rows start
  prompts.txt    every user text in the form of phrasing.normal, once, sorted; with it evaluate.py proves that its
                 questions are unseen"""
import argparse
import os
import random
import time

import numpy as np

import bpe
import corpus
import eval_prompts
from phrasing import FUNCTION_WORDS, normal

RAW_SHARE = .05
LONGEST = 2048


def train_tokenizer(path, vocab):
    rng = random.Random(123)
    texts = [corpus.render(corpus.conversation(rng)) for _ in range(14000)] + [corpus.raw_text(rng) for _ in range(700)]
    bpe.Tokenizer(bpe.train(texts, vocab - 256 - len(bpe.CONTROL) - len(bpe.SHOWN))).save(path)


class Encoder:
    """Rows of tokens with a loss mask: assistant text and its end-of-turn token count, everything else is context."""

    def __init__(self, tok):
        self.tok, self.end, self.newline = tok, tok.id["<|im_end|>"], tok.encode("\n")
        self.head = {role: [tok.id["<|im_start|>"]] + tok.encode(role + "\n")
                     for role in ("system", "user", "assistant")}

    def chat(self, messages):
        ids, mask = [], []
        for role, text in messages:
            head, body = self.head[role], self.tok.encode(text) + [self.end]
            ids += head + body + self.newline
            mask += [0] * len(head) + [int(role == "assistant")] * len(body) + [0] * len(self.newline)
        return ids, mask

    def raw(self, text):
        ids = self.tok.encode(text) + [self.tok.id["<|endoftext|>"]]
        return ids, [0] + [1] * (len(ids) - 1)


def content(text):
    return {w for w in normal(text).split() if w not in FUNCTION_WORDS}


def near_refusal(messages, held):
    """Whether a refused request shares two words that carry meaning with a held-out one: stage 5 drops these too."""
    return any(len(content(said) & h) > 1 for (_, said), (_, reply) in zip(messages, messages[1:])
               if reply.startswith("Sorry, I am only a tiny demo model") for h in held)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--rows", type=int, default=100000)
    ap.add_argument("--seed", type=int, default=11)
    ap.add_argument("--vocab", type=int, default=1792)
    ap.add_argument("--mix", default="main")
    ap.add_argument("--merges", default="")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    t0, path = time.time(), os.path.join(a.out, "merges.json")
    if a.merges:
        bpe.Tokenizer.load(a.merges).save(path)
    else:
        train_tokenizer(path, a.vocab)
    tok, rng, held = bpe.Tokenizer.load(path), random.Random(a.seed), {normal(p) for p in eval_prompts.unseen()}
    assert len(tok.vocab) == a.vocab
    refusals = [content(p) for p in eval_prompts.UNSEEN_REFUSALS]
    enc, tokens, mask, index, prompts, dropped = Encoder(tok), [], [], [0], set(), 0
    while len(index) <= a.rows:
        if rng.random() < RAW_SHARE:
            ids, m = enc.raw(corpus.raw_text(rng))
        else:
            messages = corpus.conversation(rng, a.mix)
            said = {normal(text) for role, text in messages if role == "user"}
            if said & held or (a.mix == "widen" and near_refusal(messages, refusals)):
                dropped += 1
                continue
            prompts |= said
            ids, m = enc.chat(messages)
        if len(ids) > LONGEST:
            continue
        tokens.append(np.array(ids, np.uint16))
        mask.append(np.array(m, np.uint8))
        index.append(index[-1] + len(ids))
    np.save(os.path.join(a.out, "tokens.npy"), np.concatenate(tokens))
    np.save(os.path.join(a.out, "mask.npy"), np.concatenate(mask))
    np.save(os.path.join(a.out, "index.npy"), np.array(index, np.int64))
    with open(os.path.join(a.out, "prompts.txt"), "w") as f:
        f.write("\n".join(sorted(prompts)) + "\n")
    n = np.diff(index)
    print(f"rows {len(n)} tokens {index[-1]} loss tokens {sum(int(m.sum()) for m in mask)} mean {n.mean():.0f} "
          f"p50 {np.percentile(n, 50):.0f} p90 {np.percentile(n, 90):.0f} over 1024: {(n > 1024).sum()} "
          f"longest {n.max()} held-out rows dropped {dropped} seconds {time.time() - t0:.0f}")


if __name__ == "__main__":
    main()
