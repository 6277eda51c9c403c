// Hostile exchanges in numbers: the cases of http_cases.mjs as they are, cut up, spliced and mutated, mutated bodies for
// all POST routes, and clients that leave, half close or reset at any byte. After each thousand: nothing was answered
// with a 5xx (but 501 and 505, which are right), a canary says what it said before, byte for byte, and descriptors,
// threads, slots and cells are back where they were. Seeded. The server is ended at the end, so that a sanitizer can
// say what it has to say. By hand, against the binary that CHASQUI_BIN names:
//     node hostile.mjs [EXCHANGES] [SEED]
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { pathToFileURL } from 'node:url';

import { makeBody, random } from './fuzz_bodies.mjs';
import { alone, groups } from './http_cases.mjs';
import { demo, hangAfter, Server } from './server.mjs';

// The real model, since what is behind the doors is what hostile bytes are after. A tight context bounds each answer.
const flags = [...demo, '-np', '4', '-c', '1024', '-n', '4', '--request-timeout', '1',
  '--sessions-max', '200000', '--session-ttl', '1', '--log-level', 'error'];
const sound = 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const lanes = 64;
const quietMs = 300; // whoever hears nothing for as long has sent something that is not complete, and leaves
const right = new Set([501, 505]);
const cases = [...Object.values(groups).flat(), ...alone].map(([, bytes]) => bytes).filter((bytes) => bytes.length < 40_000);

function mutate(dice, text) {
  let out = text;
  for (let n = 1 + dice.below(4); n > 0; --n) {
    const at = dice.below(out.length + 1);
    const rest = out.slice(at);
    switch (dice.below(6)) {
      case 0: out = out.slice(0, at) + rest.slice(1 + dice.below(6)); break;
      case 1: out = out.slice(0, at) + String.fromCharCode(dice.below(256)) + rest; break;
      case 2: out = out.slice(0, at) + String.fromCharCode(dice.below(256)) + rest.slice(1); break;
      case 3: out = out.slice(0, at) + dice.of(['\r\n', '\n', '\r', '\0', ' ', '\t', ':', '0', 'Content-Length: 3\r\n',
        'Transfer-Encoding: chunked\r\n', 'Expect: 100-continue\r\n', '\r\n\r\n', 'ffffffff', ';', '%']) + rest; break;
      case 4: { // two of them, joined anywhere
        const other = dice.of(cases);
        out = out.slice(0, at) + other.slice(dice.below(other.length + 1));
        break;
      }
      default: out = out.slice(0, at) + out.slice(Math.max(0, at - dice.below(60)), at) + rest; break;
    }
  }
  return out;
}

function api(dice, paths, fields) {
  const path = dice.of(paths);
  const body = makeBody(dice, path, fields).toString('latin1');
  const length = dice.below(20) === 0 ? body.length + dice.below(9) - 4 : body.length;
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${Math.max(0, length)}\r\n\r\n${body}`;
}

// What is sent, in how many pieces, and what the client does then.
function plan(dice, paths, fields) {
  const kind = dice.below(10);
  let bytes = kind < 4 ? dice.of(cases) : api(dice, paths, fields);
  if (kind < 3 || kind === 9) bytes = mutate(dice, bytes);
  const leave = dice.below(10);
  if (leave < 7) bytes += sound;
  const pieces = [];
  const most = dice.below(3) === 0 ? 1 + dice.below(40) : bytes.length + 1;
  for (let at = 0; at < bytes.length && pieces.length < 40; at += most) pieces.push(bytes.slice(at, at + most));
  return { pieces, end: leave === 7, reset: leave >= 8 ? dice.below(30) : undefined };
}

function exchange(port, { pieces, end, reset }) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    const parts = [];
    const over = () => {
      socket.destroy();
      resolve(Buffer.concat(parts).toString('latin1'));
    };
    socket.setNoDelay(true);
    socket.setTimeout(quietMs, over);
    socket.on('error', () => {});
    socket.on('data', (part) => parts.push(part));
    socket.on('end', over);
    socket.on('close', over);
    socket.on('connect', async () => {
      for (const piece of pieces) {
        if (!socket.writable) return;
        await new Promise((go) => socket.write(piece, 'latin1', go));
      }
      if (end) socket.end();
      if (reset !== undefined) setTimeout(() => socket.resetAndDestroy(), reset);
    });
  });
}

const statuses = (text) => [...text.matchAll(/(?:^|\n|\})HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
const count = (folder) => readdirSync(folder).length;
const resident = (pid) => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);

class Run {
  constructor(server) {
    this.server = server;
    this.seen = {};
    this.wrong = [];
  }

  async begin() {
    const document = await (await this.server.fetch('/openapi.json')).json();
    this.fields = Object.keys(document.components.schemas.GenerationFields.properties);
    this.paths = Object.keys(document.paths).filter((path) => document.paths[path].post).map((path) => path.replace('{id}', 'none'));
    await this.server.fetch('/v1/embeddings', { method: 'POST', body: '{"input":"x"}' }); // its thread begins with the first
    this.story = await this.canary();
    this.before = await this.used();
  }

  async canary() {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Tell me a story' }], temperature: 0, max_tokens: 24 });
    const response = await this.server.fetch('/v1/chat/completions', { method: 'POST', body });
    return (await response.json()).choices[0].message.content;
  }

  // Once nothing of any request is left, and none of the connections but ours.
  async used() {
    await this.server.idle();
    const end = Date.now() + hangAfter;
    const pid = this.server.pid;
    for (;;) {
      const metrics = await this.server.metrics();
      const now = {
        descriptors: count(`/proc/${pid}/fd`), threads: count(`/proc/${pid}/task`),
        connections: metrics.value('chasqui_http_connections_open'), exchanges: metrics.value('chasqui_http_exchanges_running'),
        slots: metrics.sum('chasqui_kv_slots_used'), cells: metrics.sum('chasqui_kv_cells_used'),
        lost: metrics.value('chasqui_loop_lost_exceptions_total'), failures: metrics.sum('chasqui_decode_failures_total'),
      };
      if (JSON.stringify(now) === JSON.stringify(this.before ?? now) && now.connections <= 1) return now;
      if (Date.now() > end) return now;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async thousand(dice, exchanges) {
    let left = exchanges;
    const lane = async () => {
      while (left-- > 0) {
        const one = plan(dice, this.paths, this.fields);
        const answer = await exchange(this.server.port, one);
        for (const status of statuses(answer)) {
          this.seen[status] = (this.seen[status] ?? 0) + 1;
          if (status >= 500 && !right.has(status)) this.wrong.push({ status, bytes: one.pieces.join('').slice(0, 2000), answer: answer.slice(0, 2000) });
        }
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    assert.deepEqual(this.wrong, []);
    assert.deepEqual(await this.used(), this.before, 'something is left');
    assert.equal(await this.canary(), this.story, 'the canary sings another song');
  }
}

export async function hostile(server, exchanges, seed, say = () => {}) {
  const run = new Run(server);
  await run.begin();
  const dice = random(seed);
  for (let sent = 0; sent < exchanges; ) {
    const now = Math.min(1000, exchanges - sent);
    await run.thousand(dice, now);
    sent += now;
    if (sent % 10_000 === 0) say(`${sent} exchanges, ${Math.round(resident(server.pid) / 1024)} MiB resident`);
  }
  return run;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [exchanges, seed] = [Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 1)];
  const server = new Server(flags, {});
  await server.listening();
  const begun = Date.now();
  const run = await hostile(server, exchanges, seed, console.log);
  await server.stop(); // exit code 0: no crash, and no leak where a sanitizer looks for one
  console.log(`${exchanges} exchanges in ${Math.round((Date.now() - begun) / 1000)} s, answered with`, run.seen);
  assert.doesNotMatch(server.stderr, /runtime error|Sanitizer/);
  console.log('no 5xx, no crash, no leak; after each thousand the canary is unharmed and everything is back:', run.before);
}
