// What others notice of hostile inputs: an interactive stream by itself, then one beside each of them, sent by 32
// connections for as long as the stream runs; and again, in turns, so that a busy machine slows both. Prints the ratio of
// the medians of time to first token and of the gaps between tokens. By hand, on a machine that does nothing else:
//     node hostile_neighbours.mjs [ROUNDS] [NAME]
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { user } from './client.mjs';
import { cases } from './hostile_inputs.mjs';
import { demo, Server } from './server.mjs';

const connections = 32;
const tokens = 1000;

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

async function stream(server) {
  const begun = performance.now();
  const body = { messages: user('Tell me a story'), stream: true, max_tokens: tokens, ignore_eos: true, temperature: 0, class: 'interactive' };
  const response = await server.fetch('/v1/chat/completions',
    { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  const times = [];
  for await (const part of response.body) if (part.length > 0) times.push(performance.now());
  const gaps = times.slice(2).map((time, i) => time - times[i + 1]);
  return { first: times[1] - begun, gap: middle(gaps) };
}

// Runs in a thread of its own: what it costs to send is not to delay the clock of the stream.
async function send({ port, path, text }) {
  for (;;) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: text, headers });
    await response.text();
    parentPort.postMessage(response.status);
  }
}

async function neighbours(server, [name, path, body], rounds) {
  const alone = [];
  const beside = [];
  for (let round = 0; round < rounds; ++round) {
    alone.push(await stream(server));
    const sender = new Worker(new URL(import.meta.url), { workerData: { port: server.port, path, text: JSON.stringify(body) } });
    for (let i = 0; i < connections; ++i) await once(sender, 'message');
    beside.push(await stream(server));
    await sender.terminate();
    await server.idle();
  }
  const ratio = (what) => middle(beside.map((one) => one[what])) / middle(alone.map((one) => one[what]));
  return { name, first: ratio('first'), gap: ratio('gap'), alone: middle(alone.map((one) => one.gap)) };
}

if (!isMainThread) {
  for (let i = 0; i < connections; ++i) send(workerData);
} else if (import.meta.url === pathToFileURL(process.argv[1] ?? '/').href) {
  const [rounds, wanted] = [Number(process.argv[2] ?? 5), process.argv[3] ?? ''];
  const server = new Server([...demo, '-np', '8', '--log-level', 'error'], {});
  await server.listening();
  await stream(server);
  const all = [];
  for (const one of cases.filter(([name]) => name.includes(wanted))) {
    const seen = await neighbours(server, one, rounds);
    all.push(seen);
    console.log(`${seen.name}: gap × ${seen.gap.toFixed(2)} of ${seen.alone.toFixed(2)} ms, first token × ${seen.first.toFixed(2)}`);
  }
  const worst = all.reduce((a, b) => (a.gap > b.gap ? a : b));
  console.log(`${all.filter((one) => one.gap <= 1.2).length} of ${all.length} within 1.2 ×; the worst: ${worst.name}, × ${worst.gap.toFixed(2)}`);
  await server.stop();
}
