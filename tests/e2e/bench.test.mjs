// `chasqui bench` against `chasqui serve`: the load generator counts what happened, and happens to test both.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;

function temporaryFolder(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'chasqui-bench-'));
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
  return folder;
}

async function bench(url, ...flags) {
  const { code, stdout, stderr } = await run(['bench', '--url', url, '--json', '-', ...flags]);
  assert.equal(stderr, '');
  return { code, ...JSON.parse(stdout) };
}

describe('bench', async () => {
  it('measures several groups at once', async (t) => {
    const server = await start(t, [...demo, '-np', '4']);
    const report = await bench(
      server.url, '--ignore-eos', '--warmup', '1', '--health-probes', '50', '--pid', `${server.pid}`,
      '--goodput', 'ttft:600000', '--load', 'name=closed,clients=3,requests=7,max-tokens=12,priority=interactive',
      '--load', 'name=open,rate=50,requests=5,max-tokens=3*2/6,prompt-words=5-40',
      '--load', 'name=whole,clients=1,requests=2,max-tokens=4,stream=0,start=0.05',
    );
    assert.equal(report.code, 0);
    const [closed, open, whole] = report.groups;
    assert.deepEqual([closed.name, open.name, whole.name], ['closed', 'open', 'whole']);
    assert.deepEqual([closed.requests, closed.ok, closed.output_tokens], [7, 7, 84]);
    // A deck of two threes and a six, dealt until five cards lie on the table.
    assert.deepEqual([open.requests, open.ok], [5, 5]);
    assert.ok(open.output_tokens >= 18 && open.output_tokens <= 21, `${open.output_tokens}`);
    assert.deepEqual([whole.requests, whole.ok, whole.output_tokens, whole.ttft_ms.count], [2, 2, 8, 0]);
    assert.equal(closed.ttft_ms.count, 7);
    assert.ok(closed.itl_ms.count > 0 && closed.itl_ms.max > 0 && closed.itl_ms.max >= closed.itl_ms.p50);
    assert.ok(closed.e2e_ms.p50 >= closed.ttft_ms.p50);
    assert.deepEqual([report.total.requests, report.total.ok, report.total.errors], [14, 14, 0]);
    assert.equal(report.total.goodput.share, 1);
    assert.ok(report.health.ms.count > 0 && report.health.errors === 0);
    assert.ok(report.server.cpu_s >= 0 && report.server.threads_most >= 3 && report.server.rss_most_bytes > 0);
    const metrics = await server.idle();
    assert.equal(metrics.value('chasqui_requests_finished_total', { reason: 'length' }), 15); // with the one to warm up
  });

  it('counts refusals, and comes again when it is told to', async (t) => {
    const server = await start(t, [...sim, '-np', '1', '-c', '500000', '--queue-requests', '1']);
    const load = 'clients=8,requests=8,max-tokens=400';
    const refused = await bench(server.url, '--ignore-eos', '--load', load);
    assert.equal(refused.code, 0);
    assert.ok(refused.total.ok >= 1 && refused.total.refused >= 1);
    assert.equal(refused.total.ok + refused.total.refused, 8);
    const answers = Object.values(refused.total.refusals);
    assert.equal(answers.reduce((sum, { with_retry_after: n }) => sum + n, 0), refused.total.refused);

    const patient = await bench(server.url, '--ignore-eos', '--load', 'clients=4,requests=4,max-tokens=400,retry=1');
    assert.deepEqual([patient.total.ok, patient.total.refused], [4, 0]);
    assert.ok(patient.total.retried >= 1);
    assert.equal(patient.total.retried_ok, patient.total.retried);
  });

  it('finds nothing wrong with the usage of answers that end by themselves', async (t) => {
    const server = await start(t, demo);
    const report = await bench(server.url, '--fields', '{"temperature":0}', '--load', 'clients=2,requests=8,max-tokens=256');
    assert.deepEqual([report.code, report.total.ok, report.total.counts_differ], [0, 8, 0]);
    const metrics = await server.idle();
    assert.ok(metrics.value('chasqui_requests_finished_total', { reason: 'stop' }) > 0, 'one that ended by itself');
  });

  it('has clients that leave', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '500000']);
    const load = 'clients=4,requests=12,max-tokens=100,abandon=1';
    const { total } = await bench(server.url, '--ignore-eos', '--load', load);
    assert.deepEqual([total.requests, total.ok, total.abandoned, total.errors], [12, 0, 12, 0]);
    await server.idle();
  });

  it('replays a trace, on a Unix socket, into a file', async (t) => {
    const folder = temporaryFolder(t);
    const socket = path.join(folder, 'chasqui.sock');
    const trace = path.join(folder, 'trace.jsonl');
    const json = path.join(folder, 'report.json');
    await start(t, [...sim, '--unix-socket', socket]);
    const lines = [
      { at_ms: 0, prompt_words: 5, max_tokens: 3, class: 'interactive' },
      { at_ms: 5, prompt: 'say: as it was recorded', max_tokens: 30 },
      { at_ms: 9.5, prompt_words: 50, max_tokens: 3, class: 'interactive' },
    ];
    writeFileSync(trace, lines.map((line) => JSON.stringify(line)).join('\n'));
    const flags = ['--url', `unix:${socket}`, '--api', 'completions', '--trace', trace, '--json', json];
    const { code, stdout } = await run(['bench', ...flags]);
    assert.equal(code, 0);
    assert.match(stdout, /trace-interactive\n {2}requests 2, ok 2/);
    const { groups } = JSON.parse(readFileSync(json, 'utf8'));
    assert.deepEqual(groups.map(({ name, ok }) => [name, ok]), [['trace-interactive', 2], ['trace', 1]]);
  });

  it('fails when nothing succeeds', async () => {
    const report = await bench('http://127.0.0.1:1', '--load', 'clients=1,requests=2');
    assert.equal(report.code, 1);
    assert.deepEqual(report.total.error_kinds, { connect: 2 });
  });

  it('says what is wrong with its flags', async () => {
    const cases = [
      [[], /--load or --trace/],
      [['--load', 'clients=none'], /--load: clients must be 1 to 100000, not "none"/],
      [['--load', 'name=a', '--load', 'name=a'], /two groups have the name a/],
      [['--load', '', '--url', 'https://example.org'], /--url: .* must be http/],
      [['--load', '', '--goodput', 'speed:1'], /--goodput: .* must be ttft, itl, tpot or e2e/],
      [['--load', '', '--fields', '[1]'], /--fields: must be a JSON object/],
      [['--load', '', '--pid', '2147483647'], /--pid: there is no process/],
      [['--trace', '/nowhere'], /--trace: cannot read/],
    ];
    for (const [flags, message] of cases) {
      const { code, stderr } = await run(['bench', ...flags]);
      assert.match(stderr, message);
      assert.equal(code, 2, flags.join(' '));
    }
  });
});
