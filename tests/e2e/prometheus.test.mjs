// The dashboard and the alerts in deploy/, in a real Prometheus that scrapes a server under load.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import net from 'node:net';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';

import { post } from './client.mjs';
import { hangAfter, sim, start, testModel } from './server.mjs';

const { describe, it } = test;
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const rules = path.join(root, 'deploy/prometheus/alerts.yml');
const dashboard = JSON.parse(readFileSync(path.join(root, 'deploy/grafana/chasqui.json'), 'utf8'));

// Nothing where Prometheus cannot be had; on CI that is a fault.
function programs() {
  try {
    return execFileSync(path.join(root, 'tools/prometheus.sh'), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  } catch (error) {
    assert.ok(!process.env.CI, `no Prometheus: ${error.stderr}`);
    return undefined;
  }
}
const folder = programs();
const skip = folder === undefined && 'there is no Prometheus here';

function promtool(args, input) {
  const { status, stdout, stderr } = spawnSync(path.join(folder, 'promtool'), args, { input, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// Work of all classes until it is told to stop.
function keepBusy(server) {
  let going = true;
  const one = async (name) => {
    for (let i = 0; going; ++i) {
      const response = await post(server, '/v1/completions', { prompt: `${name} story ${i % 5}`, max_tokens: 8, class: name });
      await response.text();
    }
  };
  const all = Promise.all(['interactive', 'interactive', 'standard', 'background'].map(one));
  return () => {
    going = false;
    return all;
  };
}

async function startPrometheus(t, server) {
  const home = mkdtempSync(path.join(os.tmpdir(), 'chasqui-prometheus-'));
  const config = path.join(home, 'prometheus.yml');
  writeFileSync(config, JSON.stringify({
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: [{ job_name: 'chasqui', static_configs: [{ targets: [new URL(server.url).host] }] }],
  }));
  let port;
  let child;
  let ended;
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(home, { recursive: true, maxRetries: 20 });
  });
  for (let attempt = 0; ; ++attempt) { // another program may take the port first
    assert.ok(attempt < 5, 'Prometheus ends by itself');
    port = await freePort();
    child = spawn(path.join(folder, 'prometheus'), [
      `--config.file=${config}`, `--storage.tsdb.path=${home}/data`, `--web.listen-address=127.0.0.1:${port}`,
      '--web.console.templates=/', '--web.console.libraries=/', '--log.level=error',
    ], { stdio: ['ignore', 'ignore', 'inherit'] });
    ended = new Promise((resolve) => child.once('close', resolve));
    const ready = () => fetch(`http://127.0.0.1:${port}/-/ready`, { signal: AbortSignal.timeout(5000) });
    await until(async () => child.exitCode !== null || (await ready()).ok);
    if (child.exitCode === null) break;
  }
  return async (target, parameters = {}) => {
    const url = `http://127.0.0.1:${port}/api/v1/${target}?${new URLSearchParams(parameters)}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(hangAfter) });
    const { status, data, error } = await response.json();
    assert.equal(status, 'success', `${target} ${JSON.stringify(parameters)}: ${error}`);
    return data;
  };
}

async function until(wish) {
  const end = Date.now() + hangAfter;
  for (;;) {
    const got = await wish().catch(() => undefined);
    if (got) return got;
    assert.ok(Date.now() < end, `never happened: ${wish}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
const filled = (expr) => expr.replaceAll('$__rate_interval', '10s').replaceAll('$instance', '.+');

describe('Prometheus', { skip }, () => {
  it('finds nothing to say of the rules', () => {
    const { status, text } = promtool(['check', 'rules', rules]);
    assert.equal(status, 0, text);
    assert.match(text, /SUCCESS: \d+ rules found/);
  });

  it('finds nothing to say of our metrics, and of others only that they are not named as it would', async (t) => {
    const server = await start(t, [...sim, '--workers', '2', '-np', '4']);
    const stop = keepBusy(server);
    await server.until((metrics) => metrics.sum('chasqui_requests_finished_total') > 10);
    await stop();
    const page = async (names) => (await server.fetch(`/metrics?names=${names}`)).text();
    const ours = promtool(['check', 'metrics'], await page('chasqui'));
    assert.equal(ours.status, 0, ours.text);
    assert.equal(ours.text, '');
    const all = promtool(['check', 'metrics'], await page('all'));
    assert.equal(all.status, 3, 'the exit status of a lint finding, as docs/metrics.md says');
    for (const line of all.text.split('\n').filter((text) => text !== '')) {
      assert.match(line, /^(vllm|llamacpp):\w+ (metric names should not contain ':'|non-(counter|histogram and non-summary) metrics should not have|non-histogram|counter metrics should have|no help text|metric names should not|use base unit)/,
        'another project chose the name');
    }
  });

  it('has data for every query of the dashboard and every alert while the server works', async (t) => {
    // With all that has metrics of its own.
    const disk = mkdtempSync(path.join(os.tmpdir(), 'chasqui-prometheus-disk-'));
    t.after(() => rmSync(disk, { recursive: true, force: true, maxRetries: 20 }));
    const model = testModel('24m-f16');
    const projector = path.join(path.dirname(model), 'projectors', 'mmproj-random-24m.gguf');
    const seeing = ['-m', model, '--mmproj', projector, '-c', '4096', '-t', '1'];
    const server = await start(t, [...seeing, '-np', '4', '--cache-disk', `${disk}/c`, '--session-dir', `${disk}/s`]);
    const ask = await startPrometheus(t, server);
    const stop = keepBusy(server);
    t.after(stop);
    assert.ok(queries.length > 20);
    for (const { title, expr } of queries) {
      await until(async () => {
        const { result } = await ask('query', { query: filled(expr) });
        return result.some(({ value }) => Number.isFinite(Number(value[1])));
      }).catch((error) => assert.fail(`${title}: ${expr}\n${error.message}`));
    }
    const { groups } = await until(async () => {
      const found = await ask('rules');
      return found.groups[0].rules.every(({ health }) => health === 'ok') && found;
    });
    for (const { name, health, lastError } of groups[0].rules) assert.equal(health, 'ok', `${name}: ${lastError}`);
    const known = new Set(await ask('label/__name__/values'));
    for (const { query } of groups[0].rules) {
      for (const [name] of query.matchAll(/\b(chasqui_\w+|up)\b/g)) assert.ok(known.has(name), name);
    }
    await stop();
  });
});
