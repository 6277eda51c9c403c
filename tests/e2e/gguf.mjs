// Model files for tests: the demo model with more numbers in its head. A GGUF file is a head of keys with values, the
// list of its tensors, and from the next multiple of 32 bytes on what is in them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const models = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo');

const alignment = 32;
const uint32 = 4; // the number that GGUF has for this type
const sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]; // by type; 8: a string, 9: an array

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(size) {
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }

  u32 = () => this.take(4).readUInt32LE();
  u64 = () => Number(this.take(8).readBigUInt64LE());
  text = () => this.take(this.u64()).toString();

  value(type) {
    if (type === 8) return this.text();
    if (type !== 9) return this.take(sizes[type]);
    const of = this.u32();
    return Array.from({ length: this.u64() }, () => this.value(of));
  }
}

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

// Where things are in the head of a model: `keys` by name with their values, and the tensors' descriptions.
export function readHead(bytes) {
  const reader = new Reader(bytes);
  assert.equal(reader.take(4).toString(), 'GGUF');
  const version = reader.u32();
  const tensors = reader.u64();
  const count = reader.u64();
  const head = { version, tensorCount: tensors, keyCount: count, keysAt: reader.at, keys: {}, values: {}, tensors: {} };
  for (let i = 0; i < count; ++i) {
    const name = reader.text();
    const type = reader.u32();
    head.keys[name] = reader.at;
    head.values[name] = reader.value(type);
  }
  head.listAt = reader.at;
  for (let i = 0; i < tensors; ++i) {
    const name = reader.text();
    const dimensions = reader.u32();
    head.tensors[name] = { sizes: reader.at, dimensions };
    reader.take(8 * dimensions + 4 + 8);
  }
  head.end = reader.at;
  return head;
}

// Writes `bytes` of a model with further keys, each a whole number; number(keys) says which, from what is there.
export function withNumbers(bytes, number) {
  const old = readHead(bytes);
  const aligned = (size) => Math.ceil(size / alignment) * alignment;
  const more = Object.entries(number(old.values));
  const added = more.flatMap(([name, value]) => [u64(Buffer.byteLength(name)), Buffer.from(name), u32(uint32), u32(value)]);
  const head = Buffer.concat([
    Buffer.from('GGUF'), u32(old.version), u64(old.tensorCount), u64(old.keyCount + more.length),
    bytes.subarray(old.keysAt, old.listAt), ...added, bytes.subarray(old.listAt, old.end),
  ]);
  return Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length), bytes.subarray(aligned(old.end))]);
}

// The demo model with tokens around a gap that is to be filled in: those of a chat, which it was trained with. A prefix
// "user\n…" and a suffix "assistant" make the prompt of one.
export function withGaps(file) {
  const bytes = readFileSync(path.join(models, 'chasqui-demo.gguf'));
  writeFileSync(file, withNumbers(bytes, (keys) => {
    const token = (text) => {
      const id = keys['tokenizer.ggml.tokens'].indexOf(text);
      assert.ok(id >= 0, text);
      return id;
    };
    return {
      'tokenizer.ggml.fim_pre_token_id': token('<|im_start|>'),
      'tokenizer.ggml.fim_suf_token_id': token('<|im_start|>'),
      'tokenizer.ggml.fim_mid_token_id': token('Ċ'),
    };
  }));
}
