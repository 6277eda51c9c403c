// What takes seconds by its nature. The tests of this file wait side by side, each for the server and not for a clock.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as test from 'node:test';

import { answer, endless, streamChat, user } from './client.mjs';
import { connect, exchange, parse, request } from './raw.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;

describe('the server loses patience', { concurrency: true }, async () => {
  const server = await start(test, [...sim, '-np', '1', '-c', '2000000']);

  it('with half a head, and answers 408', async () => {
    const response = parse(await exchange(server, 'GET /health HTTP/1.1\r\nHost: loc'));
    assert.equal(response.status, 408);
    assert.equal(response.headers.connection, 'close');
    assert.match(JSON.parse(response.body).error.message, /headers took too long/);
    assert.equal((await server.metrics()).value('chasqui_http_timeouts_total', { phase: 'header' }), 1);
  });

  it('never with a client that waits for its turn, and shows it that it lives', async () => {
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const reading = running.collect().catch((error) => error); // goes on until it leaves
    const body = JSON.stringify({ stream: true, messages: user('say: my turn') });
    const waiting = await connect(server);
    waiting.setEncoding('utf8');
    waiting.write(request('POST', '/v1/chat/completions', { 'Content-Length': body.length }, body));
    let text = '';
    // A comment in any silence: where it stands, or a ping.
    while (!/^: (ping|queued position=0.*)$/m.test(text)) text += (await once(waiting, 'data'))[0];
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.ok(!text.includes('data:'));
    running.leave();
    assert.equal((await reading).name, 'AbortError');
    while (!text.includes('[DONE]')) text += (await once(waiting, 'data'))[0];
    const contents = [...text.matchAll(/"content":"([^"]*)"/g)].map((match) => match[1]);
    assert.equal(contents.join(''), 'my turn');
    waiting.destroy();
    assert.equal((await answer(server, 'say: and mine')).text, 'and mine');
  });
});
