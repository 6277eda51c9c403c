// A Redis server of a test, on a port of its own, that can be ended and started again with or without what it knew.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { freePort } from './nodes.mjs';

export class Redis {
  static async start(context) {
    const redis = new Redis();
    redis.port = await freePort();
    redis.folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-redis-'));
    redis.url = `redis://127.0.0.1:${redis.port}`;
    context.after(async () => {
      await redis.end();
      rmSync(redis.folder, { recursive: true, force: true });
    });
    await redis.begin();
    return redis;
  }

  async begin() {
    const flags = ['--port', `${this.port}`, '--bind', '127.0.0.1', '--dir', this.folder, '--save', '', '--appendonly', 'yes'];
    this.process = spawn('redis-server', flags, { stdio: 'ignore' });
    this.ended = once(this.process, 'close');
    while ((await this.command('PING').catch(() => '')) !== '+PONG') {
      if (this.process.exitCode !== null) throw new Error('redis-server has ended');
    }
  }

  async end(signal = 'SIGKILL') {
    this.process.kill(signal);
    await this.ended;
  }

  // One line for one line.
  command(...words) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.port, '127.0.0.1', () => socket.write(`${words.join(' ')}\r\n`));
      socket.setEncoding('utf8');
      let text = '';
      socket.on('data', (part) => {
        text += part;
        if (text.endsWith('\r\n')) socket.end();
      });
      socket.on('close', () => resolve(text.trimEnd()));
      socket.on('error', reject);
    });
  }
}
