// GET /metrics as a whole: small, cheap, documented, and in the words of others.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { answer, ask } from './client.mjs';
import { parseMetrics } from './metrics.mjs';
import { run, sim, start } from './server.mjs';

const { describe, it } = test;
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

// Nanoseconds that all threads of the process have spent on a core.
function cpuTime(server) {
  const tasks = `/proc/${server.pid}/task`;
  return readdirSync(tasks).reduce((sum, task) => {
    return sum + Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]);
  }, 0);
}

async function load(server) {
  const classes = ['interactive', 'standard', 'background'];
  await Promise.all(Array.from({ length: 24 }, (_, i) => {
    return ask(server, '/v1/completions', { prompt: `story ${i}`, max_tokens: 20, class: classes[i % 3] });
  }));
  return server.idle();
}

describe('the page of metrics', async () => {
  const server = await start(test, [...sim, '--workers', '4', '-np', '8']);

  it('has no histogram for each worker', async () => {
    const metrics = await load(server);
    for (const { name, labels } of metrics.samples) {
      if (name.endsWith('_bucket')) assert.ok(!('worker' in labels), `${name} is there for each worker`);
    }
  });

  // Of time on a core, since what it takes depends on the machine, and the least of many turns, since other work on the
  // machine adds to it. Measured: 2.5 to 4 times.
  it('costs no more than eight of the shortest answers', async () => {
    const cost = { '/health': Infinity, '/metrics': Infinity };
    const get = async (page) => (await server.fetch(page)).text();
    for (const page of Object.keys(cost)) await get(page);
    for (let turn = 0; turn < 20; ++turn) {
      for (const page of Object.keys(cost)) {
        const before = cpuTime(server);
        for (let i = 0; i < 20; ++i) await get(page);
        cost[page] = Math.min(cost[page], cpuTime(server) - before);
      }
    }
    assert.ok(cost['/metrics'] <= 8 * cost['/health'], JSON.stringify(cost));
  });

  it('is JSON when asked, with the histograms by powers of two', async () => {
    const byQuery = await (await server.fetch('/metrics?format=json')).json();
    const byHeader = await (await server.fetch('/metrics', { headers: { accept: 'application/json' } })).json();
    assert.deepEqual(Object.keys(byQuery), Object.keys(byHeader));
    for (const name of ['ttft_ms', 'inter_token_ms', 'decode_ms', 'batch_size']) {
      const bounds = Object.keys(byQuery).filter((key) => key.startsWith(`${name}_bucket{`));
      assert.deepEqual(bounds, [...Array.from({ length: 11 }, (_, i) => String(2 ** i)), '+Inf'].map(
        (bound) => `${name}_bucket{le="${bound}"}`));
      assert.equal(byQuery[bounds.at(-1)], byQuery[`${name}_count`]);
      assert.ok(byQuery[`${name}_count`] > 0, name);
    }
  });

  it('has the names that autoscalers, gateways and dashboards know, with the same numbers', async () => {
    const metrics = await server.idle();
    const all = (name) => metrics.sum(name);
    assert.equal(all('vllm:num_requests_running'), 0);
    assert.equal(all('vllm:num_requests_waiting'), 0);
    assert.equal(all('vllm:kv_cache_usage_perc'), 0);
    assert.equal(all('vllm:generation_tokens_total'), all('chasqui_generation_tokens_total'));
    assert.equal(all('vllm:time_to_first_token_seconds_count'), all('chasqui_time_to_first_token_seconds_count'));
    assert.equal(all('vllm:request_success_total'), all('chasqui_requests_finished_total'));
    assert.equal(all('llamacpp:tokens_predicted_total'), all('chasqui_generation_tokens_total'));
    assert.equal(all('llamacpp:n_decode_total'), all('chasqui_steps_total'));
    const [info] = metrics.all('vllm:cache_config_info');
    assert.equal(info.labels.block_size, '64');
    assert.equal(Number(info.labels.num_gpu_blocks), Math.floor(all('chasqui_kv_cells') / 64));
  });

  it('has rates that fall to zero while the server is idle', async () => {
    const rates = ['llamacpp:prompt_tokens_seconds', 'llamacpp:predicted_tokens_seconds'];
    await server.idle();
    await answer(server, `A question of its own: ${'word '.repeat(20)}`, { max_tokens: 8, cache_prompt: false });
    const busy = await server.metrics();
    for (const rate of rates) assert.ok(busy.sum(rate) > 0, rate);
    const idle = await server.metrics();
    for (const rate of rates) assert.equal(idle.sum(rate), 0, rate);
  });

  it('can be asked for the names of one system', async () => {
    for (const [names, prefix] of [['chasqui', 'chasqui_'], ['vllm', 'vllm:'], ['llamacpp', 'llamacpp:']]) {
      const metrics = parseMetrics(await (await server.fetch(`/metrics?names=${names}`)).text());
      assert.ok(metrics.samples.length > 5);
      for (const name of metrics.types.keys()) assert.ok(name.startsWith(prefix), name);
    }
    assert.equal((await server.fetch('/metrics?names=other')).status, 400);
  });

  it('is what docs/metrics.md says, and nothing else', async () => {
    const { code, stdout } = await run(['metrics']);
    assert.equal(code, 0);
    assert.equal(readFileSync(path.join(root, 'docs/metrics.md'), 'utf8'), stdout, 'run: chasqui metrics > docs/metrics.md');
    for (const name of (await server.metrics()).types.keys()) assert.ok(stdout.includes(`\`${name}\``), name);
  });
});

describe('the page of metrics, however much there is to count', async () => {
  const crowd = Array.from({ length: 60 }, (_, i) => `a${i}.gguf:an-adapter-with-a-long-name-${i}`).join(',');
  const longName = ['--alias', 'a-model-with-a-very-long-name-'.repeat(3)];
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-metrics-'));
  test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  for (const [what, flags] of Object.entries({
    'one worker': [],
    'eight workers': ['--workers', '8', '-np', '8'],
    'every option': ['--workers', '8', '-np', '8', '--lora-init-without-apply', '--lora', crowd, ...longName,
      '--session-dir', `${folder}/s`, '--batch-dir', `${folder}/b`, '--cache-disk', `${folder}/d`, '--otlp-endpoint', 'http://127.0.0.1:9'],
  })) {
    it(`is at most 80 KiB with ${what}`, async (t) => {
      const server = await start(t, [...sim, ...flags]);
      const metrics = await load(server);
      assert.ok(metrics.text.length <= 80 * 1024, `${metrics.text.length} bytes`);
      const bounds = metrics.all('vllm:time_to_first_token_seconds_bucket').map(({ labels }) => Number(labels.le));
      if (what !== 'every option') for (const vllms of [0.001, 0.06, 0.75, 7.5, 2560]) assert.ok(bounds.includes(vllms), `${vllms}`);
    });
  }

  it('keeps workers apart while there is room', async (t) => {
    const server = await start(t, [...sim, '--workers', '8', '-np', '8']);
    const workers = (await server.metrics()).all('chasqui_kv_slots').map(({ labels }) => labels.worker);
    assert.deepEqual(workers, ['0', '1', '2', '3', '4', '5', '6', '7']);
  });
});

describe('many workers', () => {
  it('are one sum', async (t) => {
    const server = await start(t, [...sim, '--workers', '9', '-np', '9']);
    await answer(server, 'Hello', { max_tokens: 3 });
    const metrics = await server.idle();
    assert.deepEqual(metrics.all('chasqui_kv_slots').map(({ labels, value }) => [labels, value]), [[{}, 9]]);
  });
});
