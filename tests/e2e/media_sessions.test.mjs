// Sessions with pictures, read by projectors that encode: one whose rows are like tokens, one whose rows see each other,
// one that cuts pictures into tiles, and one whose positions have several dimensions.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, post, refused, user } from './client.mjs';
import { about, encodings, png, projectors } from './pictures.mjs';
import { start, testModel } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));

const message = (content) => ({ message: { role: 'user', content } });
const brief = { temperature: 0, max_tokens: 4, ignore_eos: true };
const say = (server, id, what, body = {}) => ask(server, `/v1/sessions/${id}/${what}`, body);
const textOf = (body) => body.choices[0].message.content;
const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;
const show = async (server, id) => (await server.fetch(`/v1/sessions/${id}`)).json();

for (const [name, file, positions, parts] of projectors) {
  describe(`with ${file}`, async () => {
    const model = testModel(name);
    const projector = ['--mmproj', path.join(path.dirname(model), 'projectors', `${file}.gguf`)];
    const dirs = ['--cache-disk', path.join(folder, file, 'kv'), '--session-dir', path.join(folder, file, 'sessions')];
    const flags = ['-m', model, '-c', '4096', '-np', '2', '-t', '1', ...dirs];
    const picture = png(300, 120, 1);
    const messages = user(about(picture, 'What is it?'));
    let id;
    let fork;
    let first;

    it('ten turns encode a picture once and read it once', async (t) => {
      const server = await start(t, [...flags, ...projector]);
      const whole = await answer(server, messages, brief);
      ({ id } = await ask(server, '/v1/sessions', { messages }));
      assert.equal((await show(server, id)).files, 1);
      for (let turn = 0; turn < 10; ++turn) {
        if (turn > 0) await say(server, id, 'append', message(`And ${turn}?`));
        const before = (await show(server, id)).tokens;
        const said = await say(server, id, 'generate', brief);
        if (turn === 0) {
          first = textOf(said);
          assert.equal(said.usage.prompt_tokens, whole.usage.prompt_tokens, 'as many as if it were sent whole');
        } else {
          assert.ok(cachedOf(said) > positions, `${cachedOf(said)} of ${before}`);
        }
      }
      const { id: other } = await ask(server, '/v1/sessions', { messages });
      const again = await say(server, other, 'generate', brief);
      assert.ok(cachedOf(again) > positions, 'a second session finds it');
      assert.equal(textOf(again), first);
      await server.fetch(`/v1/sessions/${other}`, { method: 'DELETE' });
      ({ id: fork } = await say(server, id, 'fork'));
      await say(server, fork, 'append', message(about(png(300, 120, 2), 'And this one?')));
      const forked = await say(server, fork, 'generate', brief);
      assert.ok(cachedOf(forked) > positions);
      assert.equal((await show(server, fork)).files, 2);
      assert.equal(await encodings(server), 2 * parts);
      assert.equal((await server.metrics()).value('chasqui_session_media_bytes'), 2 * picture.length + png(300, 120, 2).length);
    });

    it('it is there after a restart, and its KV on disk', async (t) => {
      const server = await start(t, [...flags, ...projector]);
      for (const [session, files] of [[id, 1], [fork, 2]]) {
        assert.equal((await show(server, session)).files, files);
        await say(server, session, 'append', message('Once more?'));
        const said = await say(server, session, 'generate', brief);
        assert.ok(cachedOf(said) > positions, `${cachedOf(said)}`);
      }
      assert.equal(await encodings(server), 0);
    });

    it('it is encoded again where nothing was kept', async (t) => {
      const server = await start(t, ['-m', model, '-c', '4096', '-np', '2', '-t', '1', ...dirs.slice(2), ...projector]);
      const said = await say(server, fork, 'generate', brief);
      assert.equal(cachedOf(said), 0);
      assert.equal(await encodings(server), 2 * parts);
      const { id: other } = await ask(server, '/v1/sessions', { messages });
      assert.equal(textOf(await say(server, other, 'generate', brief)), first);
    });

    it('what reads no pictures says so, and keeps the session', async (t) => {
      const server = await start(t, [...flags, '--no-mmproj']);
      const error = await refused(await post(server, `/v1/sessions/${id}/generate`, brief), 409);
      assert.match(error.message, /pictures or sounds that this server cannot read/);
      assert.equal((await show(server, id)).files, 1);
    });
  });
}

describe('another way of reading', async () => {
  const model = testModel('mrope');
  const flags = ['-m', model, '--mmproj', path.join(path.dirname(model), 'projectors', 'mmproj-random-mrope.gguf'),
    '-c', '4096', '-np', '1', '-t', '1', '--session-dir', path.join(folder, 'other')];
  let id;

  it('begins a session', async (t) => {
    const server = await start(t, flags);
    ({ id } = await ask(server, '/v1/sessions', { messages: user(about(png(300, 120, 1), 'What is it?')) }));
    assert.ok(textOf(await say(server, id, 'generate', brief)).length > 0);
  });

  it('does not go on with it', async (t) => {
    const server = await start(t, [...flags, '--image-max-tokens', '16']);
    const error = await refused(await post(server, `/v1/sessions/${id}/generate`, brief), 409);
    assert.match(error.message, /--image-max-tokens/);
  });
});

describe('what a session cannot take', async () => {
  const server = await start(test, ['--engine', 'sim', '-c', '8192', '-np', '1']);

  it('is refused when it comes, and the session goes on', async () => {
    const { id } = await ask(server, '/v1/sessions', { messages: user('a') });
    const url = (bytes) => [{ type: 'image_url', image_url: { url: `data:image/png;base64,${bytes.toString('base64')}` } }];
    const broken = await refused(await post(server, `/v1/sessions/${id}/append`, message(url(Buffer.from('hi')))), 400);
    assert.match(broken.message, /PNG or JPEG/);
    const pictures = (count) => Array(count).fill(url(png(8, 8, 1))[0]);
    await say(server, id, 'append', message(pictures(60)));
    const many = await refused(await post(server, `/v1/sessions/${id}/append`, message(pictures(5))), 400);
    assert.match(many.message, /at most 64 pictures and sounds/);
    assert.equal(many.param, 'messages');
    await say(server, id, 'append', message(pictures(4)));
    await say(server, id, 'generate', { max_tokens: 2 });
    assert.equal((await show(server, id)).files, 64);
    await server.fetch(`/v1/sessions/${id}`, { method: 'DELETE' });
    assert.equal((await server.metrics()).value('chasqui_session_media_bytes'), 0);
  });
});
