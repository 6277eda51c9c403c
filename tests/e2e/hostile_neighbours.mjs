// What others notice of hostile inputs: an interactive stream and a row of short chats by themselves, then beside each of
// the inputs, sent by 32 connections for as long as they run; and again, in turns, so that a busy machine slows both.
// Prints the ratios of the medians of the gaps between the stream's tokens and of the chats' times to first token, as this
// client sees it and as the server logs it, and how many of the inputs were answered a second; at the end, what was
// refused and what was answered by themselves, since an answer costs its rows. The client shares the processors with the
// server and the sender, and is slowed by them as the server is.
// Who attacks a server does it from other machines, so the sender here takes only what time of the processors the server
// leaves; with --equal it takes its full share. The first four are no inputs but plain requests, to compare with. By
// hand, on a machine that does nothing else; TOKENS are those of the stream, fewer for a model that is slow. With --sink
// the same bytes go, as often, to a program that reads them and does nothing, which tells what the sender and the kernel
// cost from what the server does, and with --itl-target it runs with that flag of the server:
//     node hostile_neighbours.mjs [ROUNDS] [NAME] [--equal] [--sink] [--model FILE] [--tokens TOKENS] [--itl-target MS,MS,MS]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

import { user } from './client.mjs';
import { cases } from './hostile_inputs.mjs';
import { demo, hangAfter, Server } from './server.mjs';

const connections = 32;
const chats = 20;
const text = (fallback) => ({ type: 'string', default: fallback });
const flag = { type: 'boolean', default: false };
const { values: { equal, 'itl-target': itl, model, rate, sends, sink, tokens }, positionals: [rounds = 5, wanted = ''] } = parseArgs({ allowPositionals: true,
  options: { equal: flag, 'itl-target': text('100,150,1000'), model: text(), rate: text(), sends: flag, sink: flag, tokens: text('1000') } });
// Nothing hostile: what answers beside a stream cost it in any case, since they are computed in its steps.
const plain = (name, body) => [`plain: ${name}`, '/v1/chat/completions', { messages: user('x'), temperature: 0, ...body }];
const controls = [plain('one token', { max_tokens: 1 }), plain('8 tokens', { max_tokens: 8 }),
  plain('200 tokens', { max_tokens: 200, ignore_eos: true }),
  ['plain: 128 answers', '/v1/completions', { prompt: Array(8).fill('x'), n: 16, max_tokens: 1, temperature: 0 }]];

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

// When a chat's tokens came, in milliseconds since it was sent; those that came together count once.
async function timesOf(server, content, max_tokens, id = 'stream') {
  const begun = performance.now();
  const body = { messages: user(content), stream: true, max_tokens, ignore_eos: true, temperature: 0, class: 'interactive' };
  const response = await server.fetch('/v1/chat/completions',
    { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', 'x-request-id': id },
      signal: AbortSignal.timeout(10 * hangAfter) }); // a stream that shares its steps with thousands of answers is slow
  const times = [];
  for await (const part of response.body) {
    if (Buffer.from(part).includes('"content":"')) times.push(performance.now() - begun);
  }
  return times;
}

async function measured(server) {
  const times = await timesOf(server, 'Tell me a story', Number(tokens));
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  const firsts = [];
  server.stderr = '';
  for (let i = 0; i < chats; ++i) firsts.push((await timesOf(server, `Tell me story ${i}`, 4, 'chat'))[0]);
  await timesOf(server, 'The end', 1, 'last');
  await server.says(/request_id=last/);
  const logged = server.stderr.split('\n').filter((line) => line.includes('request_id=chat ')).map(inServer);
  return { gap: middle(gaps), first: middle(firsts), inside: middle(logged) };
}

// Until the first token, of a line of the log.
function inServer(line) {
  const parts = ['tokenize_ms', 'queue_ms', 'prefill_ms'].map((name) => Number(new RegExp(`${name}=([0-9.]+)`).exec(line)[1]));
  return parts.reduce((sum, part) => sum + part, 0);
}

// Runs in a process of its own, so that all of its threads, those of V8 as well, take only what is left of the processors.
async function send({ port, path, text }) {
  const body = Buffer.from(text);
  for (;;) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, headers });
    await response.text();
    process.send(response.status);
  }
}

function startSender(input) {
  const self = [process.execPath, fileURLToPath(import.meta.url), '--sends'];
  const [program, ...words] = equal ? self : ['chrt', '--idle', '0', ...self];
  const sender = spawn(program, words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  sender.send(input);
  return sender;
}

// A server that reads bodies and does nothing with them; so many answers a second.
function runSink(rate) {
  const waiting = [];
  const answer = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}';
  setInterval(() => waiting.shift()?.write(answer), 1000 / rate);
  const listener = net.createServer((socket) => {
    let left = null; // bytes of the body to come; null: its head is to come
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      if (left === null) {
        const end = bytes.indexOf('\r\n\r\n') + 4;
        left = Number(/content-length: (\d+)/i.exec(bytes.toString('latin1', 0, end))[1]) - (bytes.length - end);
      } else {
        left -= bytes.length;
      }
      if (left > 0) return;
      left = null;
      waiting.push(socket);
    });
  });
  listener.listen(0, '127.0.0.1', () => process.send(listener.address().port));
}

// The stream and the chats while the sender's bytes go to such a sink.
async function besideSink(server, path, body, rate) {
  const self = [fileURLToPath(import.meta.url), '--rate', `${rate}`];
  const listener = spawn(process.execPath, self, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const [port] = await once(listener, 'message');
  const sender = startSender({ port, path, text: body });
  await once(sender, 'message');
  const seen = await measured(server);
  for (const child of [sender, listener]) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  return seen;
}

async function neighbours(server, [name, path, body]) {
  const alone = [];
  const beside = [];
  const besideSinks = [];
  let answers = 0;
  let refused = true;
  let seconds = 0;
  for (let round = 0; round < Number(rounds); ++round) {
    alone.push(await measured(server));
    const sender = startSender({ port: server.port, path, text: JSON.stringify(body) });
    sender.on('message', (status) => { refused &&= status >= 400; });
    for (let i = 0; i < connections; ++i) await once(sender, 'message');
    sender.on('message', () => ++answers);
    const begun = performance.now();
    beside.push(await measured(server));
    seconds += (performance.now() - begun) / 1000;
    sender.kill('SIGKILL');
    await once(sender, 'close');
    await server.idle();
    if (sink) besideSinks.push(await besideSink(server, path, JSON.stringify(body), Math.max(1, answers / seconds)));
  }
  const of = (list, what) => middle(list.map((one) => one[what]));
  const ratio = (what) => of(beside, what) / of(alone, what);
  const overSink = sink ? of(beside, 'gap') / of(besideSinks, 'gap') : undefined;
  const idle = (what) => middle(alone.map((one) => one[what])).toFixed(2);
  return { name, refused, first: ratio('first'), inside: ratio('inside'), gap: ratio('gap'), overSink, idle, rate: answers / seconds };
}

function summarize(which, inputs) {
  for (const what of inputs.length > 0 ? ['gap', 'first', 'inside', ...(sink ? ['overSink'] : [])] : []) {
    const sorted = inputs.map((one) => one[what]).sort((a, b) => a - b);
    console.log(`${which}, ${what}: ${sorted.filter((ratio) => ratio <= 1.2).length} of ${sorted.length} within 1.2 ×, median × ${middle(sorted).toFixed(2)}, worst × ${sorted.at(-1).toFixed(2)}`);
  }
}

if (rate) {
  runSink(Number(rate));
} else if (sends) {
  const [input] = await once(process, 'message');
  for (let i = 0; i < connections; ++i) send(input);
} else if (import.meta.url === pathToFileURL(process.argv[1] ?? '/').href) {
  const server = new Server([...(model ? ['-m', model] : demo), '-np', '8', '--itl-target', itl, '--log-level', 'info'], {});
  await server.listening();
  await measured(server);
  const all = [];
  for (const one of [...controls, ...cases].filter(([name]) => name.includes(wanted))) {
    const seen = await neighbours(server, one);
    all.push(seen);
    const shown = (what) => `× ${seen[what].toFixed(2)} of ${seen.idle(what)} ms`;
    const beyond = sink ? `, gap × ${seen.overSink.toFixed(2)} of that beside a sink` : '';
    console.log(`${seen.name} (${seen.refused ? 'refused' : 'answered'}): gap ${shown('gap')}, first token ${shown('first')}, in the server ${shown('inside')}, ${seen.rate.toFixed(0)} answers/s${beyond}`);
  }
  const hostile = all.filter(({ name }) => !name.startsWith('plain: '));
  summarize('refused', hostile.filter((one) => one.refused));
  summarize('answered', hostile.filter((one) => !one.refused));
  await server.stop();
}
