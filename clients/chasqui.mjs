#!/usr/bin/env node
// A client of Chasqui's local socket (docs/protocol.md), with nothing but Node's standard library.
//
//   import { Client } from './chasqui.mjs';
//   const client = await Client.connect('/run/chasqui.sock');
//   for await (const event of client.generate({ messages: [{ role: 'user', content: 'What is Chasqui?' }] })) {
//     if (event.event === 'token') process.stdout.write(event.text);
//   }
//   client.close();
//
// Any number of requests may run at once on one connection.
//
//   chasqui.mjs --socket /run/chasqui.sock What is Chasqui?
//   chasqui.mjs --socket /run/chasqui.sock --command metrics
import { realpathSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ends = new Set(['eos', 'error', 'result']);

// An `error` event: code, message, and param and retryAfterMs where the server gave them.
export class ChasquiError extends Error {
  constructor(event) {
    super(`${event.code}: ${event.message}`);
    this.code = event.code;
    this.param = event.param;
    this.retryAfterMs = event.retry_after_ms;
  }
}

// What is said to one request: an async iterator over its events, the last one included. An error is thrown. Leaving the
// loop before its end cancels the request.
class Answer {
  constructor(client, id) {
    this.client = client;
    this.id = id;
    this.waiting = [];
    this.wake = () => {};
  }

  put(event) {
    this.waiting.push(event);
    this.wake();
  }

  cancel() {
    this.client.send({ id: this.id, event: 'cancel' });
  }

  async *[Symbol.asyncIterator]() {
    let over = false;
    try {
      while (!over) {
        while (this.waiting.length === 0) await new Promise((resolve) => (this.wake = resolve));
        const event = this.waiting.shift();
        over = event instanceof Error || ends.has(event.event);
        if (event instanceof Error) throw event;
        if (event.event === 'error') throw new ChasquiError(event);
        yield event;
      }
    } finally {
      if (!over) this.client.drop(this);
    }
  }
}

export class Client {
  static connect(path) {
    return new Promise((resolve, reject) => {
      const socket = connect({ path });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Client(socket));
      });
    });
  }

  constructor(socket) {
    this.socket = socket;
    this.answers = new Map();
    this.lastId = 0;
    this.pieces = [];
    this.held = 0;
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new Error('the connection is closed')));
  }

  // Cancels what still runs.
  close() {
    this.socket.destroy();
  }

  send(message) {
    const body = Buffer.from(JSON.stringify(message));
    const frame = Buffer.allocUnsafe(4 + body.length);
    frame.writeUInt32LE(body.length, 0);
    body.copy(frame, 4);
    this.socket.write(frame);
  }

  // Sends a request or command.
  start(fields) {
    const id = fields.id ?? `js-${++this.lastId}`;
    const answer = new Answer(this, id);
    if (this.failure) {
      answer.put(this.failure);
      return answer;
    }
    this.answers.set(id, answer);
    this.send({ ...fields, id });
    return answer;
  }

  generate(fields) {
    return this.start(fields);
  }

  // Cancels a request whose events are wanted no more.
  drop(answer) {
    if (!this.answers.delete(answer.id) || this.failure) return;
    answer.cancel();
  }

  // The whole answer.
  async text(fields) {
    for await (const event of this.start({ ...fields, stream: false })) if (event.event === 'eos') return event.text;
  }

  // What a command gives: health, metrics, props, session.create …
  async command(event, fields = {}) {
    for await (const answer of this.start({ ...fields, event })) if (answer.event === 'result') return answer.result;
  }

  #take(bytes) {
    this.pieces.push(bytes);
    this.held += bytes.length;
    if (this.held < this.wanted) return;
    let rest = this.pieces.length === 1 ? bytes : Buffer.concat(this.pieces);
    while (rest.length >= 4) {
      const end = 4 + rest.readUInt32LE(0);
      if (rest.length < end) break;
      this.#deliver(JSON.parse(rest.subarray(4, end).toString('utf8')));
      rest = rest.subarray(end);
    }
    this.pieces = [rest];
    this.held = rest.length;
    this.wanted = rest.length >= 4 ? 4 + rest.readUInt32LE(0) : 4;
  }

  wanted = 4;

  #deliver(event) {
    if (event.id === null) return this.#fail(new ChasquiError(event)); // about a frame that could not be read
    const answer = this.answers.get(event.id);
    if (ends.has(event.event)) this.answers.delete(event.id);
    answer?.put(event);
  }

  // Whatever is asked from now on fails in the same way.
  #end(error) {
    this.failure ??= error;
    this.#fail(this.failure);
  }

  #fail(error) {
    for (const answer of this.answers.values()) answer.put(error);
    this.answers.clear();
  }
}

async function ask(client, question, fields) {
  const answer = client.generate({ ...fields, messages: [{ role: 'user', content: question }] });
  const interrupt = () => answer.cancel();
  process.on('SIGINT', interrupt);
  for await (const event of answer) if (event.event === 'token') process.stdout.write(event.text);
  process.off('SIGINT', interrupt);
  process.stdout.write('\n');
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      socket: { type: 'string', default: process.env.CHASQUI_SOCKET ?? '/run/chasqui.sock' },
      command: { type: 'string' },
      'max-tokens': { type: 'string' },
      temperature: { type: 'string' },
      seed: { type: 'string' },
    },
  });
  const fields = {};
  for (const name of ['max-tokens', 'temperature', 'seed']) {
    if (values[name] !== undefined) fields[name.replace('-', '_')] = Number(values[name]);
  }
  const client = await Client.connect(values.socket);
  if (values.command) {
    console.log(JSON.stringify(await client.command(values.command), null, 2));
  } else if (positionals.length > 0) {
    await ask(client, positionals.join(' '), fields);
  } else {
    for await (const line of createInterface({ input: process.stdin })) if (line.trim()) await ask(client, line, fields);
  }
  client.close();
}

// Run, and not imported; also through a symbolic link, as programs in ~/bin often are.
function isProgram() {
  try {
    return realpathSync(process.argv[1]) === realpathSync(fileURLToPath(import.meta.url));
  } catch {
    return false; // what was started is no file
  }
}

if (isProgram()) {
  main().catch((error) => {
    console.error(`chasqui.mjs: ${error.message}`);
    process.exit(1);
  });
}
