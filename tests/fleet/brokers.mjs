// Redis and NATS, each in a folder of its own, that can be ended without a word and started again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { hangAfter } from '../e2e/server.mjs';
import { freePort } from './nodes.mjs';

const commands = {
  redis: (port, folder) => ['redis-server', ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes',
    '--loglevel', 'warning']],
  nats: (port, folder) => ['nats-server', ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', port]],
};

export class Broker {
  // Does not run yet.
  static async create(kind) {
    const broker = new this();
    broker.kind = kind;
    broker.port = await freePort();
    broker.folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-broker-'));
    broker.url = kind === 'redis' ? `redis://127.0.0.1:${broker.port}/0` : `nats://127.0.0.1:${broker.port}`;
    process.on('exit', () => broker.child?.kill('SIGKILL'));
    return broker;
  }

  // When the test ends: said after its nodes were started, which then end first.
  endsWith(context) {
    context.after(async () => {
      await this.kill();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  async begin() {
    const [command, args] = commands[this.kind](`${this.port}`, this.folder);
    this.child = spawn(command, args, { stdio: 'ignore' });
    this.ended = once(this.child, 'close');
    const late = Date.now() + hangAfter;
    while (!(await this.answers())) assert.ok(Date.now() < late && this.child.exitCode === null, `${command} does not answer`);
  }

  // Redis answers LOADING while it reads its file; NATS greets when it is ready.
  answers() {
    return new Promise((resolve) => {
      const socket = net.connect(this.port, '127.0.0.1');
      socket.setEncoding('utf8').on('error', () => resolve(false)).on('close', () => resolve(false));
      if (this.kind === 'redis') socket.write('PING\r\n');
      socket.on('data', (text) => {
        resolve(text.startsWith('+PONG') || text.startsWith('INFO'));
        socket.destroy();
      });
    });
  }

  async kill() {
    if (!this.child) return;
    this.child.kill('SIGKILL');
    await this.ended;
    this.child = undefined;
  }

  // It answers, and keeps nothing more; or does again.
  async refuse(refuses) {
    if (this.kind === 'redis') {
      const said = await this.converse(`CONFIG SET maxmemory ${refuses ? 1 : 0}\r\n`, (text) => text.endsWith('\r\n'));
      return assert.equal(said, '+OK\r\n');
    }
    const stream = 'chasqui_batch_lines';
    const config = JSON.stringify({ name: stream, subjects: ['chasqui.batch.lines.>'], retention: 'workqueue', storage: 'file',
      discard: 'old', num_replicas: 1, max_age: 32 * 24 * 3600e9, max_msg_size: refuses ? 1 : -1 });
    const said = await this.converse(`CONNECT {}\r\nSUB told 1\r\nPUB $JS.API.STREAM.UPDATE.${stream} told ${config.length}\r\n${config}\r\n`,
      (text) => /^MSG told[^]*\}\r\n$/m.test(text));
    assert.doesNotMatch(said, /"error"/);
  }

  // What it says until that is all.
  converse(words, isAll) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, '127.0.0.1', () => socket.write(words));
      let text = '';
      socket.setEncoding('utf8').on('error', reject).on('close', () => resolve(text)).on('data', (part) => {
        text += part;
        if (isAll(text)) socket.end();
      });
    });
  }

  forget() {
    rmSync(this.folder, { recursive: true, force: true });
    this.folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-broker-'));
  }
}
