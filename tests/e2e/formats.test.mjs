// Every format of calls and reasoning that llama-common knows, end to end: the simulated engine has a real template and
// says, in its own way, what that template writes; clients see calls, reasoning and content, streamed and whole.
// The templates are those of the pinned llama.cpp source, where that is there.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { ask, post } from './client.mjs';
import { Server } from './server.mjs';

const { describe, it } = test;

function templateFiles() {
  const cache = path.join(process.env.CHASQUI_CACHE ?? path.join(homedir(), '.cache/chasqui'), 'src');
  if (!existsSync(cache)) return [];
  const folders = readdirSync(cache).sort().map((name) => path.join(cache, name, 'models/templates')).filter(existsSync);
  if (folders.length === 0) return [];
  const folder = folders.at(-1);
  return readdirSync(folder).filter((name) => name.endsWith('.jinja')).sort().map((name) => path.join(folder, name));
}

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties).slice(0, 1) });
const tools = [
  ['weather', 'Looks out of the window.', object({ city: { type: 'string' }, days: { type: 'integer' } })],
  ['note', 'Writes something down.', object({ text: { type: 'string' } })],
].map(([name, description, parameters]) => ({ type: 'function', function: { name, description, parameters } }));
const calls = [['weather', { city: 'Lima <3 "x"', days: 2 }], ['note', { text: 'one\ntwo < 5' }]];
const asCall = ([name, args], i) => ({ id: `abcdefgh${i + 1}`, type: 'function', function: { name, arguments: JSON.stringify(args) } });

const say = (text) => [{ role: 'user', content: `say:${Buffer.from(text).toString('hex')};` }];
const question = { role: 'user', content: 'How is the weather in Lima?' };
// What some templates write before and after thoughts. Those of a template that has others are not tried.
const thoughts = [['<think>', '</think>'], ['[THINK]', '[/THINK]'], ['<seed:think>', '</seed:think>'], ['<|inner_prefix|>', '<|inner_suffix|>'],
  ['<|START_THINKING|>', '<|END_THINKING|>'], ['<|channel|>analysis<|message|>', '<|end|><|start|>assistant<|channel|>final<|message|>'],
  ['<|channel>thought', '<channel|>'], ['<think_never_used_51bce0c785ca2f68081bfa7d91973934>', '</think_never_used_51bce0c785ca2f68081bfa7d91973934>']];

// Whole, and streamed: { content, reasoning, calls: [[name, arguments]], finish }.
async function whole(server, body) {
  const { choices: [{ message, finish_reason: finish }] } = await ask(server, '/v1/chat/completions', body);
  return {
    content: message.content ?? '', reasoning: message.reasoning_content ?? '', finish,
    calls: (message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
  };
}

async function streamed(server, body) {
  const response = await post(server, '/v1/chat/completions', { ...body, stream: true });
  assert.equal(response.status, 200);
  const out = { content: '', reasoning: '', finish: null, calls: [] };
  const ids = [];
  let pieces = 0;
  for (const line of (await response.text()).split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const { choices: [choice] } = JSON.parse(line.slice(6));
    if (!choice) continue;
    out.content += choice.delta.content ?? '';
    out.reasoning += choice.delta.reasoning_content ?? '';
    out.finish ??= choice.finish_reason;
    for (const { index, id, function: { name, arguments: args } } of choice.delta.tool_calls ?? []) {
      if (id !== undefined) {
        assert.equal(index, out.calls.length, 'calls come one after the other');
        assert.ok(!ids.includes(id) && id.length > 0, `each has an id of its own: ${ids} ${id}`);
        ids.push(id);
        out.calls.push([name, '']);
      } else {
        assert.equal(index, out.calls.length - 1, 'what follows belongs to the last');
      }
      out.calls[index][1] += args ?? '';
      ++pieces;
    }
  }
  assert.ok(pieces >= out.calls.length);
  return out;
}

// What the template makes of an assistant's message, as its model would say it; undefined where it knows no such thing.
async function written(server, message) {
  const render = async (messages, more) => {
    const response = await post(server, '/apply-template', { messages, tools, ...more });
    return response.status === 200 ? (await response.json()).prompt : undefined;
  };
  const begin = await render([question], {});
  const at = (last) => render([question, last], { add_generation_prompt: false, continue_final_message: false });
  const plain = await at({ role: 'assistant', content: 'ZZZ' });
  const all = await at({ role: 'assistant', ...message });
  if (!begin || !plain?.includes('ZZZ') || !all?.startsWith(begin)) return undefined;
  const end = plain.slice(plain.lastIndexOf('ZZZ') + 3);
  const text = all.slice(begin.length);
  // Tokens that end a turn with calls where their models say them; the vocabulary here has not got them.
  return (end && text.endsWith(end) ? text.slice(0, -end.length) : text).replace(/(<\|eom_id\|>|<\|tool_response>)$/, '');
}

async function tryCalls(server, tried) {
  for (const [count, content] of [[2, 'I look: 1 < 2.'], [2, ''], [1, 'I look: 1 < 2.'], [1, '']]) {
    const wanted = calls.slice(0, count);
    const text = await written(server, { content, tool_calls: wanted.map(asCall) });
    if (!text || (content && text.endsWith(content))) continue; // it is said before calls, if at all
    const body = { messages: say(text), tools, temperature: 0, max_tokens: 2000, cache_prompt: false };
    const found = await whole(server, body);
    // Where the end of a turn with calls is not that of one without, the text is not what a model would say.
    if (found.calls.length === 0) continue;
    assert.deepEqual(await streamed(server, body), found);
    assert.equal(found.finish, 'tool_calls');
    for (const [name, args] of found.calls) {
      assert.ok(['weather', 'note'].includes(name), name);
      assert.equal(typeof JSON.parse(args), 'object');
    }
    tried.calls += 1;
    const same = JSON.stringify(found.calls.map(([name, args]) => [name, JSON.parse(args)])) === JSON.stringify(wanted);
    if (same) tried.complete += 1;
    return;
  }
}

async function tryReasoning(server, tried) {
  const begun = (await ask(server, '/apply-template', { messages: [question] })).prompt;
  for (const [open, close] of thoughts) {
    const text = `${begun.trimEnd().endsWith(open) ? '' : open}\nI wonder: 1 < 2, [x].\n${close}\n\nIt is a string.`;
    const body = { messages: say(text), temperature: 0, max_tokens: 2000, cache_prompt: false };
    const found = await whole(server, body);
    if (!found.reasoning.includes('I wonder: 1 < 2, [x].') || found.content === '') continue; // it has other marks
    assert.ok(found.content.includes('It is a string.') && !found.content.includes('I wonder'), found.content);
    assert.deepEqual(await streamed(server, body), found);
    tried.reasoning += 1;
    return;
  }
}

describe('every format', async () => {
  const files = templateFiles();
  const tried = { calls: 0, complete: 0, reasoning: 0 };
  for (const file of files) {
    it(path.basename(file), async () => {
      const server = new Server(['--engine', 'sim', '-c', '16384', '-np', '1', '--chat-template-file', file], {});
      await server.listening();
      try {
        await tryCalls(server, tried);
        await tryReasoning(server, tried);
      } finally {
        await server.stop();
      }
    });
  }
  it('was tried: most of them know calls, and many know reasoning', { skip: files.length === 0 && 'no templates' }, () => {
    assert.ok(files.length >= 70, `${files.length} templates`);
    assert.ok(tried.calls >= 30 && tried.complete >= 20 && tried.reasoning >= 25, JSON.stringify(tried));
  });
});
