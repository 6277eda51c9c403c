"""Makes chasqui-embed.gguf and chasqui-rerank.gguf, two models of arch "bert": python3 embed_rerank.py OUTDIR

The weights are set by hand, without training. Vocabulary (WPM) and word vectors come from facts.py and corpus.py.
  embed   one block that does nothing and mean pooling: a weighted bag of words, in which words of the same facts lie
          close together
  rerank  block 0 lets every token find its twin elsewhere in "query [SEP] document" (same content, other position;
          without a twin it attends to [CLS]); block 1 averages the weights of the matched words; the score is that
          average, shifted so that no match is negative
Libllama normalises with LayerNorm (mean and variance), so vectors have mean 0 and scalars sit in pairs of opposite
entries."""
import collections
import os
import random
import re
import sys

import numpy as np

import corpus
import gguf
import talk
from facts import FACTS
from gguf import BOOL, F32, STRING, U32
from phrasing import ask

VOCAB, CONTEXT = 2048, 512
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
STOP = set("""a an and are as at be but by can do does for from has have how i if in is it its me my no not of on or so that the then there this to was what
when where which who why with you your one please tell explain about give would could should will may them they we us""".split())
PUNCTUATION = set(".,?!:;'\"()-/`{}[]<>|_=+*&%$#@\\^~")
rng = np.random.default_rng(3)


def lower_words(text):
    return re.findall(r"[^\W\d_]+", text.lower())


def vocabulary():
    """Whole words by how often they occur, single characters for the rest, some endings. The marker of a word start
    is "▁"."""
    r, counts = random.Random(5), collections.Counter()
    for _ in range(15000):
        for _, text in corpus.conversation(r):
            counts.update(lower_words(text))
    for f in FACTS:
        for text in f.questions + f.topics + [f.answer]:
            counts.update({w: 3 for w in lower_words(text)})
    chars = [chr(x) for x in range(33, 127) if not chr(x).isupper()]
    tokens = SPECIAL + ["▁"] + ["▁" + c for c in chars] + chars
    tokens += "s es ed ing er ers ly ion tion ment able ness al ive ous ful ic ity re un in de co st th en on or ar".split()
    words = ["▁" + w for w, n in counts.most_common() if n >= 3 and len(w) > 1]
    return list(dict.fromkeys(tokens + words))[:VOCAB]


def weights_of(tokens):
    """How much a word says: special tokens nothing, function words and punctuation little."""
    out = []
    for t in tokens:
        word = t.strip("▁")
        out.append(0.0 if t in SPECIAL else .05 if word in STOP or word in PUNCTUATION or not word else .25
                   if len(word) == 1 else 1.0)
    return np.array(out, np.float32)


def sphere(n, d):
    """Random directions with mean 0 and length 1."""
    x = rng.standard_normal((n, d))
    x -= x.mean(1, keepdims=True)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def meaning(tokens, dims):
    """Word vectors: words that are used in questions and answers of the same facts get like directions (truncated SVD
    of tf-idf)."""
    r, index = random.Random(6), {t: i for i, t in enumerate(tokens)}
    documents = [[f.answer] * 3 + [ask(r, f) for _ in range(40)] + f.topics for f in FACTS] + [[a] + p for p,
                                                                                               a in talk.SMALL]
    table = np.zeros((len(tokens), len(documents)))
    for j, texts in enumerate(documents):
        for text in texts:
            for w in set(lower_words(text)):
                if "▁" + w in index:
                    table[index["▁" + w], j] += 1 / len(texts)
    spread = (table > 0).sum(1, keepdims=True)
    table = np.sqrt(table) * np.log((1 + len(documents)) / (1 + spread))
    u, s, _ = np.linalg.svd(table, full_matrices=False)
    x = u[:, :dims] * s[:dims]
    x -= x.mean(1, keepdims=True)
    return (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-6)).astype(np.float32), spread[:, 0] > 0


def metadata(name, what, tokens, c, pooling):
    kind = [3 if t in SPECIAL else 1 for t in tokens]
    out = [("general.architecture", STRING, "bert"), ("general.type", STRING, "model"), ("general.name", STRING, name),
           ("general.license", STRING, "mit"),
           ("general.description", STRING, what), ("general.file_type", U32, 7),
           ("general.quantization_version", U32, 2),
           ("bert.block_count", U32, c["layers"]), ("bert.context_length", U32, CONTEXT),
           ("bert.embedding_length", U32, c["d"]),
           ("bert.feed_forward_length", U32, c["ff"]), ("bert.attention.head_count", U32, c["heads"]),
           ("bert.attention.layer_norm_epsilon", F32, 1e-12),
           ("bert.attention.causal", BOOL, False), ("bert.pooling_type", U32, pooling),
           ("tokenizer.ggml.model", STRING, "bert"), ("tokenizer.ggml.pre", STRING, "default"),
           ("tokenizer.ggml.token_type_count", U32, 2),
           ("tokenizer.ggml.tokens", gguf.strings(), tokens), ("tokenizer.ggml.token_type", gguf.ints(), kind),
           ("tokenizer.ggml.bos_token_id", U32, CLS), ("tokenizer.ggml.cls_token_id", U32, CLS),
           ("tokenizer.ggml.seperator_token_id", U32, SEP),
           ("tokenizer.ggml.unknown_token_id", U32, UNK), ("tokenizer.ggml.padding_token_id", U32, PAD),
           ("tokenizer.ggml.mask_token_id", U32, MASK)]
    return out + ([("bert.classifier.output_labels", gguf.strings(), ["LABEL_0"])] if pooling == 4 else [])


def empty(n, c):
    """All tensors of a bert with zero matrices and neutral norms."""
    d, ff, zero, one = c["d"], c["ff"], lambda *s: np.zeros(s, np.float32), lambda *s: np.ones(s, np.float32)
    p = {"token_embd.weight": zero(n, d), "token_types.weight": zero(2, d), "position_embd.weight": zero(CONTEXT, d),
         "token_embd_norm.weight": one(d), "token_embd_norm.bias": zero(d)}
    for i in range(c["layers"]):
        b = f"blk.{i}."
        for name, shape in (("attn_q", (d, d)), ("attn_k", (d, d)), ("attn_v", (d, d)), ("attn_output", (d, d)),
                            ("ffn_up", (ff, d)), ("ffn_down", (d, ff))):
            p[b + name + ".weight"], p[b + name + ".bias"] = zero(*shape), zero(shape[0])
        for name in ("attn_output_norm", "layer_output_norm"):
            p[b + name + ".weight"], p[b + name + ".bias"] = one(d), zero(d)
    return p


def emit(path, keys, p):
    """Large matrices in Q8_0, positions in F16 (they are compared with each other), vectors and the score in F32."""
    def kind(name, x):
        if x.ndim == 1 or name.startswith(("token_types", "cls")):
            return "F32"
        return "F16" if name.startswith("position") else "Q8_0"
    gguf.write(path, keys, [(name, x, kind(name, x)) for name, x in p.items()])
    print(path, os.path.getsize(path), "bytes")


def embed_model(tokens, weight):
    """Words that say little keep the norm that LayerNorm forces on them in two dimensions which the last norm
    deletes."""
    c = dict(d=256, layers=1, heads=4, ff=32)
    d = c["d"]
    p, (topic, known) = empty(len(tokens), c), meaning(tokens, 100)
    e = p["token_embd.weight"]
    own = sphere(len(tokens), d - 2 - 100)
    share = np.where(known, .7, 0.0)[:, None]
    e[:, :100], e[:, 100:d - 2] = topic * np.sqrt(share), own * np.sqrt(1 - share)
    e[:, :d - 2] *= weight[:, None]
    rest = np.sqrt((1 - weight ** 2) / 2)
    e[:, d - 2], e[:, d - 1] = rest, -rest
    p["blk.0.layer_output_norm.weight"][d - 2:] = 0
    return c, p


def rerank_model(tokens, weight):
    c = dict(d=384, layers=2, heads=1, ff=32)
    d, content, places = c["d"], 256, 112
    flag, word, match, total = 370, 372, 374, 376                     # first entries of the +/- pairs
    p = empty(len(tokens), c)
    e, norm, root = p["token_embd.weight"], np.sqrt(d / 2), np.sqrt(d)  # LayerNorm makes every vector sqrt(d) long
    e[:, :content] = sphere(len(tokens), content)
    p["position_embd.weight"][:, content:content + places] = sphere(CONTEXT, places)
    e[:, word], e[:, word + 1] = weight * .5, -weight * .5
    e[CLS] = 0
    e[CLS, flag], e[CLS, flag + 1] = .7, -.7
    q, k, v, o = (p[f"blk.0.attn_{x}.weight"] for x in ("q", "k", "v", "output"))
    sharp = np.sqrt(26.0 * root) / norm
    for i in range(content):
        q[i, i] = k[i, i] = sharp
    for i in range(content, content + places):                          # minus: a token must not find itself
        q[i, i], k[i, i] = -sharp, sharp
    k[flag, flag] = 1.0
    # every token scores about 15 with [CLS], a twin scores 26
    p["blk.0.attn_q.bias"][flag] = 15.0 * root / (.7 * np.sqrt(d / 1.98))
    v[0, word] = 1.0
    o[match, 0], o[match + 1, 0] = 1.0, -1.0
    v, o = p["blk.1.attn_v.weight"], p["blk.1.attn_output.weight"]
    v[0, match] = 1.0
    o[total, 0], o[total + 1, 0] = 4.0, -4.0
    score = np.zeros((1, d), np.float32)
    score[0, total] = 1.0
    p["cls.output.weight"], p["cls.output.bias"] = score, np.array([-4.0], np.float32)
    return c, p


def main():
    out, tokens = sys.argv[1], vocabulary()
    weight = weights_of(tokens)
    c, p = embed_model(tokens, weight)
    emit(os.path.join(out, "chasqui-embed.gguf"), metadata("chasqui-embed",
                                                           "Bag-of-words embedding model for tests of the Chasqui "
                                                           "server", tokens, c, 1), p)
    c, p = rerank_model(tokens, weight)
    emit(os.path.join(out, "chasqui-rerank.gguf"), metadata("chasqui-rerank",
                                                            "Word-match reranker for tests of the Chasqui server",
                                                            tokens, c, 4), p)


if __name__ == "__main__":
    main()
