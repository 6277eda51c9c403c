// Broken model files: the built-in model cut short, lengthened, and with bytes, lengths and offsets changed, mostly in
// its head. Whatever the file, `chasqui serve` ends with exit code 1 and a line that names it, or it serves: never a
// signal, never silence. Seeded. By hand, with a count and a seed: node gguf_mutants.mjs [COUNT] [SEED]
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { random } from './random.mjs';
import { binary, hangAfter } from './server.mjs';

const demoFile = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-demo.gguf');
const lanes = 2;
// What lengths, counts and offsets are likely to be wrong by.
const odd = [0n, 1n, 0xffn, 0xffffn, 0x7fffffffn, 0x80000000n, 0xffffffffn, 1n << 32n, 1n << 40n, (1n << 62n) - 1n, 1n << 63n, (1n << 64n) - 1n];

// Where keys, values and descriptions of tensors are; behind them begin the weights.
function headEnd(model) {
  const last = model.lastIndexOf('.weight', model.length, 'latin1');
  return Math.min(model.length, last + 64);
}

export function mutant(dice, model) {
  const head = headEnd(model);
  const out = Buffer.from(model);
  // Where lists of tokens are nothing can go wrong but their lengths; the first kilobytes and the tensors matter more.
  const place = () => (dice.below(2) ? dice.below(2048) : dice.below(2) ? head - 1 - dice.below(6000) : dice.below(head));
  switch (dice.below(8)) {
    case 0: return out.subarray(0, dice.below(out.length));
    case 1: return out.subarray(0, dice.below(head));
    case 2: return Buffer.concat([out.subarray(0, place()), out.subarray(place())]); // a piece is missing, or there twice
    default: break;
  }
  for (let n = 1 + dice.below(4); n > 0; --n) {
    const at = Math.max(0, Math.min(place(), out.length - 8));
    switch (dice.below(4)) {
      case 0: out[at] = dice.below(256); break;
      case 1: out[at] ^= 1 << dice.below(8); break;
      case 2: out.writeUInt32LE(Number(dice.of(odd) & 0xffffffffn), at); break;
      default: out.writeBigUInt64LE(dice.of(odd), at); break;
    }
  }
  return out;
}

// Serves the file until it listens, asks it something, and ends it. What was wrong; nothing when all was well.
async function tryFile(file) {
  const child = spawn(binary, ['serve', '-m', file, '--port', '0', '-t', '1', '-np', '1', '-c', '256', '--log-level', 'off'],
    { stdio: ['ignore', 'pipe', 'pipe'] });
  let [said, errors, served] = ['', '', false];
  const timer = setTimeout(() => child.kill('SIGKILL'), hangAfter);
  child.stderr.on('data', (text) => (errors += text));
  child.stdout.on('data', async (text) => {
    said += text;
    const url = /listening on (\S+)/.exec(said)?.[1];
    if (!url || served || !said.includes('serving ')) return;
    served = true;
    const body = JSON.stringify({ prompt: 'hello', max_tokens: 3 });
    await fetch(`${url}/v1/completions`, { method: 'POST', body }).then((response) => response.text()).catch(() => {});
    child.kill('SIGTERM');
  });
  const [code, signal] = await new Promise((resolve) => child.on('close', (...ended) => resolve(ended)));
  clearTimeout(timer);
  if (signal) return { problem: `ended by ${signal}`, errors };
  if (served) return code === 0 ? { served } : { problem: `served, then exit code ${code}`, errors };
  if (code !== 1) return { problem: `exit code ${code}`, errors };
  const named = errors.includes(file) || errors.includes('chat template'); // the file, or the part of it that is broken
  if (!/^chasqui: .+/m.test(errors) || !named) return { problem: 'no line that says what is broken', errors };
  return { caught: errors.includes('libllama failed on it') };
}

export async function tryMutants(count, seed, say = () => {}) {
  const model = await fs.readFile(demoFile);
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-gguf-'));
  const seen = { refused: 0, caught: 0, served: 0, wrong: [] };
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const number = next++;
      const file = path.join(dir, `mutant-${number}.gguf`);
      await fs.writeFile(file, mutant(random(seed * 100_000 + number), model));
      const result = await tryFile(file);
      if (result.problem) seen.wrong.push({ number, ...result });
      else seen[result.served ? 'served' : result.caught ? 'caught' : 'refused'] += 1;
      await fs.rm(file);
      if ((number + 1) % 500 === 0) say(`${number + 1} files`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  await fs.rm(dir, { recursive: true, maxRetries: 20 });
  return seen;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const seen = await tryMutants(Number(process.argv[2] ?? 3000), Number(process.argv[3] ?? 1), console.log);
  console.log(seen);
  assert.deepEqual(seen.wrong, []);
}
