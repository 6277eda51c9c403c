// Clients that leave: at once their slot and cells are free, and no other client notices.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, endless, post, streamChat, user } from './client.mjs';
import { connect, request } from './raw.mjs';
import { random } from './random.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const long = ['-np', '2', '-c', '500000'];
const cancelled = (metrics) => metrics.value('chasqui_requests_finished_total', { reason: 'cancelled' });

for (const [name, flags, question] of [
  ['demo', [...demo, '-np', '2', '-c', '40000'], 'What is Chasqui?'],
  ['simulated', [...sim, ...long], 'say: intact'],
]) {
  describe(`a client of the ${name} model that leaves`, async () => {
    const server = await start(test, flags);
    const before = await answer(server, question, { max_tokens: 30 });
    const gone = async (count) => {
      const metrics = await server.idle();
      assert.equal(cancelled(metrics), count);
      assert.equal((await answer(server, question, { max_tokens: 30 })).text, before.text, 'the next answer is intact');
    };

    it('in the middle of a stream', async () => {
      const stream = await streamChat(server, 'go on', endless);
      await stream.nextText();
      assert.ok((await server.metrics()).value('chasqui_kv_cells_used') > 0);
      stream.leave();
      await gone(1);
      assert.equal((await server.metrics()).value('chasqui_http_clients_gone_total'), 1);
    });

    it('while a whole answer is made', async () => {
      const controller = new AbortController();
      const response = post(server, '/v1/chat/completions', { messages: user('go on'), ...endless },
        { signal: controller.signal });
      await server.until((metrics) => metrics.value('chasqui_kv_cells_used') > 20);
      controller.abort();
      await assert.rejects(response, { name: 'AbortError' });
      await gone(2);
    });

    it('while it waits in the queue', async () => {
      const running = [await streamChat(server, 'go on', endless), await streamChat(server, 'and on', endless)];
      for (const stream of running) {
        await stream.nextText();
        stream.readOn();
      }
      const waiting = await streamChat(server, 'me too', endless);
      await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
      waiting.leave();
      await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 0);
      assert.equal((await server.metrics()).value('chasqui_requests_running'), 2, 'the others go on');
      for (const stream of running) stream.leave();
      await gone(5);
    });

    it('right after its request', async () => {
      const body = JSON.stringify({ messages: user('go on'), ...endless });
      for (let i = 0; i < 20; ++i) {
        const socket = await connect(server);
        socket.write(request('POST', '/v1/chat/completions', { 'Content-Length': Buffer.byteLength(body) }, body));
        socket.resetAndDestroy();
      }
      await server.idle();
      assert.equal((await answer(server, question, { max_tokens: 30 })).text, before.text);
    });
  });
}

describe('a client that leaves while its large body is turned into tokens', async () => {
  // Room for all of it: what cannot fit is refused unread, sooner than anybody could leave.
  const server = await start(test, [...sim, '-np', '1', '-c', '3000000']);

  it('leaves nothing behind', async () => {
    const body = { messages: user('word '.repeat(500_000)) };
    for (let i = 0; i < 6; ++i) {
      const controller = new AbortController();
      const response = assert.rejects(post(server, '/v1/chat/completions', body, { signal: controller.signal }));
      await server.until((metrics) => metrics.value('chasqui_http_body_bytes') > 1_000_000);
      controller.abort();
      await response;
    }
    await server.idle();
    assert.equal((await answer(server, 'say: clean')).text, 'clean');
  });
});

describe('a neighbour of clients that leave', async () => {
  const server = await start(test, [...sim, '-np', '4', '-c', '800000']);

  it('gets its answer unharmed', async () => {
    const fields = { ignore_eos: true, max_tokens: 1500 };
    const alone = await answer(server, 'the neighbour', fields);
    const stream = await streamChat(server, 'the neighbour', fields);
    const all = stream.collect();
    for (let i = 0; i < 10; ++i) {
      const other = await streamChat(server, `guest ${i}`, endless);
      await other.nextText();
      other.leave();
    }
    await all;
    assert.equal(stream.text, alone.text);
  });
});

describe('two hundred clients', async () => {
  const server = await start(test, [...sim, '-np', '8', '-c', '80000', '--queue-requests', '300']);

  const { below } = random(12345);

  it('killed at any moment leave nothing behind', async () => {
    const moments = Array.from({ length: 200 }, () => [below(6), below(300)]);
    const body = JSON.stringify({ stream: true, messages: user('go on'), ignore_eos: true, max_tokens: 2000 });
    const bytes = request('POST', '/v1/chat/completions', { 'Content-Length': Buffer.byteLength(body) }, body);
    const one = async ([moment, bytesSent]) => {
      const socket = await connect(server);
      if (moment === 0) return socket.resetAndDestroy(); // before a byte
      if (moment === 1) {
        socket.write(bytes.slice(0, Math.min(bytesSent, bytes.length - 1))); // inside the request
        return socket.destroy();
      }
      socket.write(bytes);
      if (moment === 2) return socket.destroy(); // before the answer
      for (let left = moment * 2 - 5; left > 0; --left) {
        const open = await new Promise((resolve) => {
          socket.once('data', () => resolve(true));
          socket.once('close', () => resolve(false));
        });
        if (!open) break;
      }
      return moment % 2 ? socket.resetAndDestroy() : socket.destroy(); // inside the answer
    };
    await Promise.all(moments.map(one));
    await server.idle();
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 1, 'only /metrics is running');
    assert.equal((await answer(server, 'say: all slots are back')).text, 'all slots are back');
    const texts = await Promise.all(Array.from({ length: 8 }, (_, i) => answer(server, `say: slot ${i}`)));
    assert.deepEqual(texts.map(({ text }) => text), Array.from({ length: 8 }, (_, i) => `slot ${i}`));
  });
});
