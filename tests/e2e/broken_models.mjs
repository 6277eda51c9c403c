// Model files that are broken in one place each: the built-in model with other numbers in its head, other shapes of its
// tensors, or an end that is missing.
import { readFileSync } from 'node:fs';
import path from 'node:path';

import { models, readHead } from './gguf.mjs';

const good = readFileSync(path.join(models, 'chasqui-demo.gguf'));
const of = readHead(good);
const architecture = of.values['general.architecture'];

function changed(change) {
  const bytes = Buffer.from(good);
  change(bytes);
  return bytes;
}

const key = (name, value) => changed((bytes) => bytes.writeUInt32LE(value, of.keys[name.replace('ARCH', architecture)]));
const type = (name, value) => changed((bytes) => bytes.writeUInt32LE(value, of.keys[name.replace('ARCH', architecture)] - 4));
const list = (name, value) => changed((bytes) => bytes.writeUInt32LE(value, of.keys[name]));
const word = (name, value) => changed((bytes) => bytes.write(value, of.keys[name] + 8, 'latin1'));
const size = (tensor, dimension, value) => changed((bytes) => bytes.writeBigInt64LE(value, of.tensors[tensor].sizes + 8 * dimension));
const names = Object.keys(of.tensors);
const matrix = names.find((name) => name.endsWith('attn_q.weight'));

export const broken = {
  'cut-in-the-head': good.subarray(0, 3000),
  'cut-in-the-tensors': good.subarray(0, good.length - 4096),
  'no-heads': key('ARCH.attention.head_count', 0),
  'no-kv-heads': key('ARCH.attention.head_count_kv', 0),
  'odd-heads': key('ARCH.attention.head_count', 7),
  'many-heads': key('ARCH.attention.head_count', 0x7fffffff),
  'no-layers': key('ARCH.block_count', 0),
  'many-layers': key('ARCH.block_count', 0x7fffffff),
  'more-layers': key('ARCH.block_count', 500),
  'no-embedding': key('ARCH.embedding_length', 0),
  'negative-embedding': key('ARCH.embedding_length', 0xffffffff),
  'no-feed-forward': key('ARCH.feed_forward_length', 0),
  'odd-rope': key('ARCH.rope.dimension_count', 7),
  'wide-rope': key('ARCH.rope.dimension_count', 4096),
  'heads-in-floats': type('ARCH.attention.head_count', 6),
  'layers-in-floats': type('ARCH.block_count', 6),
  'epsilon-in-numbers': type('ARCH.attention.layer_norm_rms_epsilon', 4),
  'tokens-in-numbers': list('tokenizer.ggml.token_type', 6),
  'no-tokenizer': word('tokenizer.ggml.model', 'xxxx'),
  'other-architecture': word('general.architecture', 'bloom'),
  'strange-architecture': word('general.architecture', 'qwxyz'),
  'eos-in-floats': type('tokenizer.ggml.eos_token_id', 6),
  'other-tensor': changed((bytes) => bytes.write('k', of.tensors[matrix].sizes - 4 - 8, 'latin1')),
  'other-format': changed((bytes) => bytes.writeUInt32LE(41, of.tensors[matrix].sizes + 16)),
  'no-format': changed((bytes) => bytes.writeInt32LE(-1, of.tensors[matrix].sizes + 16)),
  'negative-size': size(matrix, 0, -1n),
  'no-size': size(matrix, 1, 0n),
  'other-size': size(matrix, 1, 32n),
  'huge-size': size(matrix, 0, 1n << 62n),
  'negative-tensors': changed((bytes) => bytes.writeBigInt64LE(-1n, 8)),
  'negative-keys': changed((bytes) => bytes.writeBigInt64LE(-1n, 16)),
  'many-tokens': changed((bytes) => bytes.writeBigUInt64LE(1n << 60n, of.keys['tokenizer.ggml.tokens'] + 4)),
};
