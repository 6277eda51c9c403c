"""Batched greedy decoding of a GGUF file of arch "llama" with torch, on exactly the weights that the file holds.

  m = Reference("chasqui-demo.gguf")
  m.greedy(prompts, max_tokens) -> [Answer(text, ended, gap, ids)]; prompts are rendered ChatML or raw text

ended: an end-of-generation token came; gap: smallest distance between the best and the second logit on the way.
Reads the file, writes nothing."""
from collections import namedtuple

import torch
import torch.nn.functional as F

import bpe
import gguf

Answer = namedtuple("Answer", "text ended gap ids")


def rotate(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Reference:
    def __init__(self, path):
        keys, tensors = gguf.read(path)
        self.keys, self.w = keys, {k: torch.from_numpy(v.copy()) for k, v in tensors.items()}
        self.tok = bpe.Tokenizer([m.split(" ") for m in keys["tokenizer.ggml.merges"]])
        assert self.tok.vocab == keys["tokenizer.ggml.tokens"]
        self.layers, self.heads, self.kv = (keys["llama." + k]
                                            for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
        self.hd, self.context = keys["llama.rope.dimension_count"], keys["llama.context_length"]
        self.eps = keys["llama.attention.layer_norm_rms_epsilon"]
        freq = keys["llama.rope.freq_base"] ** (-torch.arange(0, self.hd, 2).float() / self.hd)
        angle = torch.outer(torch.arange(self.context).float(), freq)
        self.cos, self.sin = angle.cos(), angle.sin()
        self.ends = {self.tok.id["<|im_end|>"], self.tok.id["<|endoftext|>"]}

    def norm(self, x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.w[name + ".weight"]

    def forward(self, ids, positions, cache):
        """ids, positions: batch x time. The cache takes the new keys and values at their positions. -> hidden
        states."""
        B, T = ids.shape
        H, K, hd, w = self.heads, self.kv, self.hd, self.w
        x = w["token_embd.weight"][ids]
        cos, sin = self.cos[positions][:, :, None], self.sin[positions][:, :, None]
        last = int(positions.max()) + 1
        unseen = torch.arange(last) > positions[:, :, None]                                    # batch x time x cache
        row = torch.arange(B)[:, None].expand(B, T)
        for i in range(self.layers):
            p = f"blk.{i}."
            h = self.norm(x, p + "attn_norm")
            q = rotate(F.linear(h, w[p + "attn_q.weight"]).view(B, T, H, hd), cos, sin)
            k = rotate(F.linear(h, w[p + "attn_k.weight"]).view(B, T, K, hd), cos, sin)
            keys, values = cache[i]
            keys[row, positions], values[row, positions] = k, F.linear(h, w[p + "attn_v.weight"]).view(B, T, K, hd)
            # query head j reads kv head j // (H / K)
            q = q.view(B, T, K, H // K, hd).permute(0, 2, 3, 1, 4).reshape(B, K, -1, hd)
            score = (q @ keys[:, :last].permute(0, 2, 3, 1)).view(B, K, H // K, T, last) * hd ** -.5
            score = score.masked_fill(unseen[:, None, None], -1e30).softmax(-1).view(B, K, -1, last)
            y = (score @ values[:, :last].transpose(1, 2)).view(B, H, T, hd).transpose(1, 2).reshape(B, T, -1)
            x = x + F.linear(y, w[p + "attn_output.weight"])
            h = self.norm(x, p + "ffn_norm")
            x = x + F.linear(F.silu(F.linear(h, w[p + "ffn_gate.weight"])) * F.linear(h, w[p + "ffn_up.weight"]),
                             w[p + "ffn_down.weight"])
        return x

    def logits(self, x):
        return F.linear(self.norm(x, "output_norm"), self.w["token_embd.weight"])

    @torch.no_grad()
    def greedy(self, prompts, max_tokens=300, batch=48):
        ids = [self.tok.encode(p, special=True) for p in prompts]
        order, answers = sorted(range(len(ids)), key=lambda i: len(ids[i])), [None] * len(ids)
        for at in range(0, len(order), batch):
            part = order[at:at + batch]
            for i, answer in zip(part, self.run([ids[i] for i in part], max_tokens)):
                answers[i] = answer
        return answers

    def run(self, rows, max_tokens):
        B, length = len(rows), torch.tensor([len(r) for r in rows])
        T = int(length.max())
        room = min(self.context, T + max_tokens)
        cache = [(torch.zeros(B, room, self.kv, self.hd), torch.zeros(B, room, self.kv, self.hd))
                 for _ in range(self.layers)]
        x = self.forward(torch.tensor([r + [0] * (T - len(r)) for r in rows]), torch.arange(T)[None].expand(B, T),
                         cache)
        x = x[torch.arange(B), length - 1]
        out, gap, ended, live = [[] for _ in rows], [1e9] * B, [False] * B, list(range(B))
        while live:
            best = self.logits(x).topk(2)
            token, difference = best.indices[:, 0].tolist(), (best.values[:, 0] - best.values[:, 1]).tolist()
            stay = []
            for j, b in enumerate(live):
                gap[b] = min(gap[b], difference[j])
                if token[j] in self.ends:
                    ended[b] = True
                    continue
                out[b].append(token[j])
                if len(out[b]) < max_tokens and len(rows[b]) + len(out[b]) < room:
                    stay.append(j)
            if len(stay) < len(live):                                       # rows that are done leave the batch
                cache = [(k[stay], v[stay]) for k, v in cache]
                live = [live[j] for j in stay]
            if live:
                at = torch.tensor([len(rows[b]) + len(out[b]) - 1 for b in live])
                x = self.forward(torch.tensor([[out[b][-1]] for b in live]), at[:, None], cache)[:, 0]
        return [Answer(self.tok.decode(o), ended[b], gap[b], o) for b, o in enumerate(out)]
