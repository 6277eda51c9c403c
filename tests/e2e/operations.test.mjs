// What an operator looks at: health, properties, metrics, keys and doors.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, endless, post, refused, streamChat, user } from './client.mjs';
import { familyOf } from './metrics.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;

function temporaryFolder(context) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
  context.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  return folder;
}

describe('the routes for operators', async () => {
  const server = await start(test, [...demo, '-np', '3', '-c', '1536', '--alias', 'my-model, other']);
  const get = async (target) => {
    const response = await server.fetch(target);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'application/json');
    return response.json();
  };

  it('say that the server lives and is ready', async () => {
    assert.deepEqual(await get('/health'), { status: 'ok' });
    assert.deepEqual(await get('/v1/health'), { status: 'ok' });
    assert.deepEqual(await get('/ready'), { status: 'ready' });
  });

  it('show the model', async () => {
    for (const target of ['/v1/models', '/models']) {
      const { object, data } = await get(target);
      assert.equal(object, 'list');
      assert.equal(data.length, 1);
      assert.equal(data[0].id, 'my-model');
      assert.equal(data[0].object, 'model');
      for (const name of ['n_vocab', 'n_ctx', 'n_ctx_train', 'n_embd', 'n_params', 'size']) {
        assert.ok(data[0].meta[name] > 0, name);
      }
    }
    assert.equal((await answer(server, 'Hello', { max_tokens: 1 })).model, 'my-model');
  });

  it('show a model under each of its names', async () => {
    assert.deepEqual((await get('/v1/models')).data[0].aliases, ['my-model', 'other']);
    for (const name of ['my-model', 'other']) assert.equal((await get(`/v1/models/${name}`)).id, 'my-model');
  });

  it('show what holds for a request that says nothing', async () => {
    const { params } = (await get('/props')).default_generation_settings;
    const { generation_settings: { seed, ...said } } = await ask(server, '/completion', { prompt: 'x', n_predict: 1 });
    assert.deepEqual(Object.keys(params).sort(), [...Object.keys(said), 'seed'].sort());
    assert.deepEqual([params.n_predict, params.stream, params.seed], [-1, false, 2 ** 32 - 1]);
    for (const name of ['temperature', 'typical_p', 'dry_base', 'mirostat_tau', 'samplers']) {
      assert.deepEqual(params[name], said[name], name);
    }
  });

  it('show the properties, with the flags in force', async () => {
    const props = await get('/props');
    assert.equal(props.total_slots, 3);
    assert.equal(props.default_generation_settings.n_ctx, 512);
    assert.deepEqual(props.kv,
      { layout: 'stream', cells: 1536, cells_per_slot: 512, trims_anywhere: true, cuts_snapshots: true, shifts: false });
    assert.equal(props.limits.context_tokens, 512);
    assert.equal(props.model_alias, 'my-model');
    assert.match(props.build_info, /^chasqui-\d+\.\d+\.\d+/);
    assert.match(props.chat_template, /messages/);
    assert.ok(props.eos_token.length > 0);
    const { queue_wait_seconds: waits, ...limits } = props.limits;
    assert.deepEqual(Object.keys(limits).filter((name) => !(limits[name] > 0)), ['disk_cache_bytes', 'shared_cache_bytes'], 'no disk was given');
    assert.deepEqual(Object.values(waits), [0, 0, 0], 'nothing is refused for its wait');
    const error = await refused(await post(server, '/v1/completions', { prompt: Array(512).fill(100) }), 400);
    assert.match(error.message, /512/);
  });
});

describe('the metrics', async () => {
  const server = await start(test, [...demo, '-np', '3', '-c', '65536']); // room for an answer that does not end

  it('are text of Prometheus', async () => {
    const response = await server.fetch('/metrics');
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    const metrics = await server.metrics(); // each line is checked here
    assert.ok(metrics.samples.length > 50);
    for (const [name, type] of metrics.types) {
      assert.match(name, /^(chasqui_|vllm:|llamacpp:)/);
      assert.ok(['counter', 'gauge', 'histogram'].includes(type));
      assert.ok(metrics.helps.has(name), `${name} has no HELP`);
      if (name === 'vllm:iteration_tokens_total') continue; // a histogram, and not our choice
      assert.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`);
    }
    const order = metrics.samples.map(({ name }) => familyOf(name, metrics.types));
    const blocks = order.filter((name, i) => name !== order[i - 1]);
    assert.equal(new Set(blocks).size, blocks.length, 'the samples of a family stand together');
  });

  it('have histograms that add up', async () => {
    await answer(server, 'Hello', { max_tokens: 5 });
    const metrics = await server.idle();
    const series = new Map();
    for (const { name, labels: { le, ...labels }, value } of metrics.samples) {
      if (!name.endsWith('_bucket')) continue;
      const key = JSON.stringify([name.replace(/_bucket$/, ''), labels]);
      series.set(key, [...(series.get(key) ?? []), [le === '+Inf' ? Infinity : Number(le), value]]);
    }
    assert.ok(series.size >= 7);
    for (const [key, buckets] of series) {
      const [name, labels] = JSON.parse(key);
      for (let i = 1; i < buckets.length; ++i) {
        assert.ok(buckets[i][0] > buckets[i - 1][0], `${name}: bounds ascend`);
        assert.ok(buckets[i][1] >= buckets[i - 1][1], `${name}: buckets are cumulative`);
      }
      assert.equal(buckets.at(-1)[0], Infinity);
      assert.equal(buckets.at(-1)[1], metrics.value(`${name}_count`, labels));
      assert.ok(metrics.value(`${name}_sum`, labels) >= 0);
    }
  });

  it('count what was done', async () => {
    const before = await server.idle();
    const { usage } = await answer(server, 'Hello', { max_tokens: 8, ignore_eos: true });
    const after = await server.idle();
    const more = (name, labels) => after.value(name, labels) - before.value(name, labels);
    const cached = usage.prompt_tokens_details.cached_tokens;
    assert.equal(more('chasqui_prompt_tokens_total'), usage.prompt_tokens - cached);
    assert.equal(more('chasqui_prompt_tokens_cached_total'), cached);
    assert.equal(more('chasqui_generation_tokens_total'), 8);
    assert.equal(more('chasqui_requests_finished_total', { reason: 'length' }), 1);
    assert.equal(more('chasqui_time_to_first_token_seconds_count', { class: 'standard' }), 1);
    assert.equal(after.value('chasqui_kv_slots'), 3);
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const during = await server.metrics();
    assert.equal(during.value('chasqui_kv_slots_used'), 1);
    assert.ok(during.value('chasqui_kv_cells_used') > usage.prompt_tokens);
    running.leave();
    await server.idle();
  });
});

describe('a key', async () => {
  const folder = temporaryFolder(test);
  const keys = path.join(folder, 'keys');
  writeFileSync(keys, '# the keys of the kitchen\nsalt\n\n  \npepper \n');
  const server = await start(test, [...sim, '--api-key', 'cumin', '--api-key-file', keys]);
  server.key = 'cumin';

  it('guards everything but health and readiness', async () => {
    for (const target of ['/health', '/v1/health', '/ready']) assert.equal((await server.fetch(target)).status, 200);
    for (const target of ['/metrics', '/props', '/v1/models', '/models']) {
      assert.equal((await refused(await server.fetch(target), 401)).type, 'authentication_error');
    }
    const routes = ['chat/completions', 'v1/chat/completions', 'v1/completions', 'generate', 'tokenize', 'detokenize'];
    const wrong = ['Bearer sal', 'Bearer saltt', 'Bearer ', 'Bearer', 'salt', 'Basic salt'];
    for (const target of [...routes, 'apply-template'].map((route) => `/${route}`)) {
      for (const headers of [{}, { 'x-api-key': 'sugar' }, ...wrong.map((authorization) => ({ authorization }))]) {
        await refused(await post(server, target, {}, { headers }), 401);
      }
    }
  });

  it('opens the door, by either header, from the flag and from the file', async () => {
    for (const key of ['cumin', 'salt', 'pepper']) {
      for (const headers of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }]) {
        await ask(server, '/tokenize', { content: 'x' }, { headers });
      }
    }
  });

  it('is asked for before a body is read', async () => {
    const response = await post(server, '/tokenize', 'not JSON', { headers: { authorization: 'Bearer no' } });
    await refused(response, 401);
  });
});

function overSocket(socketPath, target, { method = 'GET', body, agent } = {}) {
  return new Promise((resolve, reject) => {
    const call = http.request({ socketPath, path: target, method, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, text, port: response.socket?.localPort }));
    });
    call.on('error', reject);
    call.end(body && JSON.stringify(body));
  });
}

describe('a door', async () => {
  it('of TCP is kept open for the next request', async (t) => {
    const server = await start(t, sim);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const sockets = new Set();
    for (let i = 0; i < 5; ++i) {
      await new Promise((resolve, reject) => {
        const call = http.get(`${server.url}/health`, { agent }, (response) => response.resume().on('end', resolve));
        call.on('socket', (socket) => sockets.add(socket)).on('error', reject);
      });
    }
    assert.equal(sockets.size, 1);
  });

  for (const flag of ['--host', '--unix-socket']) {
    it(`that is a Unix socket, of the flag ${flag}, speaks HTTP`, async (t) => {
      const socket = path.join(temporaryFolder(t), 'chasqui.sock');
      const server = await start(t, [...sim, flag, socket, ...(flag === '--host' ? [] : ['--port', '0'])]);
      assert.ok(server.addresses.includes(`unix:${socket}`));
      assert.equal(server.url === undefined, flag === '--host', 'beside TCP, or instead of it');
      assert.deepEqual(await overSocket(socket, '/health').then(({ status }) => status), 200);
      const body = { stream: true, messages: user('say: through the pipe') };
      const { status, text } = await overSocket(socket, '/v1/chat/completions', { method: 'POST', body });
      assert.equal(status, 200);
      assert.ok(text.endsWith('data: [DONE]\n\n'));
      await server.stop();
      assert.ok(!existsSync(socket), 'the file goes with the server');
    });
  }
});

describe('the way the worker wakes the loop', async () => {
  for (const kind of ['eventfd', 'pipe', 'polling']) {
    it(`may be ${kind}`, async (t) => {
      const server = await start(t, [...sim, '--wakeup', kind, '-np', '4']);
      const texts = await Promise.all([1, 2, 3, 4, 5, 6].map(async (i) => {
        const stream = await streamChat(server, `say: number ${i} of a few words`);
        return (await stream.collect()).text;
      }));
      assert.deepEqual(texts, [1, 2, 3, 4, 5, 6].map((i) => `number ${i} of a few words`));
      assert.equal((await answer(server, 'say: whole')).text, 'whole');
    });
  }
});
