"""The network of the demo model: arch "llama" as libllama computes it, written for fast training on a CPU.

RMSNorm, RoPE on the pairs (2i, 2i+1), which is libllama's NORM type, so that nothing is permuted at export,
grouped-query attention, SwiGLU, embeddings tied to the output. The backward passes of RMSNorm and RoPE are written by
hand, and qkv and gate/up are single matrices: on a CPU the element-wise work, not the matrix products, sets the pace.
Reads and writes nothing."""
import torch
import torch.nn as nn
import torch.nn.functional as F

EPS = 1e-5
SHAPES = {"demo": dict(d=256, layers=5, heads=4, kv=2, ff=512, theta=10000.0),
          "draft": dict(d=128, layers=1, heads=2, kv=1, ff=256, theta=10000.0)}


class NormFunction(torch.autograd.Function):
    """RMSNorm with float32 input and an output of the type `dtype`."""

    @staticmethod
    def forward(ctx, x, weight, dtype):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
        y = x * r
        ctx.save_for_backward(y, r, weight)
        return (y * weight).to(dtype)

    @staticmethod
    def backward(ctx, grad):
        y, r, weight = ctx.saved_tensors
        grad = grad.float()
        grad_weight = (grad * y).reshape(-1, grad.shape[-1]).sum(0)
        grad = grad * weight
        return (grad - y * (grad * y).mean(-1, keepdim=True)).mul_(r), grad_weight, None


class RopeFunction(torch.autograd.Function):
    """Rotation of the pairs; its gradient is the rotation by the opposite angle. x: batch, time, head, head size."""

    @staticmethod
    def turn(x, cos, sin):
        y = torch.empty_like(x)
        even, odd = x[..., 0::2], x[..., 1::2]
        y[..., 0::2] = even * cos - odd * sin
        y[..., 1::2] = even * sin + odd * cos
        return y

    @staticmethod
    def forward(ctx, x, cos, sin):
        ctx.save_for_backward(cos, sin)
        return RopeFunction.turn(x, cos, sin)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        return RopeFunction.turn(grad, cos, -sin), None, None


class Norm(nn.Module):
    def __init__(self, d, dtype):
        super().__init__()
        self.weight, self.dtype = nn.Parameter(torch.ones(d)), dtype

    def forward(self, x):
        return NormFunction.apply(x, self.weight, self.dtype)


class Block(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.c, self.hd = c, c["d"] // c["heads"]
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        self.attn_norm, self.ffn_norm = Norm(c["d"], dtype), Norm(c["d"], dtype)
        self.qkv, self.attn_output = linear(c["d"], (c["heads"] + 2 * c["kv"]) * self.hd), linear(c["heads"] * self.hd,
                                                                                                  c["d"])
        self.gate_up, self.ffn_down = linear(c["d"], 2 * c["ff"]), linear(c["ff"], c["d"])

    def forward(self, x, cos, sin, mask):
        B, T, _ = x.shape
        H, K, hd = self.c["heads"], self.c["kv"], self.hd
        g = H // K
        z = self.qkv(self.attn_norm(x)).view(B, T, H + 2 * K, hd)
        turned, v = RopeFunction.apply(z[:, :, :H + K], cos, sin), z[:, :, H + K:].transpose(1, 2)
        q = turned[:, :, :H].transpose(1, 2).reshape(B, K, g * T, hd)      # query head j reads kv head j // g
        k = turned[:, :, H:].transpose(1, 2)
        w = (q * hd ** -.5) @ k.transpose(-1, -2)
        w = w.view(B, K, g, T, T).add_(mask[:T, :T]).softmax(-1).view(B, K, g * T, T)
        y = (w @ v).view(B, H, T, hd).transpose(1, 2).reshape(B, T, -1)
        x = x + self.attn_output(y)
        gate, up = self.gate_up(self.ffn_norm(x)).split(self.c["ff"], -1)
        return x + self.ffn_down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, config, max_len=2048, dtype=torch.bfloat16):
        super().__init__()
        self.c, hd = config, config["d"] // config["heads"]
        self.token_embd = nn.Embedding(config["vocab"], config["d"])
        self.blk = nn.ModuleList(Block(config, dtype) for _ in range(config["layers"]))
        self.output_norm = Norm(config["d"], dtype)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = .02 if "embd" in name else p.shape[1] ** -.5 * (.3 if "output" in name or "down" in name else 1)
                nn.init.normal_(p, 0, scale)
        freq = config["theta"] ** (-torch.arange(0, hd, 2).float() / hd)
        angle = torch.outer(torch.arange(max_len).float(), freq)
        self.register_buffer("cos", angle.cos()[:, None].to(dtype), False)
        self.register_buffer("sin", angle.sin()[:, None].to(dtype), False)
        self.register_buffer("mask", torch.full((max_len, max_len), -1e9).triu(1).to(dtype), False)

    def forward(self, ids, picked):
        """ids: batch x time; picked: flat positions whose logits are wanted (the head is the dearest matrix, the mask
        leaves out most rows)."""
        T, x = ids.shape[1], self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:T], self.sin[:T], self.mask)
        return F.linear(self.output_norm(x.reshape(-1, self.c["d"])[picked]), self.token_embd.weight)
