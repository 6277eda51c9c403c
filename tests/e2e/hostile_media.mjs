// Pictures and sounds in numbers, each broken in its own way: files of the fuzzer's corpus with bytes changed, put in,
// taken out, cut off and spliced, sent to a server with a real projector. Each is answered or is a 400; after each
// thousand a canary says what it said before and nothing is left of any request; at the end the memory is back, and a
// picture that claims 100 million pixels is refused at once. Seeded. By hand, against the binary that CHASQUI_BIN names:
//     node hostile_media.mjs [FILES] [SEED]
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import zlib from 'node:zlib';

import { random } from './random.mjs';
import { Server, testModel } from './server.mjs';

const corpus = path.join(path.dirname(fileURLToPath(import.meta.url)), '../fuzz/corpus/media');
const model = testModel('24m-f16');
const projector = path.join(path.dirname(model), 'projectors/mmproj-random-24m.gguf');
const flags = ['-m', model, '--mmproj', projector, '-np', '4', '-c', '8192', '--cache-ram', '0', '--log-level', 'error'];
const lanes = 8;
const leftMiB = 64; // that may stay beside what was encoded, which is kept: the pools of the allocator
const bombMs = 100;
const files = readdirSync(corpus).map((name) => ({ name, bytes: readFileSync(path.join(corpus, name)) }));
const isSound = (name) => /\.(wav|mp3|flac)$/.test(name);
const large = [0xff, 0x7f, 0x80, 0xfe, 0x00];

function mutate(dice, { bytes }) {
  let out = Buffer.from(bytes);
  for (let n = 1 + dice.below(5); n > 0 && out.length > 0; --n) {
    const at = dice.below(out.length);
    switch (dice.below(6)) {
      case 0: out[at] ^= 1 << dice.below(8); break;
      case 1: out.fill(dice.of(large), at, Math.min(out.length, at + 1 + dice.below(4))); break;
      case 2: out = Buffer.concat([out.subarray(0, at), out.subarray(at + 1 + dice.below(16))]); break;
      case 3: out = Buffer.concat([out.subarray(0, at), Buffer.alloc(1 + dice.below(64), dice.below(256)), out.subarray(at)]); break;
      case 4: out = out.subarray(0, at); break;
      default: {
        const other = dice.of(files).bytes;
        out = Buffer.concat([out.subarray(0, at), other.subarray(dice.below(other.length))]);
      }
    }
  }
  return out;
}

function part(name, bytes) {
  const data = bytes.toString('base64');
  if (isSound(name)) return { type: 'input_audio', input_audio: { data, format: name.split('.').at(-1) } };
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } };
}

async function send(server, parts) {
  const body = { messages: [{ role: 'user', content: [...parts, { type: 'text', text: 'What is it?' }] }], max_tokens: 2, temperature: 0 };
  const response = await server.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

function pngChunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length);
  body.copy(out, 4);
  out.writeUInt32BE(zlib.crc32 ? zlib.crc32(body) : 0, body.length + 4);
  return out;
}

// 10,000 by 10,000 pixels of nothing, in a few hundred kilobytes.
function bomb() {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(10_000);
  head.writeUInt32BE(10_000, 4);
  head.set([8, 2], 8);
  const rows = zlib.deflateSync(Buffer.alloc(10_000 * 30_001), { level: 9 });
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk('IHDR', head), pngChunk('IDAT', rows), pngChunk('IEND', Buffer.alloc(0))]);
}

// Without what was encoded, which has a limit of its own.
async function resident(server) {
  const kept = (await server.metrics()).value('chasqui_media_cache_bytes') / 1024 / 1024;
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024 - kept;
}

export async function hostileMedia(server, count, seed, say = () => {}) {
  const dice = random(seed);
  const seen = {};
  const canary = async () => (await send(server, [part('rgb.png', files.find(({ name }) => name === 'rgb.png').bytes)])).text;
  const words = async () => JSON.parse(await canary()).choices[0].message.content;
  const story = await words();
  for (const { name, bytes } of files) await send(server, [part(name, bytes)]);
  await server.idle();
  const before = await resident(server);
  for (let sent = 0; sent < count; sent += 1000) {
    let left = Math.min(1000, count - sent);
    const lane = async () => {
      while (left-- > 0) {
        const file = dice.of(files);
        const bytes = mutate(dice, file);
        const { status, text } = await send(server, [part(file.name, bytes)]);
        seen[status] = (seen[status] ?? 0) + 1;
        assert.ok(status === 200 || status === 400, `${file.name}: ${status} ${text}\n${bytes.toString('base64')}`);
        if (status === 400) assert.match(JSON.parse(text).error.message, /\w/);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    await server.idle();
    assert.equal(await words(), story, 'the canary sings another song');
    say(`${sent + 1000} files, ${JSON.stringify(seen)}, ${Math.round(await resident(server))} MiB, ${Math.round(before)} before`);
  }
  const bytes = bomb();
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const begun = performance.now();
    const { status, text } = await send(server, [part('bomb.png', bytes)]);
    times.push(performance.now() - begun);
    assert.equal(status, 400);
    assert.match(text, /pixels/);
  }
  return { seen, before, after: await resident(server), bomb: times.sort((a, b) => a - b)[2] };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [count = '10000', seed = '1'] = process.argv.slice(2);
  const server = new Server(flags, {});
  await server.listening();
  const { seen, before, after, bomb: ms } = await hostileMedia(server, Number(count), Number(seed), console.log);
  console.log(`${JSON.stringify(seen)}; ${Math.round(before)} MiB before, ${Math.round(after)} after; the bomb ${ms.toFixed(1)} ms`);
  const sanitized = server.child.spawnfile.includes('/asan/');
  if (!sanitized) assert.ok(after < before + leftMiB, 'the memory is not back');
  if (ms > bombMs) console.log(`the bomb took more than ${bombMs} ms`);
  const exit = await server.stop();
  assert.deepEqual(exit, { code: 0, signal: null }, server.stderr);
}
