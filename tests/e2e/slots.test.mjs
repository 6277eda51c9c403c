// llama-server's view of the slots.
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, streamChat, user } from './client.mjs';
import { sim, start } from './server.mjs';

const { describe, it } = test;
const slotsOf = async (server, options) => (await server.fetch('/slots', options)).json();

describe('GET /slots', async () => {
  const server = await start(test, [...sim, '-np', '2', '-c', '8192']);

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
    const keyed = await start(t, [...sim, '--api-key', 'a,b']);
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
    const several = await start(t, [...sim, '-np', '4', '-c', '8192', '--workers', '2']);
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
    t.after(() => fs.rm(dir, { recursive: true, force: true }));
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
    assert.ok((await ask(second, '/slots/3?action=erase', {})).n_erased > 0);
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
