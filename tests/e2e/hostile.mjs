// Hostile exchanges in numbers: the cases of http_cases.mjs as they are, cut up, spliced and mutated, mutated bodies for
// all POST routes, and clients that leave, half close or reset at any byte; beside them the bodies of hostile_inputs.mjs,
// by clients that wait for the answer, and by others that do not. After each thousand: nothing was answered
// with a 5xx (but 501 and 505, which are right), a canary says what it said before, byte for byte, and descriptors,
// threads, slots and cells are back where they were. Seeded. The server is ended at the end, so that a sanitizer can
// say what it has to say. By hand, against the binary that CHASQUI_BIN names:
//     node hostile.mjs [EXCHANGES] [SEED] [MINUTES]
// With MINUTES it goes on for as long, however many exchanges that are.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { pathToFileURL } from 'node:url';

import { makeBody } from './fuzz_bodies.mjs';
import { random } from './random.mjs';
import { cases as inputs } from './hostile_inputs.mjs';
import { alone, groups } from './http_cases.mjs';
import { binary, demo, hangAfter, Server } from './server.mjs';

// The real model, since what is behind the doors is what hostile bytes are after. A tight context bounds each answer.
const flags = [...demo, '-np', '4', '-c', '1024', '-n', '4', '--request-timeout', '1',
  '--sessions-max', '200000', '--session-ttl', '1', '--log-level', 'error'];
const sound = 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
const lanes = 64;
const inputsEach = 16; // hostile inputs for each thousand, over two lanes
const quietMs = 300; // a client that hears nothing for as long has sent something that is not complete, and leaves
const right = new Set([501, 505]);
// Budgets are computing time, of which a server under sanitizers needs several times as much.
const spent = (text) => binary.includes('/asan/') && text.includes('computes for too long');
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
    this.inputs = {};
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

  // Where the machine is so busy that --request-timeout cuts it, it is asked again.
  async canary() {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'Tell me a story' }], temperature: 0, max_tokens: 24 });
    for (const end = Date.now() + hangAfter; ;) {
      const response = await this.server.fetch('/v1/chat/completions', { method: 'POST', body });
      const { choices, usage } = await response.json();
      if (usage.completion_tokens === 24 || Date.now() > end) return choices[0].message.content;
    }
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
        lost: metrics.value('chasqui_loop_lost_exceptions_total'), failures: metrics.sum('chasqui_steps_failed_total'),
      };
      if (JSON.stringify(now) === JSON.stringify(this.before ?? now) && now.connections <= 1) return now;
      if (Date.now() > end) return now;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  // What is refused is refused as in hostile_bodies.test.mjs, unless the client left or its second was over.
  async hostileInputs(dice, count) {
    for (; count > 0; --count) {
      const [name, path, body, about] = dice.of(inputs);
      const headers = { 'content-type': 'application/json', connection: 'close' }; // no connection may be left
      const options = { method: 'POST', body: JSON.stringify(body), headers };
      if (dice.below(4) === 0) options.signal = AbortSignal.timeout(1 + dice.below(200));
      try {
        const response = await this.server.fetch(path, options);
        const text = await response.text();
        this.inputs[response.status] = (this.inputs[response.status] ?? 0) + 1;
        // The slots are short here: what is too long for one may be refused for that first.
        const refused = response.status === 400 && (about?.test(text) ?? true);
        const good = response.status === 503 || response.status === 408 || refused || (!about && response.status === 200) ||
          (response.status === 400 && (text.includes('"exceed_context_size_error"') || spent(text)));
        if (!good) this.wrong.push({ input: name, status: response.status, answer: text.slice(0, 500) });
      } catch (error) {
        if (!options.signal) this.wrong.push({ input: name, error: String(error) });
        this.inputs.left = (this.inputs.left ?? 0) + 1;
      }
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
          const asked = status === 503 && answer.includes('ttft_timeout_ms');  // a limit that the client has set itself
          if (status >= 500 && !right.has(status) && !asked) this.wrong.push({ status, bytes: one.pieces.join('').slice(0, 2000), answer: answer.slice(0, 2000) });
        }
      }
    };
    await Promise.all([...Array.from({ length: lanes }, lane), this.hostileInputs(dice, Math.ceil(inputsEach / 2)),
      this.hostileInputs(dice, Math.ceil(inputsEach / 2))]);
    assert.deepEqual(this.wrong, []);
    assert.deepEqual(await this.used(), this.before, 'something is left');
    assert.equal(await this.canary(), this.story, 'the canary sings another song');
  }
}

export async function hostile(server, exchanges, seed, say = () => {}, end = Infinity) {
  const run = new Run(server);
  await run.begin();
  const dice = random(seed);
  run.sent = 0;
  while (end === Infinity ? run.sent < exchanges : Date.now() < end) {
    const now = end === Infinity ? Math.min(1000, exchanges - run.sent) : 1000;
    await run.thousand(dice, now);
    const sent = (run.sent += now);
    if (sent % 10_000 === 0) say(`${sent} exchanges, ${Math.round(resident(server.pid) / 1024)} MiB resident`);
  }
  return run;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [exchanges, seed, minutes] = [Number(process.argv[2] ?? 100_000), Number(process.argv[3] ?? 1), Number(process.argv[4] ?? 0)];
  const server = new Server(flags, {});
  await server.listening();
  const begun = Date.now();
  const run = await hostile(server, exchanges, seed, console.log, minutes > 0 ? begun + 60_000 * minutes : Infinity);
  await server.stop(); // exit code 0: no crash, and no leak where a sanitizer looks for one
  console.log(`${run.sent} exchanges in ${Math.round((Date.now() - begun) / 1000)} s, answered with`, run.seen, 'hostile inputs', run.inputs);
  assert.doesNotMatch(server.stderr, /runtime error|Sanitizer/);
  console.log('no 5xx, no crash, no leak; after each thousand the canary is unharmed and everything is back:', run.before);
}
