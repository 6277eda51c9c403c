// Whether the proxy that fails does so as it says.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { it } from 'node:test';

import { hangAfter } from '../e2e/server.mjs';
import { ToxicProxy } from './toxic.mjs';

const text = 'x'.repeat(1000);

async function behind(context) {
  const server = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end(text));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const proxy = await ToxicProxy.start(context, { host: '127.0.0.1', port: server.address().port });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  context.after(() => agent.destroy());
  // As a promise of the body.
  proxy.ask = () => new Promise((resolve, reject) => {
    http.get({ port: proxy.port, host: '127.0.0.1', agent, timeout: hangAfter }, async (response) => {
      let body = '';
      try {
        for await (const part of response.setEncoding('latin1')) body += part;
        resolve(body);
      } catch (error) {
        reject(error);
      }
    }).on('error', reject);
  });
  return proxy;
}

it('passes, on connections that are kept', async (context) => {
  const proxy = await behind(context);
  for (let i = 0; i < 3; ++i) assert.equal(await proxy.ask(), text);
  assert.equal(proxy.connections, 1);
});

it('refuses, also connections that are open', async (context) => {
  const proxy = await behind(context);
  const open = net.connect(proxy.port, '127.0.0.1');
  await once(open, 'connect');
  assert.equal(await proxy.ask(), text);
  const closed = once(open, 'close');
  open.resume();
  proxy.mode = 'refuse';
  await closed;
  await assert.rejects(proxy.ask());
  proxy.mode = 'pass';
  assert.equal(await proxy.ask(), text);
});

it('hangs until it is told not to', async (context) => {
  const proxy = await behind(context);
  assert.equal(await proxy.ask(), text);
  proxy.mode = 'hang';
  let answered = false;
  const answers = Promise.all([proxy.ask(), new Promise((resolve, reject) => {
    const socket = net.connect(proxy.port, '127.0.0.1', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
    let got = '';
    socket.setEncoding('latin1').on('data', (part) => (got += part)).on('end', () => resolve(got)).on('error', reject);
  })]).finally(() => (answered = true));
  // Another proxy's whole exchange takes longer than one of these would, were it not held up.
  const other = await behind(context);
  for (let i = 0; i < 20; ++i) assert.equal(await other.ask(), text);
  assert.equal(answered, false);
  proxy.mode = 'pass';
  const [kept, fresh] = await answers;
  assert.equal(kept, text);
  assert.ok(fresh.endsWith(text));
});

it('cuts answers in the middle', async (context) => {
  const proxy = await behind(context);
  proxy.mode = 'half';
  await assert.rejects(proxy.ask());
});

it('flips one bit of a body, and none of the head', async (context) => {
  const proxy = await behind(context);
  proxy.mode = 'corrupt';
  const body = await proxy.ask();
  assert.equal(body.length, text.length);
  assert.equal([...body].filter((letter) => letter !== 'x').join(), 'y');
});

it('is slow, and not any more when it is told so', async (context) => {
  const proxy = await behind(context);
  proxy.mode = 'slow';
  proxy.rate = 10_000;
  const begun = process.hrtime.bigint();
  assert.equal(await proxy.ask(), text);
  // 1000 bytes and a head, of 10,000 in a second: a timer may be late, never early by more than its own step.
  assert.ok(process.hrtime.bigint() - begun > 50_000_000n);
  proxy.rate = 1;
  const socket = net.connect(proxy.port, '127.0.0.1', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
  let got = '';
  socket.setEncoding('latin1').on('data', (part) => (got += part));
  await once(socket, 'data');
  assert.ok(got.length < 10);
  proxy.mode = 'pass'; // the rest comes at once
  await once(socket, 'end');
  assert.ok(got.endsWith(text));
});

it('knows its modes', async (context) => {
  const proxy = await behind(context);
  assert.throws(() => { proxy.mode = 'fast'; }, /pass,refuse,hang/);
});
