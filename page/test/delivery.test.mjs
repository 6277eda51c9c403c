// How the page and the feed of steps leave the server, without a browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import test from 'node:test';

import { streamChat, user } from '../../tests/e2e/client.mjs';
import { run, sim, start } from '../../tests/e2e/server.mjs';
import { bundle, compressedMax, differences, pdfCompressedMax } from '../build.mjs';

const built = new URL('../built/', import.meta.url);
const paths = { '/': 'index.html', '/page.js': 'page.js', '/page.css': 'page.css', '/favicon.svg': 'favicon.svg',
  '/pdf.js': 'pdf.js' };

// fetch() unpacks what it gets; here the bytes themselves are wanted.
function get(server, path, headers = {}) {
  return new Promise((resolve, reject) => {
    http.get(server.url + path, { headers }, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
    }).on('error', reject);
  });
}

test('what is committed as built is what the sources give', async () => {
  const { files, compressed, pdfCompressed } = await bundle();
  assert.deepEqual(await differences(files), [], 'run: make page');
  assert.ok(compressed <= compressedMax, `${compressed} bytes`);
  assert.ok(pdfCompressed <= pdfCompressedMax, `${pdfCompressed} bytes of the reader of PDFs`);
});

test('the page comes compressed and plain, says what it is and what it may do, and is small', async (t) => {
  const server = await start(t, sim);
  let compressed = 0;
  let reader = 0;
  for (const [path, file] of Object.entries(paths)) {
    const wanted = await readFile(new URL(file, built));
    const plain = await get(server, path);
    assert.equal(plain.status, 200, path);
    assert.deepEqual(plain.body, wanted, path);
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const coding of ['gzip', 'br, GZIP;q=0.5', 'gzip, deflate, br, zstd']) {
      const packed = await get(server, path, { 'accept-encoding': coding });
      assert.equal(packed.headers['content-encoding'], 'gzip', coding);
      assert.equal(packed.headers.vary, 'Accept-Encoding');
      if (coding === 'gzip' && path === '/pdf.js') reader = packed.body.length;
      else if (coding === 'gzip') compressed += packed.body.length;
    }
    const refused = await get(server, path, { 'accept-encoding': 'br, gzip;q=0' });
    assert.equal(refused.headers['content-encoding'], undefined);
    assert.match(plain.headers['content-security-policy'], /default-src 'none'; script-src 'self'/);
    assert.doesNotMatch(plain.headers['content-security-policy'], /unsafe|\*|https?:/);
    assert.equal(plain.headers['x-content-type-options'], 'nosniff');
  }
  assert.ok(compressed <= compressedMax, `${compressed} bytes compressed`);
  assert.ok(reader > 0 && reader <= pdfCompressedMax, `${reader} bytes of the reader of PDFs compressed`);
  assert.match((await get(server, '/')).headers['content-type'], /^text\/html/);
  assert.match((await get(server, '/favicon.ico')).headers['content-type'], /^image\/svg/);
});

test('a browser that has the page is told that it is still the same', async (t) => {
  const server = await start(t, sim);
  const first = await get(server, '/page.js');
  const again = await get(server, '/page.js', { 'if-none-match': first.headers.etag, 'accept-encoding': 'gzip' });
  assert.equal(again.status, 304);
  assert.equal(again.body.length, 0);
  assert.equal(again.headers.etag, first.headers.etag);
  const other = await get(server, '/page.js', { 'if-none-match': '"another"' });
  assert.equal(other.status, 200);
  const head = await server.fetch('/', { method: 'HEAD' });
  assert.equal(head.status, 200);
});

test('the page needs no key, and what it asks for does', async (t) => {
  const server = await start(t, [...sim, '--api-key', 'secret']);
  server.key = 'secret';
  for (const path of [...Object.keys(paths), '/favicon.ico']) assert.equal((await get(server, path)).status, 200, path);
  for (const path of ['/props', '/debug/steps', '/page.jsx']) assert.notEqual((await get(server, path)).status, 200, path);
  assert.equal((await get(server, '/debug/steps')).status, 401);
});

test('--no-webui leaves the routes alone, by flag and by variable', async (t) => {
  for (const [flags, env] of [[['--no-webui'], {}], [[], { LLAMA_ARG_NO_WEBUI: '1' }]]) {
    const server = await start(t, [...sim, ...flags], env);
    for (const path of Object.keys(paths)) assert.equal((await get(server, path)).status, 404, path);
    assert.equal((await get(server, '/health')).status, 200);
  }
  const help = await run(['serve', '--help']);
  assert.match(help.stdout, /--no-webui/);
});

// The feed as the page reads it.
async function* feed(response) {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    rest += decoder.decode(bytes, { stream: true });
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n')) {
      const event = rest.slice(0, end);
      rest = rest.slice(end + 2);
      if (event.startsWith('data: ')) yield JSON.parse(event.slice(6));
    }
  }
}

const total = (list) => list.reduce((sum, value) => sum + value, 0);

test('the feed says what is promised, then every step of a request once and in order', async (t) => {
  const server = await start(t, [...sim, '-np', '2', '-c', '4000', '--itl-target', '50,80,900']);
  const controller = new AbortController();
  const watching = feed(await server.fetch('/debug/steps', { signal: controller.signal }));
  const promise = (await watching.next()).value;
  assert.equal(promise.slots, 2);
  assert.equal(promise.cells, 4000);
  assert.deepEqual(Object.entries(promise.targets).map(([name, { next_token_ms: ms }]) => [name, ms]),
    [['interactive', 50], ['standard', 80], ['background', 900]]);
  const before = await server.metrics();
  const answer = await streamChat(server, user('watched '.repeat(300)), { max_tokens: 20, ignore_eos: true, priority: 'background' });
  await answer.collect();
  const steps = [];
  // The rows of a step that was cut, because something else on the machine strangled it, are planned again.
  const rows = (of) => total(steps.map((step) => (step.cut ? 0 : of(step))));
  const decoded = () => rows((step) => step.decode[2]);
  while (decoded() < 19) {
    const message = (await watching.next()).value;
    assert.equal(message.missed, 0);
    steps.push(...message.steps);
  }
  controller.abort();
  const after = await server.metrics();
  const read = after.value('chasqui_prompt_tokens_total') - before.value('chasqui_prompt_tokens_total');
  assert.equal(decoded(), 19, 'the first token comes with the prompt');
  assert.equal(rows((step) => step.prompt[2]), read);
  assert.equal(rows((step) => step.decode[0] + step.decode[1]), 0, 'of its class alone');
  steps.forEach((step, i) => assert.ok(i === 0 || step.n === steps[i - 1].n + 1, 'in order'));
  steps.forEach((step, i) => assert.ok(i === 0 || step.t >= steps[i - 1].t + steps[i - 1].ms - 0.01, 'one after the other'));
});

test('a server that shuts down does not wait for those who watch', async (t) => {
  const server = await start(t, [...sim, '--drain-time', '3600']);
  const watching = feed(await server.fetch('/debug/steps'));
  await watching.next();
  server.signal('SIGTERM');
  assert.deepEqual(await server.ended, { code: 0, signal: null });
  assert.equal((await watching.next()).done, true, 'the stream ended well');
});

test('watchers are bounded, and their places come back', async (t) => {
  const server = await start(t, sim);
  const controllers = [];
  let refused = null;
  while (!refused && controllers.length <= 64) {
    const controller = new AbortController();
    const response = await server.fetch('/debug/steps', { signal: controller.signal });
    controllers.push(controller);
    if (response.status !== 200) refused = response;
  }
  assert.equal(refused?.status, 503);
  assert.match((await refused.json()).error.message, /watch/);
  for (const controller of controllers) controller.abort();
  await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') <= 1, 'the watchers have left');
  const again = new AbortController();
  assert.equal((await server.fetch('/debug/steps', { signal: again.signal })).status, 200);
  again.abort();
});
