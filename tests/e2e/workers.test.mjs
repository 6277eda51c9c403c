// --workers: several contexts that share one model look like one server from outside.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { answer, ask, endless, post, refused, streamChat } from './client.mjs';
import { binary, demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const two = ['--workers', '2'];
const model = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../models/demo/chasqui-demo.gguf');
const byWorker = (metrics, name, labels) => metrics.all(`chasqui_${name}`, labels).map(({ value }) => value);

describe('two workers', async () => {
  const server = await start(test, [...demo, ...two, '-np', '4', '-c', '2048']);
  const alone = await start(test, [...demo, '-np', '4', '-c', '2048']);

  it('have the slots and cells of one between them', async () => {
    const props = await (await server.fetch('/props')).json();
    assert.equal(props.workers, 2);
    assert.equal(props.total_slots, 4);
    assert.deepEqual(props.kv,
      { layout: 'stream', cells: 2048, cells_per_slot: 512, trims_anywhere: true, cuts_snapshots: true, shifts: false });
    assert.equal((await (await alone.fetch('/props')).json()).workers, 1);
    assert.match(server.stdout.join('\n'), /4 slots of 512 tokens of 2 workers/);
    assert.deepEqual(await (await server.fetch('/health')).json(), { status: 'ok' });
    await refused(await post(server, '/v1/completions', { prompt: Array(512).fill(100) }), 400);
  });

  it('give the answers that one gives, and both work', async () => {
    const questions = ['What is Chasqui?', 'How do I stream answers?', 'Who are you?', 'How do I see the metrics?'];
    const fields = { max_tokens: 24 };
    const expected = new Map();
    for (const question of questions) expected.set(question, (await answer(alone, question, fields)).text);
    const jobs = Array.from({ length: 16 }, async (_, i) => {
      const question = questions[i % questions.length];
      if (i % 2 === 0) return [question, (await answer(server, question, fields)).text];
      return [question, (await (await streamChat(server, question, fields)).collect()).text];
    });
    for (const [question, text] of await Promise.all(jobs)) assert.equal(text, expected.get(question), question);
    const tokens = byWorker(await server.idle(), 'generation_tokens_total');
    assert.equal(tokens.length, 2);
    for (const count of tokens) assert.ok(count > 0, `${tokens}`);
  });

  it('say which of them is meant in the metrics, and one alone does not', async () => {
    const metrics = await server.metrics();
    const labels = metrics.all('chasqui_kv_slots').map((sample) => sample.labels);
    assert.deepEqual(labels, [{ worker: '0' }, { worker: '1' }]);
    assert.deepEqual(byWorker(metrics, 'kv_slots'), [2, 2]);
    assert.deepEqual((await alone.metrics()).all('chasqui_kv_slots').map((sample) => sample.labels), [{}]);
    assert.equal((await alone.metrics()).all('chasqui_placements_total').length, 0);
  });

  it('give a prefix that one has computed to that one', async () => {
    const messages = (question) => [
      { role: 'system', content: 'You answer like a runner of the Inca road system, out of breath. '.repeat(4) },
      { role: 'user', content: question },
    ];
    await answer(server, messages('Who are you?'), { max_tokens: 4 });
    const before = await server.idle();
    for (const question of ['Where do you run?', 'What is it that you carry?', 'Is it far?', 'What is Chasqui?']) {
      const { usage } = await answer(server, messages(question), { max_tokens: 4 });
      assert.ok(usage.prompt_tokens_details.cached_tokens > 32, JSON.stringify(usage));
    }
    const after = await server.idle();
    const worked = byWorker(after, 'prompt_tokens_total').map((n, i) => n - byWorker(before, 'prompt_tokens_total')[i]);
    assert.equal(worked.filter((tokens) => tokens > 0).length, 1, `${worked}`);
    assert.ok(after.value('chasqui_placements_total', { reason: 'prefix' }) >= 4);
  });

  it('both give their slots back when clients leave', async (t) => {
    // Slots in which no stream comes to its end before all have begun, and clients that read, so that none is cut.
    const roomy = await start(t, [...demo, ...two, '-np', '4', '-c', '32768']);
    const streams = await Promise.all([1, 2, 3, 4].map((i) => streamChat(roomy, `go on ${i}`, endless)));
    for (const stream of streams) await stream.nextText();
    const reading = streams.map((stream) => assert.rejects(stream.collect()));
    assert.deepEqual(byWorker(await roomy.metrics(), 'kv_slots_used'), [2, 2]);
    for (const stream of streams) stream.leave();
    await Promise.all(reading);
    await roomy.idle();
    await roomy.until((m) => m.value('chasqui_dispatched_requests') === 0, 'the dispatcher forgets them');
    await roomy.until((m) => m.sum('chasqui_requests_finished_total', { reason: 'cancelled' }) === 4);
  });
});

describe('workers that are told to stop', async () => {
  it('finish what is inside, each its own and what waits', async (t) => {
    const server = await start(t, [...sim, '--sim-step', '1', ...two, '-np', '2', '-c', '40000']);
    const fields = { ignore_eos: true, max_tokens: 4000 };
    const streams = await Promise.all([1, 2].map((i) => streamChat(server, `stream ${i}`, fields)));
    for (const stream of streams) await stream.nextText();
    const read = Promise.all(streams.map((stream) => stream.collect())); // from now on, so that none is cut as unread
    read.catch(() => {});
    assert.deepEqual(byWorker(await server.metrics(), 'requests_running'), [1, 1]);
    const queued = answer(server, 'say: it was worth the wait');
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting') === 1);
    server.signal('SIGTERM');
    await read;
    for (const stream of streams) assert.equal(stream.finish, 'length');
    assert.equal((await queued).text, 'it was worth the wait');
    assert.deepEqual(await server.ended, { code: 0, signal: null });
  });
});

describe('the flag', async () => {
  it('may come from the environment', async (t) => {
    const server = await start(t, sim, { CHASQUI_WORKERS: '3' });
    const props = await (await server.fetch('/props')).json();
    assert.equal(props.workers, 3);
    assert.equal(props.total_slots % 3, 0);
    assert.equal((await answer(server, 'say: here')).text, 'here');
  });

  it('wants slots that can be divided evenly, and says which flags do not go together', async () => {
    for (const slots of ['5', '1']) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', ...two, '-np', slots]);
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`--parallel ${slots} .*--workers 2`));
    }
    const { code, stderr } = await run(['serve', ...sim, '--port', '0', ...two, '-np', '4', '-c', '7']);
    assert.equal(code, 2);
    assert.match(stderr, /--ctx-size 7.*--parallel/);
  });

  it('wants at least one', async () => {
    for (const count of ['0', '-1', 'many', '65']) {
      const { code, stderr } = await run(['serve', ...sim, '--port', '0', '--workers', count]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /--workers/);
    }
  });
});

// All pages of the file that are in memory, over all places where it is mapped.
async function residentOf(server, file) {
  const maps = await readFile(`/proc/${server.pid}/smaps`, 'utf8');
  let inside = false;
  let kilobytes = 0;
  for (const line of maps.split('\n')) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) inside = line.endsWith(file);
    if (inside && line.startsWith('Rss:')) kilobytes += Number(/(\d+) kB/.exec(line)[1]);
  }
  return kilobytes * 1024;
}

// Memory of the process that is in use: VmRSS, or the part of it that belongs to no file (RssAnon).
async function memoryOf(server, field) {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)[1]) * 1024;
}

const noProc = process.platform !== 'linux' && '/proc is needed';
const mkmodel = path.join(path.dirname(binary), 'mkmodel');

describe('the weights', { skip: noProc }, async () => {
  it('are mapped once, however many workers use them', async (t) => {
    const size = (await readFile(model)).length;
    const resident = [];
    for (const count of ['1', '2', '4']) {
      const server = await start(t, [...demo, '-m', model, '--workers', count, '-np', '4', '-c', '1024']);
      await Promise.all([1, 2, 3, 4].map((i) => answer(server, `Question ${i}`, { max_tokens: 4 })));
      resident.push(await residentOf(server, model));
      await server.stop();
    }
    for (const bytes of resident) {
      assert.ok(bytes > size / 2, `the model is mapped: ${resident} of ${size}`);
      assert.ok(bytes < size + 64 * 1024, `once: ${resident} of ${size}`);
    }
  });

  // A model whose weights are most of what the process needs, so that a second copy could not hide.
  it('are most of the memory, and in it once, be they mapped or read', { skip: !existsSync(mkmodel) && 'no mkmodel' },
    async (t) => {
      const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
      t.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
      const file = path.join(folder, 'random.gguf');
      await promisify(execFile)(mkmodel, ['random-24m-f16', file]);
      const size = statSync(file).size;
      const context = ['-t', '1', '-m', file, '-np', '4', '-c', '1024', '-b', '64', '--cache-ram', '0'];
      for (const [flags, field] of [[[], 'VmRSS'], [['--no-mmap'], 'RssAnon']]) {
        const used = [];
        for (const count of ['1', '4']) {
          const server = await start(t, [...context, ...flags, '--workers', count]);
          await Promise.all([1, 2, 3, 4].map((i) => ask(server, '/v1/completions',
            { prompt: Array(100).fill(1000 + i), max_tokens: 8, ignore_eos: true, temperature: 0 })));
          const tokens = byWorker(await server.metrics(), 'generation_tokens_total');
          assert.deepEqual(tokens, Array(Number(count)).fill(32 / count), 'all of them have used the weights');
          used.push(await memoryOf(server, field));
          await server.stop();
        }
        assert.ok(used[0] > size, `${field}: ${used} with weights of ${size}`);
        // Three workers more; with weights of their own they would need three times the size more.
        assert.ok(used[1] - used[0] < size, `${field}: ${used} with weights of ${size}`);
      }
    });
});
