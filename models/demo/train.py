"""Trains the demo model or its draft: python3 train.py DATA OUT.pt --shape demo --steps N [--init FROM.pt]

Reads tokens.npy, mask.npy and index.npy of build_data.py. Writes OUT.pt (configuration, weights, history) at the end
and every --save steps, so that a run that is cut off still leaves a model. The schedule counts steps, never seconds,
and everything is seeded. Hidden matrices learn by Muon (orthogonalised momentum), embeddings and norms by AdamW;
products run in bfloat16. On a machine shared with others SIGUSR1 switches between one and two threads."""
import argparse
import os
import signal
import time

import numpy as np
import torch
import torch.nn.functional as F

import model

# row lengths after padding: few shapes for oneDNN
BUCKETS = [32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048]
HELD_ROWS = 400                                                            # last rows of the data: validation


def arguments():
    ap = argparse.ArgumentParser()
    ap.add_argument("data")
    ap.add_argument("out")
    ap.add_argument("--shape", default="demo", choices=list(model.SHAPES))
    ap.add_argument("--steps", type=int, required=True)
    ap.add_argument("--stop", type=int, default=0, help="end after this many steps of the schedule, at its rate")
    ap.add_argument("--flat", type=float, default=.4, help="share of steps with a constant rate; then linear to 2 %%")
    ap.add_argument("--tokens", type=int, default=6144, help="padded tokens of a step")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--muon-lr", type=float, default=.02)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--init", default="")
    ap.add_argument("--save", type=int, default=200)
    return ap.parse_args()


class Data:
    def __init__(self, folder):
        self.tokens, self.mask, self.index = (np.load(os.path.join(folder, n + ".npy"))
                                              for n in ("tokens", "mask", "index"))
        self.rows = len(self.index) - 1

    def batches(self, rows, budget, rng=None):
        """Rows of like length until they fill the budget. Without rng: in order, with the leftovers."""
        shelf = {b: [] for b in BUCKETS}
        for i in (rows if rng is None else rng.permutation(rows)):
            n = self.index[i + 1] - self.index[i] - 1
            b = next((x for x in BUCKETS if n <= x), BUCKETS[-1])
            shelf[b].append(i)
            if len(shelf[b]) * b >= budget:
                yield b, shelf[b]
                shelf[b] = []
        if rng is None:
            yield from ((b, r) for b, r in shelf.items() if r)

    def tensors(self, length, rows):
        x, y, keep = np.zeros((len(rows), length), np.int64), np.zeros((len(rows), length),
                                                                       np.int64), np.zeros((len(rows), length), bool)
        for j, i in enumerate(rows):
            s = self.tokens[self.index[i]:self.index[i + 1]].astype(np.int64)
            m = self.mask[self.index[i]:self.index[i + 1]]
            n = min(len(s) - 1, length)
            x[j, :n], y[j, :n], keep[j, :n] = s[:n], s[1:n + 1], m[1:n + 1] > 0
        picked = np.flatnonzero(keep.ravel())
        target, used = y.ravel()[picked], sum(int(min(self.index[i + 1] - self.index[i] - 1, length)) for i in rows)
        pad = -len(picked) % 512                                          # again few shapes; the padding has no loss
        picked, target = np.concatenate([picked, np.zeros(pad, np.int64)]), np.concatenate([target, np.full(pad, -100)])
        return torch.from_numpy(x), torch.from_numpy(picked), torch.from_numpy(target), used


def orthogonal(x):
    """Newton-Schulz iteration on a stack of matrices with rows <= columns."""
    x = x.bfloat16()
    x = x / (x.float().square().sum((1, 2), keepdim=True).sqrt() + 1e-7).bfloat16()
    for _ in range(5):
        b = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * b + 2.0315 * (b @ b)) @ x
    return x.float()


class Muon:
    """Momentum, orthogonalised per logical matrix: q, k, v and gate, up lie in one parameter but are treated apart."""

    def __init__(self, named, c):
        hd = c["d"] // c["heads"]
        self.params = [p for _, p in named]
        self.parts = [[c["heads"] * hd, c["kv"] * hd, c["kv"] * hd] if "qkv" in n else [c["ff"]] * 2 if "gate_up" in n
                      else [p.shape[0]] for n, p in named]
        self.momentum = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, lr):
        pieces = []
        for p, m, parts in zip(self.params, self.momentum, self.parts):
            m.mul_(.95).add_(p.grad)
            pieces += (p.grad + .95 * m).split(parts)
        groups, out = {}, [None] * len(pieces)
        for i, piece in enumerate(pieces):
            groups.setdefault((min(piece.shape), max(piece.shape)), []).append(i)
        for members in groups.values():                                   # equal shapes go through one batched product
            tall = [pieces[i].shape[0] > pieces[i].shape[1] for i in members]
            done = orthogonal(torch.stack([pieces[i].T if t else pieces[i] for i, t in zip(members, tall)]))
            for i, t, u in zip(members, tall, done):
                out[i] = u.T if t else u
        done = iter(out)
        for p, parts in zip(self.params, self.parts):
            update = torch.cat([next(done) for _ in parts])
            p.mul_(1 - lr * .05).add_(update, alpha=-lr * max(1, parts[0] / p.shape[1]) ** .5)


def loss_of(net, data, length, rows):
    x, picked, target, used = data.tensors(length, rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(x, picked)
    return F.cross_entropy(logits.float(), target), logits, target, used


@torch.no_grad()
def validate(net, data):
    loss = count = right = 0
    for length, rows in data.batches(np.arange(data.rows - HELD_ROWS, data.rows), 8192):
        value, logits, target, _ = loss_of(net, data, length, rows)
        n = int((target >= 0).sum())
        loss, count, right = loss + value.item() * n, count + n, right + int((logits.argmax(-1) == target).sum())
    return loss / count, right / count


def rate(step, steps, flat):
    done = step / steps
    return min(1, (step + 1) / 30) * (1 if done < flat else max(.02, (1 - done) / (1 - flat)))


def save(path, net, history):
    torch.save({"config": net.c, "weights": net.state_dict(), "history": history}, path + ".tmp")
    os.replace(path + ".tmp", path)


def main():
    a = arguments()
    torch.manual_seed(a.seed)
    torch.set_num_threads(a.threads)
    signal.signal(signal.SIGUSR1, lambda *_: torch.set_num_threads(3 - torch.get_num_threads()))
    rng, data = np.random.default_rng(a.seed), Data(a.data)
    vocab = int(data.tokens.max()) + 1
    net = model.Model(dict(model.SHAPES[a.shape], vocab=-(-vocab // 32) * 32))
    if a.init:
        net.load_state_dict(torch.load(a.init)["weights"])
    hidden = [(n, p) for n, p in net.named_parameters() if p.dim() == 2 and "embd" not in n]
    others = [p for n, p in net.named_parameters() if not (p.dim() == 2 and "embd" not in n)]
    muon, adam = Muon(hidden, net.c), torch.optim.AdamW(others, lr=a.lr, betas=(.9, .95), weight_decay=0.0)
    print(f"parameters {sum(p.numel() for p in net.parameters())} rows {data.rows} tokens {len(data.tokens)}",
          flush=True)
    t0, step, seen, smooth, history = time.time(), 0, 0, None, []
    last = a.stop or a.steps
    while step < last:
        for length, rows in data.batches(np.arange(data.rows - HELD_ROWS), a.tokens, rng):
            lr = rate(step, a.steps, a.flat)
            loss, _, _, used = loss_of(net, data, length, rows)
            for p in net.parameters():
                p.grad = None
            loss.backward()
            torch.nn.utils.clip_grad_norm_(others, 1.0)
            for group in adam.param_groups:
                group["lr"] = a.lr * lr
            adam.step()
            muon.step(a.muon_lr * lr)
            step, seen = step + 1, seen + used
            smooth = loss.item() if smooth is None else .95 * smooth + .05 * loss.item()
            if step % 50 == 0 or step == 1:
                spent = time.time() - t0
                print(f"step {step} tokens {seen} loss {smooth:.4f} seconds {spent:.0f} tokens/s {seen / spent:.0f}",
                      flush=True)
            if step % a.save == 0 or step == last:
                history.append((step, seen) + validate(net, data))
                print("  held rows: loss %.4f accuracy %.4f" % history[-1][2:], flush=True)
                save(a.out, net, history)
            if step == last:
                break


if __name__ == "__main__":
    main()
