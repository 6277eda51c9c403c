"""Turns a checkpoint into a GGUF file of arch "llama": python3 export.py MODEL.pt merges.json OUT.gguf

Reads chat_template.jinja from its own folder. Matrices are written in --type (default Q8_0), norms always in F32. The
output matrix is left out: it is tied to the embeddings."""
import argparse
import os

import torch

import bpe
import gguf
from gguf import BOOL, F32, STRING, U32
from model import EPS

CONTEXT = 2048          # positions that occurred in training
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja")


def metadata(c, tok, name, kind):
    with open(TEMPLATE) as f:
        template = f.read().strip()
    return [
        ("general.architecture", STRING, "llama"), ("general.type", STRING, "model"), ("general.name", STRING, name),
        ("general.license", STRING, "mit"),
        ("general.description", STRING, "Demo model of the Chasqui server, trained from scratch on text of the "
                                        "project"),
        ("general.file_type", U32, gguf.FILE_TYPE[kind]), ("general.quantization_version", U32, 2),
        ("llama.block_count", U32, c["layers"]), ("llama.context_length", U32, CONTEXT),
        ("llama.embedding_length", U32, c["d"]),
        ("llama.feed_forward_length", U32, c["ff"]), ("llama.attention.head_count", U32, c["heads"]),
        ("llama.attention.head_count_kv", U32, c["kv"]),
        ("llama.attention.layer_norm_rms_epsilon", F32, EPS), ("llama.rope.freq_base", F32, c["theta"]),
        ("llama.rope.dimension_count", U32, c["d"] // c["heads"]), ("llama.vocab_size", U32, c["vocab"]),
        ("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "qwen2"),
        ("tokenizer.ggml.tokens", gguf.strings(), tok.vocab),
        ("tokenizer.ggml.token_type", gguf.ints(), tok.types),
        ("tokenizer.ggml.merges", gguf.strings(), [a + " " + b for a, b in tok.merges]),
        ("tokenizer.ggml.eos_token_id", U32, tok.id["<|im_end|>"]),
        ("tokenizer.ggml.bos_token_id", U32, tok.id["<|endoftext|>"]),
        ("tokenizer.ggml.padding_token_id", U32, tok.id["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", BOOL, False),
        ("tokenizer.chat_template", STRING, template)]


def tensors(c, weights, kind):
    """Fused matrices are cut apart again; no permutation, because training rotates pairs just as libllama does."""
    hd, out = c["d"] // c["heads"], []

    def add(name, value):
        out.append((name + ".weight", value.float().numpy(), "F32" if value.dim() == 1 else kind))

    add("token_embd", weights["token_embd.weight"])
    add("output_norm", weights["output_norm.weight"])
    for i in range(c["layers"]):
        at = lambda name: weights[f"blk.{i}.{name}.weight"]
        q, k, v = at("qkv").split([c["heads"] * hd, c["kv"] * hd, c["kv"] * hd])
        gate, up = at("gate_up").split(c["ff"])
        for name, value in (("attn_norm", at("attn_norm")), ("attn_q", q), ("attn_k", k), ("attn_v", v),
                            ("attn_output", at("attn_output")),
                            ("ffn_norm", at("ffn_norm")), ("ffn_gate", gate), ("ffn_up", up),
                            ("ffn_down", at("ffn_down"))):
            add(f"blk.{i}.{name}", value)
    return out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("checkpoint")
    ap.add_argument("merges")
    ap.add_argument("out")
    ap.add_argument("--type", default="Q8_0", choices=list(gguf.FILE_TYPE))
    ap.add_argument("--name", default="chasqui-demo")
    a = ap.parse_args()
    saved, tok = torch.load(a.checkpoint, map_location="cpu"), bpe.Tokenizer.load(a.merges)
    assert len(tok.vocab) == saved["config"]["vocab"]
    gguf.write(a.out, metadata(saved["config"], tok, a.name, a.type),
               tensors(saved["config"], saved["weights"], a.type))
    print(a.out, a.type, os.path.getsize(a.out), "bytes")


if __name__ == "__main__":
    main()
