"""Byte-level BPE as libllama reads it: tokenizer.ggml.model = "gpt2", tokenizer.ggml.pre = "qwen2".

  train(texts, n)     -> list of n merges
  Tokenizer(merges)   encode, decode, vocab and token types as they go into the GGUF
  Tokenizer.load/save merges.json

The regular expression stands in for the Unicode classes of qwen2 with what `re` has; for the text of this corpus they
agree. Digits are single tokens."""
import collections
import json
import re

PRE = re.compile(r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|(?:[^\r\n\w]|_)?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# never shown, only parsed from the template
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# one token each, shown as text
SHOWN = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>", "</tools>"]
NORMAL_TYPE, CONTROL_TYPE, USER_DEFINED_TYPE = 1, 3, 4


def byte_letters():
    """The usual printable stand-in for every byte."""
    good = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {}, 0
    for b in range(256):
        if b in good:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + extra)
            extra += 1
    return table


LETTER = byte_letters()
BYTE = {letter: b for b, letter in LETTER.items()}


def letters(text):
    return "".join(LETTER[b] for b in text.encode("utf-8"))


def train(texts, n_merges):
    """Greedy pair merging with incremental pair counts. A merge whose string exists already is skipped: libllama
    wants unique tokens."""
    counts, special = collections.Counter(), re.compile("|".join(map(re.escape, CONTROL + SHOWN)))
    for text in texts:
        for part in special.split(text):
            counts.update(PRE.findall(part))
    words = [[list(letters(w)), c] for w, c in counts.items()]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (symbols, c) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += c
            where[pair].add(i)
    merges, known = [], set(LETTER.values())
    while len(merges) < n_merges and pairs:
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))[0]
        if best[0] + best[1] in known:
            del pairs[best]
            continue
        known.add(best[0] + best[1])
        merges.append(best)
        for i in list(where[best]):
            symbols, c = words[i]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= c
                where[pair].discard(i)
            words[i][0] = symbols = merge(symbols, best)
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += c
                where[pair].add(i)
        del pairs[best]
    return merges


def merge(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i:i + 2]) == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class Tokenizer:
    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.vocab = [LETTER[b] for b in range(256)] + [a + b for a, b in self.merges] + SHOWN + CONTROL
        plain = 256 + len(self.merges)
        self.types = [NORMAL_TYPE] * plain + [USER_DEFINED_TYPE] * len(SHOWN) + [CONTROL_TYPE] * len(CONTROL)
        self.id = {t: i for i, t in enumerate(self.vocab)}
        assert len(self.id) == len(self.vocab)
        self.memo = {}
        self.shown = re.compile("(" + "|".join(map(re.escape, SHOWN)) + ")")
        self.all_special = re.compile("(" + "|".join(map(re.escape, CONTROL + SHOWN)) + ")")

    def word(self, word):
        ids = self.memo.get(word)
        if ids is None:
            symbols = list(letters(word))
            while len(symbols) > 1:
                pair = min(zip(symbols, symbols[1:]), key=lambda p: self.rank.get(p, 1 << 30))
                if pair not in self.rank:
                    break
                symbols = merge(symbols, pair)
            ids = self.memo[word] = [self.id[s] for s in symbols]
        return ids

    def encode(self, text, special=False):
        """special: also turn <|im_start|> and the like into tokens, as is done for rendered templates but not for
        user text."""
        out = []
        for part in (self.all_special if special else self.shown).split(text):
            if part in SHOWN or (special and part in CONTROL):
                out.append(self.id[part])
            else:
                for w in PRE.findall(part):
                    out += self.word(w)
        return out

    def decode(self, ids):
        raw = b""
        for i in ids:
            raw += bytes(BYTE[c] for c in self.vocab[i]) if self.types[i] == NORMAL_TYPE else self.vocab[i].encode()
        return raw.decode("utf-8", "replace")

    def save(self, path):
        with open(path, "w") as f:
            json.dump(self.merges, f, ensure_ascii=False)

    @staticmethod
    def load(path):
        with open(path) as f:
            return Tokenizer(json.load(f))
