// Pictures that requests name by their addresses (--media-url-hosts): fetched from the hosts that the operator named, and
// from nowhere else, whatever redirects and other servers try.
import assert from 'node:assert/strict';
import http from 'node:http';
import * as test from 'node:test';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

import { ask, post, refused, user } from './client.mjs';
import { collect, startWithSocket } from './frames.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;

const positions = 16; // of each file, with the simulated engine
const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const text = { type: 'text', text: 'What is in it?' };
const imageAt = (url) => ({ type: 'image_url', image_url: { url } });
const brief = { max_tokens: 4, temperature: 0 };

// A host of pictures that keeps count of what it is asked for.
async function pictureHost(test, answers) {
  const asked = [];
  const server = http.createServer((request, response) => {
    asked.push(request.url);
    const answer = answers[request.url];
    if (answer) return answer(response);
    return response.writeHead(404).end('none');
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  test.after(() => { server.closeAllConnections(); server.close(); });
  return { asked, port: server.address().port, url: `http://127.0.0.1:${server.address().port}` };
}

const gives = (bytes, type = 'image/png') => (response) => response.writeHead(200, { 'content-type': type }).end(bytes);
const leads = (to) => (response) => response.writeHead(302, { location: to }).end();

describe('a picture at an address', async () => {
  const other = await pictureHost(test, { '/secret.png': gives(png) });
  const host = await pictureHost(test, {
    '/a.png': gives(png),
    '/a%20b.png?x=1': gives(png, 'text/plain'),
    '/moved': leads('/a.png'),
    '/around': leads('/around'),
    '/away': leads(`${other.url}/secret.png`),
    '/file': leads('file:///etc/passwd'),
    '/empty': gives(''),
    '/text': gives('no picture', 'image/png'),
    '/large': gives(Buffer.alloc(21 << 20)),
    '/half': gives(Buffer.alloc(10 << 20)),
    '/never': () => {},
    '/head': (response) => response.writeHead(200, { filler: 'x'.repeat(15_000), filler2: 'x'.repeat(90_000) }).end(png),
    '/endless': (response) => {
      response.writeHead(200);
      const more = () => { if (!response.destroyed) response.write(Buffer.alloc(1 << 20), more); };
      more();
    },
  });
  const server = await startWithSocket(test, [...sim, '-c', '8192', '--media-url-hosts', `127.0.0.1:${host.port},*.example`]);
  const inChat = (url, more = []) => ['/v1/chat/completions', { messages: user([imageAt(url), text, ...more]), ...brief }];
  const field = 'messages[0].content[0].image_url.url';
  const tokens = ({ usage }) => usage.prompt_tokens ?? usage.input_tokens + (usage.cache_read_input_tokens ?? 0);

  it('is taken from the SDKs of OpenAI and Anthropic', async () => {
    const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const alone = await openai.chat.completions.create({ model: 'sim', messages: user([text]), ...brief });
    const chat = await openai.chat.completions.create({ model: 'sim', messages: user([imageAt(`${host.url}/a.png`), text]), ...brief });
    assert.equal(tokens(chat), tokens(alone) + positions);
    const input = (parts) => [{ role: 'user', content: [...parts, { type: 'input_text', text: text.text }] }];
    const plain = await openai.responses.create({ model: 'sim', max_output_tokens: 4, input: input([]) });
    const response = await openai.responses.create({ model: 'sim', max_output_tokens: 4,
      input: input([{ type: 'input_image', image_url: `${host.url}/moved` }]) });
    assert.equal(tokens(response), tokens(plain) + positions);
    const anthropic = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
    const block = { type: 'image', source: { type: 'url', url: `${host.url}/a%20b.png?x=1` } };
    const said = (content) => anthropic.messages.create({ model: 'sim', max_tokens: 4, messages: user(content) });
    assert.equal(tokens(await said([block, text])), tokens(await said([text])) + positions);
    const result = [{ role: 'user', content: 'shoot' }, { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'shoot', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [block] }] }];
    const counted = await anthropic.messages.countTokens({ model: 'sim', messages: result });
    assert.ok(counted.input_tokens > positions);
  });

  it('is taken on the local socket', async () => {
    const client = await server.client(test);
    const before = host.asked.length;
    const events = await collect(client.generate({ messages: user([imageAt(`${host.url}/a.png`), text]), ...brief }));
    assert.equal(events.at(-1).event, 'eos');
    assert.equal(host.asked.length, before + 1);
  });

  it('is fetched once for a request that names it twice, and is the same as one that is sent', async () => {
    const before = host.asked.length;
    const sent = await ask(server, ...inChat(`data:image/png;base64,${png.toString('base64')}`, [imageAt(`${host.url}/a.png`)]));
    assert.equal(host.asked.length, before + 1);
    const named = await ask(server, ...inChat(`${host.url}/a.png`, [imageAt(`${host.url}/a.png`)]));
    assert.equal(host.asked.length, before + 2);
    assert.equal(tokens(named), tokens(sent));
    assert.ok(named.usage.prompt_tokens_details.cached_tokens >= tokens(sent) - positions, 'it is found in the cache');
  });

  it('is fetched anew when a request is sent again, and not when its answer is kept', async () => {
    const headers = { 'idempotency-key': 'pictures' };
    const before = host.asked.length;
    const first = await ask(server, ...inChat(`${host.url}/a.png`), { headers });
    const again = await ask(server, ...inChat(`${host.url}/a.png`), { headers });
    assert.deepEqual(again, first);
    assert.equal(host.asked.length, before + 1);
  });

  it('leaves numbers and texts of the body as they are', async () => {
    const odd = { seed: 4294967295, temperature: 0.1, logit_bias: { 5: -1.5 }, user: 'é \u0001 "\\' };
    const [target, body] = inChat(`${host.url}/a.png`);
    const [, sent] = inChat(`data:image/png;base64,${png.toString('base64')}`);
    const one = await ask(server, target, { ...body, ...odd });
    const other = await ask(server, target, { ...sent, ...odd });
    assert.equal(one.choices[0].message.content, other.choices[0].message.content);
  });

  const wrong = [
    ['of another host', () => `${other.url}/secret.png`, /without 127\.0\.0\.1:\d+ in --media-url-hosts/],
    ['of a redirect to another host', () => `${host.url}/away`, /without 127\.0\.0\.1:\d+ in --media-url-hosts/],
    ['of a redirect to a file', () => `${host.url}/file`, /must be the address of a file, https/],
    ['of a redirect to itself', () => `${host.url}/around`, /too many redirects/],
    ['that is not there', () => `${host.url}/none`, /the answer is 404/],
    ['of nothing', () => `${host.url}/empty`, /the file is empty/],
    ['of a large file', () => `${host.url}/large`, /at most 20971520 bytes/],
    ['of an answer with a long head', () => `${host.url}/head`, /could not be fetched/],
    ['of an answer that does not come', () => `${host.url}/never`, /took longer than 10 seconds/],
    ['of a file without an end', () => `${host.url}/endless`, /at most 20971520 bytes/],
    ['with a password', () => `http://me:secret@127.0.0.1:${host.port}/a.png`, /without a user or a password/],
    ['of a port with a number too large', () => 'http://127.0.0.1:99999/a.png', /must be the address of a file/],
    ['that is too long', () => `${host.url}/${'a'.repeat(9000)}`, /at most 8192 bytes/],
    ['of another kind', () => 'ftp://127.0.0.1/a.png', /not fetched from ftp/],
  ];
  for (const [what, url, message] of wrong) {
    it(`is refused: an address ${what}`, async () => {
      const error = await refused(await post(server, ...inChat(url())), 400);
      assert.equal(error.param, field);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /secret/);
    });
  }

  it('is refused when it is none, as one that is sent', async () => {
    const error = await refused(await post(server, ...inChat(`${host.url}/text`)), 400);
    assert.match(error.message, /PNG or JPEG/);
  });

  it('never comes from a host that is not named', () => assert.deepEqual(other.asked, []));

  it('names the part of a request that could not be had', async () => {
    const parts = [imageAt(`${host.url}/a.png`), imageAt(`${host.url}/none`)];
    const error = await refused(await post(server, '/v1/chat/completions', { messages: user(parts) }), 400);
    assert.equal(error.param, 'messages[0].content[1].image_url.url');
    const many = await refused(await post(server, '/v1/chat/completions', { messages: user(Array(65).fill(parts[0])) }), 400);
    assert.match(many.message, /at most 64/);
  });

  it('counts as often as it is named', async () => {
    const parts = Array(8).fill(imageAt(`${host.url}/half`));
    const before = host.asked.length;
    const error = await refused(await post(server, '/v1/chat/completions', { messages: user(parts) }), 400);
    assert.match(error.message, /at most 33554432 bytes together/);
    assert.equal(host.asked.length, before + 1);
  });

  it('is not fetched for what takes no pictures', async () => {
    const before = host.asked.length;
    const [, body] = inChat(`${host.url}/a.png`);
    await post(server, '/v1/embeddings', { ...body, input: 'x' });
    assert.equal(host.asked.length, before);
  });

  it('is fetched once for a session, which keeps it', async () => {
    const before = host.asked.length;
    const [, body] = inChat(`${host.url}/a.png`);
    const { id } = await ask(server, '/v1/sessions', { messages: body.messages });
    const more = await ask(server, `/v1/sessions/${id}/append`, { message: body.messages[0] });
    assert.equal(more.files, 2);
    await ask(server, `/v1/sessions/${id}/generate`, { max_tokens: 1 });
    assert.equal(host.asked.length, before + 2);
    const none = await refused(await post(server, `/v1/sessions/${id}/append`, { message: user([imageAt(`${host.url}/none`)])[0] }), 400);
    assert.equal(none.param, 'message.content[0].image_url.url');
    assert.equal((await (await server.fetch(`/v1/sessions/${id}`)).json()).files, 2);
  });

  it('is not waited for by a server that ends', async (t) => {
    const flags = ['--media-url-hosts', `127.0.0.1:${host.port}`, '--drain-time', '30'];
    const leaving = await start(t, [...sim, '-c', '2048', ...flags]);
    const before = host.asked.length;
    const answer = post(leaving, ...inChat(`${host.url}/never`));
    await leaving.until(() => host.asked.length > before, 'it is asked for');
    leaving.signal('SIGTERM');
    const response = await answer;
    assert.equal(response.status, 503);
    assert.deepEqual(await leaving.ended, { code: 0, signal: null });
  });

  it('is counted', async () => {
    const metrics = await server.metrics();
    assert.ok(metrics.value('chasqui_media_links_total') >= 8);
    assert.ok(metrics.value('chasqui_media_link_bytes_total') >= 8 * png.length);
    assert.ok(metrics.value('chasqui_media_links_failed_total') >= wrong.length - 2);
  });
});

describe('an address of this machine or its network', async () => {
  const server = await start(test, [...sim, '-c', '2048', '--media-url-hosts', '*']);
  for (const host of ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254', '10.0.0.1', '0.0.0.0']) {
    it(`is not reached by *: ${host}`, async () => {
      const body = { messages: user([imageAt(`http://${host}/a.png`)]), ...brief };
      const error = await refused(await post(server, '/v1/chat/completions', body), 400);
      assert.match(error.message, /not a public one, and --media-url-hosts does not name it/);
    });
  }
});

describe('--media-url-hosts', () => {
  it('names hosts', async () => {
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--media-url-hosts', 'https://images.example']);
    assert.equal(code, 2);
    assert.match(stderr, /--media-url-hosts.*must be hosts such as/s);
  });
});
