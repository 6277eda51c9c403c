// A server at its worst when SIGTERM comes: each thread of the pool computes a hostile chat template, with more of them
// waiting; fifty streams run; one worker hangs. By hand, with how long it took to end in each round:
//     node stop_hostile.mjs [ROUNDS]
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { post, user } from './client.mjs';
import { Server, sim } from './server.mjs';

// Time that grows with the fourth power of the messages: two seconds of a thread, then it is ended.
const loop = (name, inside) => `{% for ${name} in messages %}${inside}{% endfor %}`;
const slow = loop('a', loop('b', loop('c', loop('d', "{% if a.role == 'x' %}{{ d.role }}{% endif %}"))));
const template = `${loop('m', '{{ m.content }}')}{%- if messages | length > 9 %}${slow}{% endif %}`;
const jobs = 40; // of two seconds each: both threads have some for longer than any drain here
const streams = 50;

const quietly = (promise) => promise.then((response) => response.text()).catch(() => undefined);

// Starts it, and returns when all of that is so.
async function worst(flags) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-stop-'));
  const file = path.join(folder, 'slow.jinja');
  writeFileSync(file, template);
  const server = new Server([...sim, '--workers', '2', '-np', '64', '-c', '2000000', '--sim-step', '50', '--stuck-after', '3600', '--chat-template-file', file, ...flags], {});
  await server.listening();
  rmSync(folder, { recursive: true, maxRetries: 20 });
  const running = [];
  const drained = async (response) => {
    for await (const part of response.body) void part;
  };
  for (let i = 0; i < streams; ++i) {
    const body = { messages: user(`stream ${i}`), stream: true, ignore_eos: true, max_tokens: 1_000_000 };
    running.push(post(server, '/v1/chat/completions', body).then(drained).catch(() => undefined));
  }
  await server.until((metrics) => metrics.sum('chasqui_requests_running') === streams);
  running.push(quietly(post(server, '/v1/chat/completions', { messages: user('hang: 3600') })));
  await server.until((metrics) => metrics.value('chasqui_offload_jobs_total') >= streams + 1); // its worker has it, or is about to
  // Below 10 kB, so that they are not taken for long jobs, which never have both threads.
  const messages = Array.from({ length: 300 }, () => user('x')[0]);
  for (let i = 0; i < jobs; ++i) running.push(quietly(post(server, '/v1/chat/completions', { messages })));
  await server.until((metrics) => metrics.value('chasqui_offload_queue_jobs') >= jobs / 2);
  return { server, running };
}

const childrenOf = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
const lives = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

// Ends it with one signal, or with two where it would drain for an hour. Returns how many milliseconds that took.
export async function stopAtWorst({ supervise = false, drain = 0.2, twice = false }) {
  const seconds = twice ? 3600 : drain;
  const { server, running } = await worst(['--drain-time', String(seconds), ...(supervise ? ['--supervise'] : [])]);
  const processes = supervise ? [server.pid, ...childrenOf(server.pid)] : [server.pid];
  let begun = performance.now();
  server.signal('SIGTERM');
  if (twice) {
    while (!/draining/.test(server.stderr)) await new Promise((resolve) => setImmediate(resolve));
    begun = performance.now();
    server.signal('SIGTERM');
  }
  const exit = await server.ended;
  const took = performance.now() - begun;
  assert.equal(exit.signal, null, server.stderr);
  assert.ok([0, 70, 128 + 9].includes(exit.code), `${exit.code}: ${server.stderr}`);
  for (const pid of processes) assert.ok(!lives(pid), `process ${pid} is still there`);
  await Promise.all(running);
  return took;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "/").href) {
  const rounds = Number(process.argv[2] ?? 20);
  for (const supervise of [false, true]) {
    for (const twice of [false, true]) {
      const took = [];
      for (let i = 0; i < rounds; ++i) took.push(Math.round(await stopAtWorst({ supervise, twice })));
      const limit = twice ? 1000 : 1200;
      const good = took.filter((ms) => ms <= limit).length;
      console.log(`${supervise ? 'supervised' : 'alone'}, ${twice ? 'second SIGTERM' : 'SIGTERM'}: ${good} of ${rounds} within ${limit} ms; ${took.join(' ')}`);
    }
  }
}
