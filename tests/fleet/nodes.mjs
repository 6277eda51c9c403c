// Nodes with names, and a proxy with the configuration of deploy/ in front of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

import { Server, hangAfter, sim } from '../e2e/server.mjs';

export const deploy = (name) => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8');

// Not one that the kernel picks: those it gives to connections as well, between this and the use of it.
let nextPort = 12000 + process.pid % 16000;
export async function freePort() {
  for (;;) {
    const port = nextPort++;
    const server = net.createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue; // taken
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}

// A node on ports of its own, that can be ended and started again on the same ones.
export class Node {
  static async start(context, name, flags = [], engine = sim) {
    const node = new Node();
    node.name = name;
    [node.port, node.agentPort] = [await freePort(), await freePort()];
    node.folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-node-'));
    node.flags = [...engine, '--host', '127.0.0.1', '--port', `${node.port}`, '--agent-check', `127.0.0.1:${node.agentPort}`,
      '--admin-listen', path.join(node.folder, 'admin.sock'), '--alias', name, '-np', '8', '-c', '400000', ...flags];
    context.after(async () => {
      await node.stop();
      rmSync(node.folder, { recursive: true, force: true });
    });
    await node.begin();
    return node;
  }

  async begin() {
    this.server = new Server(this.flags, {});
    await this.server.listening();
  }

  async stop() {
    this.server.signal('SIGTERM');
    await this.server.ended;
  }

  // Without a word to anybody.
  async kill() {
    this.server.signal('SIGKILL');
    await this.server.ended;
  }

  admin(method, target) {
    return new Promise((resolve, reject) => {
      const socketPath = path.join(this.folder, 'admin.sock');
      http.request({ socketPath, method, path: target, agent: false, timeout: hangAfter }, async (response) => {
        let text = '';
        for await (const part of response.setEncoding('utf8')) text += part;
        resolve(JSON.parse(text));
      }).on('error', reject).end();
    });
  }

  async drained() {
    await this.admin('POST', '/drain');
    while ((await this.admin('GET', '/drain')).requests > 0);
  }
}

// Runs a proxy until the test ends; resolves when its port answers. With a `url`, as the servers of the other tests.
export async function startProxy(context, command, args, port) {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const ended = once(child, 'close');
  context.after(async () => {
    child.kill('SIGTERM'); // at once for both; nginx has processes of its own to end
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  const proxy = {
    url,
    fetch: (target, options = {}) => fetch(url + target, { signal: AbortSignal.timeout(hangAfter), ...options }),
  };
  for (;;) {
    assert.equal(child.exitCode, null, `${command} has ended: ${errors}`);
    const response = await proxy.fetch('/ready').catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.status === 200) return proxy;
  }
}

// A file that goes when the test ends.
export function temporaryFile(context, name, text) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-proxy-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, name);
  writeFileSync(file, text.replaceAll('FOLDER', folder));
  return file;
}

// A text with each of these replaced, all of which must be there.
export function rewritten(text, replacements) {
  for (const [from, to] of replacements) {
    assert.ok(text.includes(from), `the configuration has no ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}
