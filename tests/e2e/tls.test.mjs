// TLS on the TCP door: real clients, certificates that are renewed under load, and clients that do not shake hands.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { Duplex, Readable } from 'node:stream';
import * as test from 'node:test';
import tls from 'node:tls';
import { promisify } from 'node:util';

import { ask, streamChat, user } from './client.mjs';
import { connect, parse, request } from './raw.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const runFile = promisify(execFile);

async function folder(t) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
  return dir;
}

// A certificate for this machine that signs itself, in `dir`.
function certify(dir, name, kind = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']) {
  const files = { cert: path.join(dir, `${name}.pem`), key: path.join(dir, `${name}.key`) };
  execFileSync('openssl', ['req', '-x509', '-newkey', ...kind, '-nodes', '-days', '2', '-subj', `/CN=${name}`,
    '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', files.key, '-out', files.cert], { stdio: 'ignore' });
  return files;
}

// fetch() that trusts one certificate, and nothing else.
function trusting(server, ca, agent) {
  return (target, { method = 'GET', headers = {}, body, signal } = {}) => new Promise((resolve, reject) => {
    const where = { host: '127.0.0.1', port: server.port, path: target, ca, agent, method, headers, signal };
    const outgoing = https.request(where, (incoming) => {
      const fields = Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]);
      resolve(new Response(Readable.toWeb(incoming), { status: incoming.statusCode, headers: fields }));
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

async function startSecure(t, flags, files) {
  const server = await start(t, [...flags, '--tls-cert', files.cert, '--tls-key', files.key]);
  const agent = new https.Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  server.fetch = trusting(server, await fs.readFile(files.cert), agent);
  return server;
}

// Who is at the other end of a new connection.
async function certificateOf(server) {
  const socket = tls.connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
}

// How often a thread of the server had gone to sleep.
async function wakeUps(server, name) {
  const tasks = `/proc/${server.pid}/task`;
  for (const task of await fs.readdir(tasks)) {
    const status = await fs.readFile(`${tasks}/${task}/status`, 'utf8');
    if (status.startsWith(`Name:\t${name}\n`)) return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]);
  }
  throw new Error(`no thread ${name}`);
}

// A connection whose first message goes out one byte at a time.
async function byteByByte(t, server) {
  const socket = await connect(server);
  socket.setNoDelay(true);
  let first = true;
  const slow = new Duplex({
    read() {},
    write(bytes, _, done) {
      const most = first ? 1 : bytes.length;
      first = false;
      const next = (at) => (at >= bytes.length ? done() : socket.write(bytes.subarray(at, at + most), () => setImmediate(next, at + most)));
      next(0);
    },
  });
  socket.on('data', (part) => slow.push(part));
  t.after(() => socket.destroy());
  return slow;
}

const failedHandshakes = (server) => async (count) => {
  await server.until((metrics) => metrics.value('chasqui_tls_handshakes_failed_total') === count, `${count} failed`);
};

describe('TLS', async () => {
  it('carries whole answers and streams, byte for byte what plain HTTP carries', async (t) => {
    const server = await startSecure(t, demo, certify(await folder(t), 'one'));
    assert.match(server.url, /^https:\/\/127\.0\.0\.1:\d+$/);
    const plain = await start(t, demo);
    const body = { messages: user('Tell me a story'), max_tokens: 40, temperature: 0 };
    const choice = async (at) => (await ask(at, '/v1/chat/completions', body)).choices[0].message.content;
    assert.equal(await choice(server), await choice(plain));
    const stream = await streamChat(server, 'Tell me a story', { max_tokens: 40, temperature: 0 });
    await stream.collect();
    assert.equal(stream.finish, 'length');
  });

  it('takes and gives bodies of many records', async (t) => {
    const server = await startSecure(t, sim, certify(await folder(t), 'one'));
    const content = 'words and more words '.repeat(40_000);
    const tokens = (await ask(server, '/tokenize', { content })).tokens;
    assert.ok(tokens.length > 100_000);
    assert.equal((await ask(server, '/detokenize', { tokens })).content, content);
  });

  it('speaks 1.2 and 1.3 with a real curl, and nothing older', async (t) => {
    const files = certify(await folder(t), 'one');
    const server = await startSecure(t, sim, files);
    const curl = (...flags) => runFile('curl', ['-sS', '--cacert', files.cert, ...flags, `${server.url}/health`]);
    for (const flags of [['--tlsv1.3'], ['--tls-max', '1.2'], ['--http2'], ['--http1.1']]) {
      assert.match((await curl(...flags)).stdout, /"status":"ok"/, flags.join(' '));
    }
    const connection = tls.connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false,
      minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    const [error] = await once(connection, 'error');
    assert.match(error.code, /PROTOCOL_VERSION|ECONNRESET/);
  });

  it('renews its certificate on SIGHUP under load without a failed request', async (t) => {
    const dir = await folder(t);
    const now = certify(dir, 'now');
    const server = await startSecure(t, sim, now);
    const old = await fs.readFile(now.cert);
    const next = [certify(dir, 'second', ['rsa:2048']), certify(dir, 'third')];
    const all = await Promise.all([old, ...next.map((files) => fs.readFile(files.cert))]);
    let done = false;
    let answers = 0;
    const client = async (i) => {
      const say = trusting(server, all, i % 2 ? new https.Agent({ keepAlive: false }) : new https.Agent({ keepAlive: true }));
      while (!done) {
        const response = await say('/v1/chat/completions',
          { method: 'POST', body: JSON.stringify({ messages: user(`say: ${i} and ${answers}`) }) });
        assert.equal(response.status, 200);
        assert.match((await response.json()).choices[0].message.content, new RegExp(`^${i} and`));
        ++answers;
      }
    };
    const clients = Promise.all(Array.from({ length: 8 }, (_, i) => client(i)));
    server.fetch = trusting(server, all);
    assert.equal(await certificateOf(server), 'now');
    for (const [i, files] of next.entries()) {
      await fs.copyFile(files.cert, now.cert);
      await fs.copyFile(files.key, now.key);
      server.signal('SIGHUP');
      while (await certificateOf(server) !== ['second', 'third'][i]);
    }
    done = true;
    await clients;
    assert.ok(answers >= 8);
    assert.equal((await server.metrics()).value('chasqui_http_responses_total', { class: '5xx' }) ?? 0, 0);
  });

  it('keeps the old certificate when the new files are no good', async (t) => {
    const dir = await folder(t);
    const files = certify(dir, 'old');
    const server = await startSecure(t, sim, files);
    const other = certify(dir, 'other');
    await fs.copyFile(other.cert, files.cert); // but not its key
    server.signal('SIGHUP');
    while (!server.stderr.includes('certificate not reloaded')) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(await certificateOf(server), 'old');
  });

  it('does not start with files that are missing, alone, not PEM, of another key, or locked', async (t) => {
    const dir = await folder(t);
    const [one, other] = [certify(dir, 'one'), certify(dir, 'other')];
    const locked = path.join(dir, 'locked.key');
    execFileSync('openssl', ['ec', '-in', one.key, '-aes256', '-passout', 'pass:secret', '-out', locked], { stdio: 'ignore' });
    const junk = path.join(dir, 'junk.pem');
    await fs.writeFile(junk, 'no certificate');
    const cases = [
      [['--tls-cert', one.cert], /--tls-key/],
      [['--tls-key', one.key], /--tls-cert/],
      [['--tls-cert', path.join(dir, 'none.pem'), '--tls-key', one.key], /none\.pem/],
      [['--tls-cert', junk, '--tls-key', one.key], /junk\.pem/],
      [['--tls-cert', one.cert, '--tls-key', junk], /junk\.pem/],
      [['--tls-cert', one.cert, '--tls-key', other.key], /other\.key/],
      [['--tls-cert', one.cert, '--tls-key', locked], /locked\.key/],
    ];
    for (const [flags, message] of cases) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', ...flags]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
  });

  it("has llama-server's names for its files, too", async (t) => {
    const files = certify(await folder(t), 'one');
    const server = await start(t, [...sim, '--ssl-cert-file', files.cert, '--ssl-key-file', files.key]);
    server.fetch = trusting(server, await fs.readFile(files.cert));
    assert.equal((await server.fetch('/health')).status, 200);
    const env = { LLAMA_ARG_SSL_CERT_FILE: files.cert, LLAMA_ARG_SSL_KEY_FILE: files.key };
    const other = await start(t, sim, env);
    other.fetch = trusting(other, await fs.readFile(files.cert));
    assert.equal((await other.fetch('/health')).status, 200);
  });

  it('says in plain words that it wants TLS to who speaks HTTP', async (t) => {
    const server = await startSecure(t, sim, certify(await folder(t), 'one'));
    const socket = await connect(server);
    const parts = [];
    socket.on('data', (part) => parts.push(part));
    socket.write(request('GET', '/health'));
    await once(socket, 'end');
    const response = parse(Buffer.concat(parts).toString());
    assert.equal(response.status, 400);
    assert.match(response.body, /https:\/\//);
    await failedHandshakes(server)(1);
  });

  it('ends handshakes with junk, with half a hello, and after the client has left', async (t) => {
    const server = await startSecure(t, sim, certify(await folder(t), 'one'));
    const junk = await connect(server);
    junk.resume();
    junk.write(Buffer.alloc(100, 7));
    await new Promise((resolve) => junk.once('close', resolve));
    const half = await connect(server);
    half.write(Buffer.from('16030102000100', 'hex'));
    half.destroy();
    const silent = await connect(server);
    silent.destroy();
    await failedHandshakes(server)(3);
    await server.until((metrics) => metrics.value('chasqui_http_connections_open') === 1, 'only we are left');
  });

  it('does not wake the thread of handshakes for half a hello, and completes one that comes byte by byte', async (t) => {
    const server = await startSecure(t, sim, certify(await folder(t), 'one'));
    assert.equal(await certificateOf(server), 'one');
    const before = await wakeUps(server, 'tls-0');
    const half = await Promise.all(Array.from({ length: 100 }, () => connect(server)));
    for (const [i, socket] of half.entries()) socket.write(Buffer.from('16030102000100', 'hex').subarray(0, 1 + i % 7));
    const slow = tls.connect({ socket: await byteByByte(t, server), rejectUnauthorized: false });
    await once(slow, 'secureConnect');
    slow.write(request('GET', '/health'));
    assert.match(String((await once(slow, 'data'))[0]), /^HTTP\/1\.1 200 /);
    assert.ok(await wakeUps(server, 'tls-0') - before < 20, `${await wakeUps(server, 'tls-0') - before} times`);
    for (const socket of half) socket.destroy();
    slow.destroy();
    await server.until((metrics) => metrics.value('chasqui_tls_handshakes_failed_total') >= 100, 'those are over');
  });

  it('lets no client wait behind those that never finish their handshake, and closes the oldest of them', async (t) => {
    const server = await startSecure(t, sim, certify(await folder(t), 'one'));
    const slow = await Promise.all(Array.from({ length: 1100 }, async () => {
      const socket = await connect(server);
      socket.write(Buffer.from('1603', 'hex'));
      socket.resume();
      return socket;
    }));
    assert.equal(await certificateOf(server), 'one');
    await server.until((metrics) => metrics.value('chasqui_tls_handshakes_failed_total') >= 76, 'those over 1024');
    for (const socket of slow) socket.destroy();
    await server.until((metrics) => metrics.value('chasqui_http_connections_open') === 1, 'all are gone');
  });

  it('leaves the Unix socket plain', async (t) => {
    const dir = await folder(t);
    const door = path.join(dir, 'http.sock');
    await startSecure(t, [...sim, '--unix-socket', door], certify(dir, 'one'));
    const { stdout } = await runFile('curl', ['-sS', '--unix-socket', door, 'http://localhost/health']);
    assert.match(stdout, /"status":"ok"/);
  });
});
