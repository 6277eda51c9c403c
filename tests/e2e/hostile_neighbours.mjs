// What others notice of hostile inputs: an interactive stream by itself, then one beside each of them, sent by 32
// connections for as long as the stream runs; and again, in turns, so that a busy machine slows both. Prints the ratio of
// the medians of time to first token and of the gaps between tokens, and how many of the inputs were answered a second.
// Who attacks a server does it from other machines, so the sender here takes only what time of the processors the server
// leaves; with --equal it takes its full share. The first three are no inputs but plain requests, to compare with. By hand, on a machine that does nothing else:
//     node hostile_neighbours.mjs [ROUNDS] [NAME] [--equal]
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

import { user } from './client.mjs';
import { cases } from './hostile_inputs.mjs';
import { demo, Server } from './server.mjs';

const connections = 32;
const tokens = 1000;
const equal = process.argv.includes('--equal');
// Nothing hostile: what answers beside a stream cost it in any case, since they are computed in its steps.
const plain = (name, body) => [`plain: ${name}`, '/v1/chat/completions', { messages: user('x'), temperature: 0, ...body }];
const controls = [plain('one token', { max_tokens: 1 }), plain('8 tokens', { max_tokens: 8 }),
  plain('200 tokens', { max_tokens: 200, ignore_eos: true })];

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
  let answers = 0;
  let seconds = 0;
  for (let round = 0; round < Number(rounds); ++round) {
    alone.push(await stream(server));
    const sender = new Worker(new URL(import.meta.url), { workerData: { port: server.port, path, text: JSON.stringify(body), nice: equal ? 0 : 19 } });
    for (let i = 0; i < connections; ++i) await once(sender, 'message');
    sender.on('message', () => ++answers);
    const begun = performance.now();
    beside.push(await stream(server));
    seconds += (performance.now() - begun) / 1000;
    await sender.terminate();
    await server.idle();
  }
  const ratio = (what) => middle(beside.map((one) => one[what])) / middle(alone.map((one) => one[what]));
  return { name, first: ratio('first'), gap: ratio('gap'), alone: middle(alone.map((one) => one.gap)), rate: answers / seconds };
}

if (!isMainThread) {
  setPriority(0, workerData.nice);  // of this thread
  for (let i = 0; i < connections; ++i) send(workerData);
} else if (import.meta.url === pathToFileURL(process.argv[1] ?? '/').href) {
  const [rounds = 5, wanted = ''] = process.argv.slice(2).filter((word) => word !== '--equal');
  const server = new Server([...demo, '-np', '8', '--log-level', 'error'], {});
  await server.listening();
  await stream(server);
  const all = [];
  for (const one of [...controls, ...cases].filter(([name]) => name.includes(wanted))) {
    const seen = await neighbours(server, one, rounds);
    all.push(seen);
    console.log(`${seen.name}: gap × ${seen.gap.toFixed(2)} of ${seen.alone.toFixed(2)} ms, first token × ${seen.first.toFixed(2)}, ${seen.rate.toFixed(0)} answers/s`);
  }
  const hostile = all.filter(({ name }) => !name.startsWith('plain: ')).sort((a, b) => a.gap - b.gap);
  const worst = hostile.at(-1);
  if (worst) console.log(`${hostile.filter((one) => one.gap <= 1.2).length} of ${hostile.length} within 1.2 ×; the worst: ${worst.name}, × ${worst.gap.toFixed(2)}`);
  await server.stop();
}
