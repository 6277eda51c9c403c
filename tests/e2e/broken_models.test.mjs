// Broken files among the models of a folder: each is refused with a reason, and takes nothing with it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import * as test from 'node:test';

import { broken } from './broken_models.mjs';
import { ask, post } from './client.mjs';
import { folder } from './frames.mjs';
import { models } from './gguf.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;
const small = [...demo, '-np', '2', '-c', '1024'];
const good = path.join(models, 'chasqui-demo.gguf');
const question = { messages: [{ role: 'user', content: 'What is Chasqui?' }], max_tokens: 4 };
const chat = (server, model) => ask(server, '/v1/chat/completions', { model, ...question });

async function listed(server) {
  const { data } = await (await server.fetch('/v1/models')).json();
  return Object.fromEntries(data.map(({ id, status }) => [id, status]));
}

// Of these names, and a good one before and after them.
async function folderOf(context, names) {
  const made = fs.realpathSync(await folder(context));
  for (const name of names) fs.writeFileSync(path.join(made, `${name}.gguf`), broken[name]);
  for (const name of ['a', 'z']) fs.symlinkSync(good, path.join(made, `${name}.gguf`));
  return made;
}

describe('a broken file in a folder of models', () => {
  it('is refused with what is wrong with it, and the server goes on', async (t) => {
    const names = Object.keys(broken);
    const server = await start(t, [...small, '--models-dir', await folderOf(t, names)]);
    for (const name of names) {
      const response = await post(server, '/v1/chat/completions', { model: name, ...question });
      const { error } = await response.json();
      assert.equal(response.status, 500, name);
      assert.match(error.message, new RegExp(`^the model ${name} cannot be loaded: Cannot load the model ${name}\\.gguf: .{12}`), name);
      assert.equal((await server.fetch('/health')).status, 200, name);
      assert.equal((await chat(server, 'a')).model, 'a');
    }
    assert.equal((await chat(server, 'z')).model, 'z', 'one that was not loaded yet');
    const now = await listed(server);
    assert.deepEqual(names.map((name) => now[name].failed), names.map(() => true));
    assert.equal((await server.metrics()).sum('chasqui_model_load_failures_total'), names.length);
  });

  it('is failed from the start where it is the first, though libllama dies of it', async (t) => {
    const dir = await folderOf(t, ['no-layers']);
    fs.renameSync(path.join(dir, 'no-layers.gguf'), path.join(dir, '0.gguf'));
    const server = await start(t, [...small, '--models-dir', dir]);
    assert.equal((await ask(server, '/v1/chat/completions', question)).model, 'a');
    const { 0: first } = await listed(server);
    assert.equal(first.failed, true);
    assert.match(first.reason, /libllama failed on it \(.+\)\. The file is broken/);
  });
});
