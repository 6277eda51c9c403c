// Spans for a collector (OTLP over HTTP), and a trace file for Chrome. The collector here is a stand-in that checks
// what a real one would refuse.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, user } from './client.mjs';
import { startWithSocket } from './frames.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;

class Collector {
  // `tls`: { key, cert }; plain without.
  static async start(t, tls) {
    const collector = new Collector();
    collector.spans = [];
    collector.bodies = [];
    collector.status = 200;
    const answer = (request, response) => collector.answer(request, response);
    collector.server = tls ? https.createServer(tls, answer) : http.createServer(answer);
    collector.server.listen(0, '127.0.0.1');
    await once(collector.server, 'listening');
    collector.url = `http://127.0.0.1:${collector.server.address().port}`;
    t.after(() => {
      collector.server.closeAllConnections();
      collector.server.close();
    });
    return collector;
  }

  async answer(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    if (this.silent) return; // never answers
    const body = Buffer.concat(parts).toString();
    this.bodies.push({ url: request.url, type: request.headers['content-type'], body });
    if (this.status === 200) {
      for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
        assert.ok(resource.attributes.some(({ key, value }) => key === 'service.name' && value.stringValue === 'chasqui'));
        for (const { spans } of scopeSpans) this.spans.push(...spans);
      }
    }
    response.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
  }

  // Waits for the collector's answers, never for a clock.
  async roots(server, count) {
    for (;;) {
      const roots = this.spans.filter(({ kind }) => kind === 2);
      if (roots.length >= count) return roots;
      await server.metrics();
    }
  }
}

const ms = (span) => Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6;
const attributes = (span) => Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

function check(span) {
  assert.match(span.traceId, /^[0-9a-f]{32}$/);
  assert.match(span.spanId, /^[0-9a-f]{16}$/);
  if (span.parentSpanId !== undefined) assert.match(span.parentSpanId, /^[0-9a-f]{16}$/);
  assert.match(span.startTimeUnixNano, /^\d{19}$/);
  assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano), JSON.stringify(span));
  assert.ok(span.name.length > 0 && [1, 2].includes(span.kind));
}

describe('spans', () => {
  it('of a request are a tree whose times add up to its own', async (t) => {
    const collector = await Collector.start(t);
    const server = await start(t, [...demo, '-np', '2', '--otlp-endpoint', collector.url, '--alias', 'little']);
    await answer(server, 'warm up', { max_tokens: 1 });
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const prompt = 'The runners carried messages along the roads. '.repeat(8);
    const body = { prompt, max_tokens: 300, ignore_eos: true, cache_prompt: false };
    const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01`, tracestate: 'vendor=x' };
    const began = performance.now();
    const { usage, timings } = await ask(server, '/v1/completions', body, { headers });
    const wall = performance.now() - began;
    await collector.roots(server, 2);
    const spans = collector.spans.filter(({ traceId }) => traceId === trace);
    for (const span of spans) check(span);
    assert.deepEqual(collector.bodies.map(({ url }) => url)[0], '/v1/traces');
    assert.equal(collector.bodies[0].type, 'application/json');

    const root = spans.find(({ kind }) => kind === 2);
    assert.equal(root.name, 'text_completion little');
    assert.equal(root.parentSpanId, '00f067aa0ba902b7');
    assert.equal(root.traceState, 'vendor=x');
    const facts = attributes(root);
    assert.equal(facts['gen_ai.operation.name'], 'text_completion');
    assert.equal(facts['gen_ai.request.model'], 'little');
    assert.equal(Number(facts['gen_ai.usage.input_tokens']), usage.prompt_tokens);
    assert.equal(Number(facts['gen_ai.usage.output_tokens']), 300);
    assert.equal(facts['gen_ai.response.finish_reasons'].values[0].stringValue, 'length');
    assert.equal(Number(facts['http.response.status_code']), 200);

    const phases = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
    assert.deepEqual(phases.map(({ name }) => name), ['tokenize', 'queue', 'prefill', 'decode', 'write']);
    assert.equal(phases[0].startTimeUnixNano, root.startTimeUnixNano);
    assert.equal(phases.at(-1).endTimeUnixNano, root.endTimeUnixNano);
    for (let i = 1; i < phases.length; ++i) assert.equal(phases[i].startTimeUnixNano, phases[i - 1].endTimeUnixNano);
    const sum = phases.reduce((total, span) => total + ms(span), 0);
    assert.ok(Math.abs(sum - ms(root)) <= 0.05 * ms(root), `${sum} of ${ms(root)} ms`);
    // Either process may wait for a core, the server also after the write whose end the client has read.
    assert.ok(ms(root) <= 2 * wall + 1000, `${ms(root)} of ${wall} ms`);
    const computed = timings.prompt_ms + timings.predicted_ms;
    assert.ok(computed > 0 && ms(root) >= 0.99 * computed, `${ms(root)} ms with ${computed} ms of computing`);

    const chunks = spans.filter(({ name }) => name === 'chunk');
    assert.ok(chunks.length >= 1);
    const tokens = chunks.reduce((total, chunk) => total + Number(attributes(chunk)['chasqui.tokens']), 0);
    assert.equal(tokens, usage.prompt_tokens);
  });

  it('are sent at the end, and not those that the caller does not want', async (t) => {
    const collector = await Collector.start(t);
    const server = await start(t, sim, { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/base/` });
    await answer(server, 'no', { max_tokens: 1 }, { headers: { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` } });
    await answer(server, 'yes', { max_tokens: 1 });
    await refused(await post(server, '/v1/chat/completions', { messages: user('x'), temperature: -1 }), 400);
    await server.stop();
    const roots = collector.spans.filter(({ kind }) => kind === 2);
    assert.equal(roots.length, 2, JSON.stringify(roots));
    assert.equal(collector.bodies[0].url, '/base/v1/traces');
    assert.equal(roots.filter(({ status }) => status?.code === 2).length, 1);
  });

  it('are dropped and counted when the collector fails, and no request waits', async (t) => {
    const collector = await Collector.start(t);
    collector.status = 500;
    const server = await start(t, [...sim, '--otlp-endpoint', collector.url]);
    await answer(server, 'one', { max_tokens: 1 });
    await server.until((metrics) => metrics.value('chasqui_traces_dropped_total', { reason: 'collector' }) === 1);
    collector.silent = true;
    await Promise.all(Array.from({ length: 10 }, (_, i) => answer(server, `${i}`, { max_tokens: 1 })));
  });

  it('go through TLS, and only to a collector that proves who it is', async (t) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-tls-'));
    t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
    const [key, cert] = ['key.pem', 'cert.pem'].map((name) => path.join(folder, name));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2',
      '-keyout', key, '-out', cert, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], { stdio: 'ignore' });
    const collector = await Collector.start(t, { key: readFileSync(key), cert: readFileSync(cert) });
    const { port } = collector.server.address();

    const known = await start(t, [...sim, '--otlp-endpoint', `https://localhost:${port}`], { SSL_CERT_FILE: cert });
    await answer(known, 'one', { max_tokens: 1 });
    const [root] = await collector.roots(known, 1);
    check(root);

    const dropped = (metrics) => metrics.value('chasqui_traces_dropped_total', { reason: 'collector' }) === 1;
    for (const [url, env] of [[`https://localhost:${port}`, {}], [`https://127.0.0.1:${port}`, { SSL_CERT_FILE: cert }]]) {
      const doubting = await start(t, [...sim, '--otlp-endpoint', url], env);
      await answer(doubting, 'two', { max_tokens: 1 });
      await doubting.until(dropped);
      await doubting.says(/TLS with .*certificate verify failed/);
    }
    assert.equal(collector.spans.filter(({ kind }) => kind === 2).length, 1, 'a stranger was told');
  });

  it('hang where a frame of the local socket says', async (t) => {
    const collector = await Collector.start(t);
    const server = await startWithSocket(t, [...sim, '--otlp-endpoint', collector.url]);
    const client = await server.client(t);
    const trace = 'b'.repeat(32);
    for (const traceparent of [`00-${trace}-${'c'.repeat(16)}-01`, 'nonsense']) {
      await client.text({ prompt: 'a', max_tokens: 1, traceparent, tracestate: 'vendor=x' });
    }
    const roots = await collector.roots(server, 2);
    const mine = roots.find(({ traceId }) => traceId === trace);
    assert.equal(mine.parentSpanId, 'c'.repeat(16));
    assert.equal(mine.traceState, 'vendor=x');
    assert.equal(roots.find(({ traceId }) => traceId !== trace).parentSpanId, undefined);
  });

  it('need an address that makes sense', async () => {
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--otlp-endpoint', 'ftp://collector']);
    assert.notEqual(code, 0);
    assert.match(stderr, /--otlp-endpoint.*http:\/\/HOST/);
  });
});

describe('the trace file', async () => {
  const server = await start(test, [...sim, '-np', '2']);

  it('has the steps and the requests of its time', async () => {
    const asked = server.fetch('/debug/trace?seconds=3');
    await server.until((metrics) => metrics.value('chasqui_http_exchanges_running') === 2, 'it has begun');
    const { usage } = await answer(server, 'Hello', { max_tokens: 5, ignore_eos: true });
    const response = await asked;
    assert.equal(response.status, 200);
    const { traceEvents } = await response.json();
    const steps = traceEvents.filter(({ ph, pid }) => ph === 'X' && pid === 1);
    assert.ok(steps.length >= usage.completion_tokens, JSON.stringify(steps));
    for (const { ts, dur, args } of steps) assert.ok(ts >= 0 && dur >= 0 && args.sequences >= 0);
    const phases = traceEvents.filter(({ ph, pid }) => ph === 'X' && pid === 2).map(({ name }) => name);
    assert.deepEqual(phases, ['tokenize', 'queue', 'prefill', 'decode', 'write']);
  });

  it('is refused for times that make no sense', async () => {
    for (const seconds of ['0', '61', 'x', '', '1.5']) {
      assert.match((await refused(await server.fetch(`/debug/trace?seconds=${seconds}`), 400)).message, /1 to 60/);
    }
  });
});
