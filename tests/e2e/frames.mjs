// The local socket as its hostile clients see it: bytes out, frames in. Polite ones use clients/chasqui.mjs.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { Client } from '../../clients/chasqui.mjs';
import { start } from './server.mjs';

export function frame(message) {
  const body = Buffer.isBuffer(message) ? message : Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const out = Buffer.alloc(4 + body.length);
  out.writeUInt32LE(body.length, 0);
  body.copy(out, 4);
  return out;
}

export async function folder(context) {
  const where = await mkdtemp(path.join(tmpdir(), 'chasqui-'));
  context.after(() => rm(where, { recursive: true, force: true, maxRetries: 20 }));
  return where;
}

// A server with a local socket, and HTTP to look at its metrics.
export async function startWithSocket(context, flags = [], env = {}) {
  const socket = path.join(await folder(context), 'frames.sock');
  const server = await start(context, ['--socket', socket, ...flags], env);
  server.socket = socket;
  server.client = async (owner) => {
    const client = await Client.connect(socket);
    owner.after(() => client.close());
    return client;
  };
  return server;
}

// Frames as they come; the rest of the bytes stays.
export class Raw {
  static async connect(owner, file, options = {}) {
    const socket = connect({ path: file, ...options });
    await once(socket, 'connect');
    owner.after(() => socket.destroy());
    return new Raw(socket);
  }

  constructor(socket) {
    this.socket = socket;
    this.bytes = Buffer.alloc(0);
    this.ended = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      this.bytes = Buffer.concat([this.bytes, bytes]);
      this.wake?.();
    });
    socket.on('end', () => this.wake?.());
  }

  write(bytes) {
    return new Promise((resolve) => this.socket.write(bytes, resolve));
  }

  async more() {
    if (this.socket.readableEnded || this.socket.destroyed) return false;
    await Promise.race([new Promise((resolve) => (this.wake = resolve)), this.ended]);
    return true;
  }

  // The next frame, or nothing when the server has closed.
  async next() {
    for (;;) {
      const length = this.bytes.length >= 4 ? this.bytes.readUInt32LE(0) : Infinity;
      if (this.bytes.length >= 4 + length) {
        const body = this.bytes.subarray(4, 4 + length);
        this.bytes = this.bytes.subarray(4 + length);
        return JSON.parse(body.toString('utf8'));
      }
      if (!(await this.more())) return undefined;
    }
  }

  // All text until the server closes.
  async text() {
    while (await this.more());
    return this.bytes.toString('utf8');
  }

  async line() {
    for (;;) {
      const end = this.bytes.indexOf('\n');
      if (end >= 0) {
        const line = this.bytes.subarray(0, end).toString('utf8');
        this.bytes = this.bytes.subarray(end + 1);
        return line;
      }
      if (!(await this.more())) return undefined;
    }
  }
}

// All events of an answer.
export async function collect(answer) {
  const events = [];
  for await (const event of answer) events.push(event);
  return events;
}

export const textOf = (events) => events.filter((event) => event.event === 'token').map((event) => event.text).join('');
