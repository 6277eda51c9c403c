// llama-server's view of the slots.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, streamChat, user } from './client.mjs';
import { demo, run, sim, start } from './server.mjs';

const { describe, it } = test;
const slotsOf = async (server, options) => (await server.fetch('/slots', options)).json();

describe('erasing slots', async () => {
  it('keeps no thread waiting for the worker, and so delays nothing else', async (t) => {
    const server = await start(t, [...sim, '-np', '2', '-c', '8192', '--stuck-after', '0.5']);
    const hanging = post(server, '/v1/chat/completions', { messages: user('hang: 4') });
    while ((await server.fetch('/health')).status === 200) { /* the step has not begun, or not lasted long enough */ }
    let erased = 0;
    const jobs = Array.from({ length: 8 }, async () => {
      const response = await post(server, '/slots/0?action=erase', {});
      erased += 1;
      assert.equal(response.status, 200);
      assert.deepEqual(Object.keys(await response.json()), ['id_slot', 'n_erased']);
    });
    assert.ok((await ask(server, '/tokenize', { content: 'x' })).tokens.length > 0);
    assert.equal(erased, 0, 'the step had ended before');
    await Promise.all(jobs);
    await (await hanging).text();
  });
});

describe('GET /slots', async () => {
  const slow = [...sim, '--sim-step', '5']; // streams that are not read are cut some seconds later
  const server = await start(test, [...slow, '-np', '2', '-c', '8192']);

  it('shows free slots', async () => {
    const slots = await slotsOf(server);
    assert.deepEqual(slots, [0, 1].map((id) => ({ id, n_ctx: 4096, speculative: false, is_processing: false })));
  });

  it('shows who runs, how far it is, and not what it says', async () => {
    const long = { max_tokens: 3000, ignore_eos: true, temperature: 0 };
    const streams = [await streamChat(server, user('a secret'), { ...long, seed: 7, top_k: 3 }),
      await streamChat(server, user('another secret'), long)];
    for (const stream of streams) await stream.nextText();
    const slots = await slotsOf(server);
    assert.equal((await server.fetch('/slots?fail_on_no_slot=1')).status, 503);
    for (const slot of slots) {
      assert.equal(slot.is_processing, true);
      assert.ok(slot.id_task > 0 && slot.n_prompt_tokens > 3);
      assert.equal(slot.n_prompt_tokens_processed + slot.n_prompt_tokens_cache, slot.n_prompt_tokens);
      const [{ n_decoded: said, n_remain: left, has_next_token: more }] = slot.next_token;
      assert.ok(said > 0 && said < 3000 && left > 0 && left < 3000 && more);
      assert.equal(slot.params.n_predict, 3000);
    }
    assert.ok(slots.some(({ params }) => params.seed === 7 && params.top_k === 3));
    assert.doesNotMatch(JSON.stringify(slots), /secret/);
    for (const stream of streams) stream.controller.abort();
    await server.idle();
    assert.ok((await slotsOf(server)).every((slot) => !slot.is_processing));
    assert.equal((await server.fetch('/slots?fail_on_no_slot=1')).status, 200);
  });

  it('does not show one tenant what another asks for', async (t) => {
    const keyed = await start(t, [...slow, '--api-key', 'a,b']);
    keyed.key = 'a';
    const bearer = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const fields = { max_tokens: 3000, ignore_eos: true };
    const stream = await streamChat(keyed, user('x'), fields, bearer('a'));
    await stream.nextText();
    const busy = (slots) => slots.find((slot) => slot.is_processing);
    assert.ok(busy(await slotsOf(keyed, bearer('a'))).params);
    assert.equal(busy(await slotsOf(keyed, bearer('b'))).params, undefined);
    assert.equal((await keyed.fetch('/slots')).status, 401);
    stream.controller.abort();
  });

  it('shows those of all workers', async (t) => {
    const several = await start(t, [...slow, '-np', '4', '-c', '8192', '--workers', '2']);
    const long = { max_tokens: 1500, ignore_eos: true };
    const streams = [await streamChat(several, user('one'), long), await streamChat(several, user('two'), long)];
    for (const stream of streams) await stream.nextText();
    const slots = await slotsOf(several);
    assert.deepEqual(slots.map(({ id }) => id), [0, 1, 2, 3]);
    assert.deepEqual(slots.filter((slot) => slot.is_processing).map(({ id }) => id), [0, 2]);
    for (const stream of streams) stream.controller.abort();
  });

  it('can be switched off', async (t) => {
    const quiet = await start(t, [...sim, '--no-slots']);
    await refused(await quiet.fetch('/slots'), 501);
  });
});

describe('POST /slots/{id}', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '8192']);

  it('?action=erase forgets what was computed', async () => {
    const text = 'a question that is long enough to be kept, and is asked again and again in the same words';
    const cached = async () => (await answer(server, text, { max_tokens: 4 })).usage.prompt_tokens_details.cached_tokens;
    assert.equal(await cached(), 0);
    assert.ok(await cached() > 0);
    const erased = await ask(server, '/slots/1?action=erase', {});
    assert.equal(erased.id_slot, 1);
    assert.ok(erased.n_erased > 0);
    assert.equal(await cached(), 0);
  });

  it('?action=erase forgets it on disk, too', async (t) => {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    const flags = [...sim, '-np', '2', '-c', '8192', '--workers', '2', '--cache-disk', dir];
    const files = async () => (await fs.readdir(path.join(dir, 'snapshots'))).filter((name) => name.endsWith('.kv'));
    const text = 'a question that is long enough for a file, and is asked again and again in the very same words. '.repeat(4);
    const cachedBy = async (one) => (await answer(one, text, { max_tokens: 4 })).usage.prompt_tokens_details.cached_tokens;
    const first = await start(t, flags);
    assert.equal(await cachedBy(first), 0);
    await first.stop();
    assert.ok((await files()).length > 0);
    const second = await start(t, flags);
    assert.ok((await ask(second, '/slots/0?action=erase', {})).n_erased > 0);
    assert.equal(await cachedBy(second), 0);
    assert.ok((await ask(second, '/slots/1?action=erase', {})).n_erased > 0);
    await second.stop();
    assert.deepEqual(await files(), []);
  });

  it('says what it cannot do', async () => {
    for (const [target, status] of [['/slots/2?action=erase', 400], ['/slots/x?action=erase', 400], ['/slots/0', 400],
      ['/slots/0?action=fly', 400], ['/slots/0?action=save', 501], ['/slots/0?action=restore', 501]]) {
      await refused(await post(server, target, { filename: 'x' }), status);
    }
  });
});

describe('--slot-save-path', async () => {
  const story = 'The relay runner waits at the post until the next one comes into sight. '.repeat(12);

  async function folder(t) {
    const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
    t.after(() => fs.rm(dir, { recursive: true, force: true, maxRetries: 20 }));
    return dir;
  }
  const complete = async (server, fields = {}, options = {}) => {
    const body = await ask(server, '/completion', { prompt: story, n_predict: 8, temperature: 0, ...fields }, options);
    return { text: body.content, cached: body.timings.cache_n };
  };
  const act = (server, action, filename, slot = 0, options = {}) =>
    post(server, `/slots/${slot}?action=${action}`, { filename }, options);
  const done = async (response) => {
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };
  const fileIn = async (dir) => {
    const names = (await fs.readdir(path.join(dir, 'slots'))).filter((name) => name !== 'lock');
    assert.equal(names.length, 1);
    return path.join(dir, 'slots', names[0]);
  };

  it('saves what a slot has computed, and a prompt finds it after a restart', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...demo, '--slot-save-path', dir]);
    const before = await complete(first, { id_slot: 1 });
    assert.equal(before.cached, 0);
    const saved = await done(await act(first, 'save', 'story.bin', 1));
    assert.deepEqual(Object.keys(saved), ['id_slot', 'filename', 'n_saved', 'n_written', 'timings']);
    assert.deepEqual([saved.id_slot, saved.filename], [1, 'story.bin']);
    assert.ok(saved.n_saved > 100 && saved.timings.save_ms >= 0);
    assert.equal(saved.n_written, (await fs.stat(await fileIn(dir))).size);
    await first.stop();

    const second = await start(t, [...demo], { LLAMA_ARG_SLOT_SAVE_PATH: dir });
    const restored = await done(await act(second, 'restore', 'story.bin', 0));
    assert.deepEqual(Object.keys(restored), ['id_slot', 'filename', 'n_restored', 'n_read', 'timings']);
    assert.deepEqual([restored.n_restored, restored.n_read], [saved.n_saved, saved.n_written]);
    assert.ok(restored.timings.restore_ms >= 0);
    const after = await complete(second);
    assert.ok(after.cached > 100, `${after.cached} tokens are known again`);
    assert.equal(after.text, before.text);
    const metrics = await second.metrics();
    assert.equal(metrics.value('chasqui_slots_restored_total'), 1);
  });

  it('brings back in the same process what was erased, and saves it again', async (t) => {
    const dir = await folder(t);
    const server = await start(t, [...demo, '--slot-save-path', dir]);
    const before = await complete(server);
    const { n_saved: tokens } = await done(await act(server, 'save', 'a'));
    await ask(server, '/slots/0?action=erase', {});
    assert.equal((await refused(await act(server, 'save', 'b'), 400)).param, 'id_slot');
    await done(await act(server, 'restore', 'a'));
    assert.equal((await done(await act(server, 'save', 'b'))).n_saved, tokens);
    const after = await complete(server);
    assert.ok(after.cached > 100);
    assert.equal(after.text, before.text);
  });

  it('refuses a damaged, foreign or missing file, which costs nothing', async (t) => {
    const dir = await folder(t);
    const first = await start(t, [...demo, '--slot-save-path', dir]);
    const { text } = await complete(first);
    await done(await act(first, 'save', 'x'));
    const file = await fileIn(dir);
    const good = await fs.readFile(file);
    for (const at of [0, 30, 110, good.length - 1]) {
      const bad = Buffer.from(good);
      bad[at] ^= 1;
      await fs.writeFile(file, bad);
      const error = await refused(await act(first, 'restore', 'x'), 400);
      assert.equal(error.param, 'filename', `byte ${at}`);
    }
    await fs.writeFile(file, good.subarray(0, good.length / 2));
    await refused(await act(first, 'restore', 'x'), 400);
    await refused(await act(first, 'restore', 'y'), 404);
    await ask(first, '/slots/0?action=erase', {});
    const fresh = await complete(first);
    assert.deepEqual(fresh, { text, cached: 0 });
    await fs.writeFile(file, good);
    await first.stop();
    const other = await start(t, [...demo, '--slot-save-path', dir, '-ctk', 'q8_0', '-fa', 'on']);
    await refused(await act(other, 'restore', 'x'), 400);
  });

  it('gives no tenant what another has said or saved', async (t) => {
    const dir = await folder(t);
    const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const server = await start(t, [...demo, '--slot-save-path', dir, '--api-key', 'alice,bob']);
    server.key = 'alice';
    await complete(server, {}, as('alice'));
    await refused(await act(server, 'save', 'x', 0, as('bob')), 400);
    await done(await act(server, 'save', 'x', 0, as('alice')));
    await refused(await act(server, 'restore', 'x', 0, as('bob')), 404);
    await ask(server, '/slots/0?action=erase', {}, as('alice'));
    await done(await act(server, 'restore', 'x', 0, as('alice')));
    assert.equal((await complete(server, {}, as('bob'))).cached, 0);
    assert.ok((await complete(server, {}, as('alice'))).cached > 100);
    await refused(await act(server, 'save', 'x'), 401);
  });

  it('takes names, and no paths', async (t) => {
    const dir = await folder(t);
    const server = await start(t, [...sim, '--slot-save-path', dir]);
    for (const filename of ['../x', '/etc/passwd', 'a/b', 'a\\b', '..', '.', '', 'a\n', 'a\u0000', 'x.part', ' x', 'x'.repeat(129), 7,
      undefined, ['x']]) {
      for (const action of ['save', 'restore']) {
        assert.equal((await refused(await act(server, action, filename), 400)).param, 'filename', String(filename));
      }
    }
    await refused(await post(server, '/slots/0?action=save', '{'), 400);
    assert.deepEqual(await fs.readdir(path.join(dir, 'slots')), ['lock']);
  });

  it('needs a cache, and no client may save where all share one', async (t) => {
    const dir = await folder(t);
    const none = await run(['serve', ...demo, '--port', '0', '--slot-save-path', dir, '--cache-ram', '0']);
    assert.equal(none.code, 2);
    assert.match(none.stderr, /--slot-save-path/);
    const shared = await start(t, [...sim, '--slot-save-path', dir, '--cache-shared', '--api-key', 'a']);
    shared.key = 'a';
    await refused(await act(shared, 'save', 'x', 0, { headers: { authorization: 'Bearer a' } }), 403);
  });
});
