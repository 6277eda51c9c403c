// Conversations about one picture, with projectors that encode: one whose rows are like tokens, one whose rows see each
// other, one that cuts pictures into tiles, and one whose positions have several dimensions.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { answer, ask, user } from './client.mjs';
import { about, encodings, png, projectors } from './pictures.mjs';
import { start, testModel } from './server.mjs';

const { describe, it } = test;
const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-'));
test.after(() => rmSync(folder, { recursive: true, maxRetries: 20 }));
const keys = path.join(folder, 'keys');
writeFileSync(keys, 'a name=ann\nb name=bob\nroot name=root admin=yes\n');

const cachedOf = ({ usage }) => usage.prompt_tokens_details.cached_tokens;

for (const [name, file, positions, parts] of projectors) {
  describe(`with ${file}`, async () => {
    const model = testModel(name);
    const text = ['-m', model, '-c', '4096', '-np', '2', '-t', '1', '--cache-disk', path.join(folder, file), '--api-key-file', keys];
    const flags = [...text, '--mmproj', path.join(path.dirname(model), 'projectors', `${file}.gguf`)];
    const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
    const open = async (context, how = flags) => Object.assign(await start(context, how), { key: 'root' });
    const picture = png(300, 120, 1);
    const messages = user(about(picture, 'What is it?'));
    const brief = { max_tokens: 4, ignore_eos: true };
    const turn = (server, key = 'a') => answer(server, messages, brief, as(key));
    let last;

    it('ten turns encode it once and read it once', async (t) => {
      const server = await open(t);
      let before = 0;
      for (let i = 0; i < 10; ++i) {
        last = await turn(server);
        if (i > 0) assert.ok(cachedOf(last) >= before, `${cachedOf(last)} of ${before} that the turn before had`);
        else assert.ok(last.usage.prompt_tokens > positions);
        before = last.usage.prompt_tokens;
        if (i < 9) messages.push({ role: 'assistant', content: last.text }, { role: 'user', content: `And ${i}?` });
      }
      assert.equal(await encodings(server), parts);
      const other = await answer(server, [...user(about(png(300, 120, 2), 'What is it?')), ...messages.slice(1)], brief, as('a'));
      assert.ok(cachedOf(other) < cachedOf(last) - positions, 'another picture is not the same');
      assert.equal(await encodings(server), 2 * parts);
      const elsewhere = await turn(server, 'b');
      assert.equal(cachedOf(elsewhere), 0);
      assert.equal(await encodings(server), 3 * parts, 'another tenant has it encoded for itself');
      assert.equal(elsewhere.text, last.text, 'what was found in the cache is what it would have been');
    });

    it('it is found on disk after a restart', async (t) => {
      const server = await open(t);
      const again = await turn(server);
      assert.ok(cachedOf(again) > positions, `${cachedOf(again)}`);
      assert.equal(await encodings(server), 0);
      assert.equal(again.text, last.text);
    });

    it('behind other words it is read from a file, not encoded, until its tenant has it erased', async (t) => {
      const otherwise = () => user([{ type: 'text', text: 'Quite another beginning.' }, ...about(picture, 'What is it?')]);
      const files = () => readdirSync(path.join(folder, file, 'encodings')).filter((each) => each !== 'lock').length;
      const first = await open(t);
      const before = await answer(first, otherwise(), brief, as('a'));
      assert.ok(cachedOf(before) < positions);
      assert.equal(await encodings(first), 0);
      assert.equal((await first.metrics()).value('chasqui_media_disk_read_total'), parts);
      assert.equal(files(), 3 * parts, 'two of ann, one of bob');
      const { n_erased: erased } = await ask(first, '/slots/0?action=erase', {}, as('a'));
      assert.ok(erased >= 2 * parts);
      assert.equal(files(), parts, 'bob has his');
      first.signal('SIGKILL');
      await first.ended;

      const second = await open(t);
      const anew = await answer(second, otherwise(), brief, as('a'));
      assert.equal(await encodings(second), parts);
      assert.equal(anew.text, before.text, 'from a file as from the projector');
      second.signal('SIGTERM');
      await second.ended;

      const blind = await open(t, [...text, '--no-mmproj']);
      assert.equal(files(), 2 * parts);
      await ask(blind, '/slots/0?action=erase', {}, as('b'));
      assert.equal(files(), parts, 'also by a server that reads text alone');
    });
  });
}
