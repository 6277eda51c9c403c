// OpenAI's responses, which the server remembers, with OpenAI's own client.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import OpenAI from 'openai';

import { endless, post, refused } from './client.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;


const base = { model: 'x', temperature: 0, max_output_tokens: 40 };
const cities = { type: 'object', properties: { city: { type: 'string', enum: ['Lima', 'Cusco'] } }, required: ['city'] };
const tools = [{ type: 'function', name: 'weather', description: 'Tells the weather.', parameters: cities, strict: true }];

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  events.forEach((event, index) => assert.equal(event.sequence_number, index));
  return events;
}

describe('responses', async () => {
  const server = await start(test, [...demo, '-np', '4', '-c', '65536']); // room for an answer that does not end
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });

  it('answers, and remembers what it said', async () => {
    const made = await client.responses.create({ ...base, input: 'What is Chasqui?', metadata: { a: 'b' } });
    assert.equal(made.object, 'response');
    assert.ok(['completed', 'incomplete'].includes(made.status));
    assert.ok(made.output_text.length > 0);
    assert.equal(made.usage.total_tokens, made.usage.input_tokens + made.usage.output_tokens);
    assert.deepEqual(made.metadata, { a: 'b' });
    const got = await client.responses.retrieve(made.id);
    assert.deepEqual(got.output, made.output);
    assert.deepEqual(got.usage, made.usage);
    const items = await client.responses.inputItems.list(made.id);
    assert.equal(items.data[0].content[0].text, 'What is Chasqui?');
    await client.responses.delete(made.id);
    await assert.rejects(client.responses.retrieve(made.id), { status: 404 });
  });

  it('has the members that the schema of a response requires', async () => {
    const made = await client.responses.create({
      ...base, input: 'Hello', max_output_tokens: 400, presence_penalty: 0.25, tools: [{ type: 'function', name: 'look' }],
    });
    const wanted = {
      presence_penalty: 0.25, frequency_penalty: 0, top_logprobs: 0, max_tool_calls: null, service_tier: 'default',
      safety_identifier: null, prompt_cache_key: null, temperature: 0,
    };
    for (const [name, value] of Object.entries(wanted)) assert.deepEqual(made[name], value, name);
    assert.deepEqual(made.tools, [{ type: 'function', name: 'look', description: null, parameters: null, strict: null }]);
    assert.equal(made.status, 'completed');
    assert.ok(Number.isInteger(made.completed_at) && made.completed_at >= made.created_at);
    const cut = await client.responses.create({ ...base, input: 'Hello', max_output_tokens: 1 });
    assert.equal(cut.completed_at, null);
  });

  it('tells its timings in the last event', async () => {
    const events = await collect(await client.responses.create({ ...base, input: 'Hello', stream: true }));
    const last = events.pop();
    assert.equal(last.timings.predicted_n, last.response.usage.output_tokens);
    assert.deepEqual(last.timings, last.response.timings);
    assert.ok(events.every(({ timings }) => timings === undefined));
  });

  it('takes items of responses before by their ids, as the AI SDK sends them', async () => {
    const first = await client.responses.create({ ...base, input: 'My name is Quipu.' });
    const asked = [{ role: 'user', content: 'My name is Quipu.' }];
    const question = { role: 'user', content: 'What is my name?' };
    const whole = await client.responses.create({ ...base, input: [...asked, ...first.output, question] });
    for (const reference of [(id) => ({ type: 'item_reference', id }), (id) => ({ id })]) {
      const input = [...asked, ...first.output.map(({ id }) => reference(id)), question];
      const named = await client.responses.create({ ...base, input });
      assert.equal(named.usage.input_tokens, whole.usage.input_tokens);
      assert.equal(named.output_text, whole.output_text);
      const { data } = await client.responses.inputItems.list(named.id, { order: 'asc' });
      assert.deepEqual(data.map(({ id }) => id).filter((id) => first.output.some((item) => item.id === id)), first.output.map(({ id }) => id));
      const counted = await client.post('/responses/input_tokens', { body: { ...base, input } });
      assert.equal(counted.input_tokens, whole.usage.input_tokens);
    }
    const unknown = client.responses.create({ ...base, input: [...asked, { type: 'item_reference', id: 'msg_unknown' }] });
    await assert.rejects(unknown, (error) => error.status === 404 && /msg_unknown/.test(error.message));
  });

  it('goes on with a response before', async () => {
    const first = await client.responses.create({ ...base, instructions: 'Be brief.', input: 'My name is Quipu.' });
    const second = await client.responses.create({ ...base, previous_response_id: first.id, input: 'What is my name?' });
    // The same conversation in one piece, without the instructions, which hold for one response only.
    const alone = await client.responses.create({
      ...base, input: [{ role: 'user', content: 'My name is Quipu.' }, ...first.output, { role: 'user', content: 'What is my name?' }],
    });
    assert.equal(second.usage.input_tokens, alone.usage.input_tokens);
    assert.equal(second.output_text, alone.output_text);
    assert.equal(second.previous_response_id, first.id);
  });

  it('forgets what is not to be stored', async () => {
    const made = await client.responses.create({ ...base, store: false, input: 'Hello' });
    await assert.rejects(client.responses.retrieve(made.id), { status: 404 });
    await assert.rejects(client.responses.create({ ...base, previous_response_id: made.id, input: 'x' }), (error) => {
      assert.equal(error.status, 400);
      return error.param === 'previous_response_id';
    });
  });

  it('streams text as events', async () => {
    const whole = await client.responses.create({ ...base, input: 'What is Chasqui?' });
    const events = await collect(await client.responses.create({ ...base, input: 'What is Chasqui?', stream: true }));
    const types = events.map((event) => event.type).filter((type) => type !== 'response.output_text.delta');
    assert.deepEqual(types, ['response.created', 'response.in_progress', 'response.output_item.added',
      'response.content_part.added', 'response.output_text.done', 'response.content_part.done',
      'response.output_item.done', `response.${whole.status}`]);
    const text = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');
    assert.equal(text, whole.output_text);
    assert.equal(events.at(-1).response.output[0].content[0].text, text);
  });

  it('calls functions, and takes their results by reference to the call', async () => {
    const wish = { ...base, max_output_tokens: 100, input: 'How is the weather in Lima?', tools, tool_choice: 'required' };
    const events = await collect(await client.responses.create({ ...wish, stream: true }));
    const done = events.find((event) => event.type === 'response.function_call_arguments.done');
    const pieces = events.filter((event) => event.type === 'response.function_call_arguments.delta').map((event) => event.delta);
    assert.equal(pieces.join(''), done.arguments);
    assert.ok(['Lima', 'Cusco'].includes(JSON.parse(done.arguments).city));
    const { response } = events.at(-1);
    const call = response.output.find((item) => item.type === 'function_call');
    assert.equal(call.name, 'weather');
    const next = await client.responses.create({
      ...base, previous_response_id: response.id, tools,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sunny' }],
    });
    assert.ok(next.usage.input_tokens > response.usage.input_tokens);
  });

  it('obeys a schema', async () => {
    const text = { format: { type: 'json_schema', name: 'place', schema: cities, strict: true } };
    const made = await client.responses.create({ ...base, input: 'Where is the sea?', text });
    assert.ok(['Lima', 'Cusco'].includes(JSON.parse(made.output_text).city));
  });

  it('repeats of a tool no more than the model is shown', async () => {
    const tools = [{ type: 'function', name: 'f', parameters: {}, strict: 'x'.repeat(1000) }];
    const error = await refused(await post(server, '/v1/responses', { ...base, input: 'x', tools }), 400);
    assert.equal(error.param, 'tools[0].strict');
  });

  it('can be cancelled while it runs', async () => {
    const stream = await client.responses.create({ ...base, ...endless, max_output_tokens: 100000, input: 'Go on', stream: true });
    let id;
    let last;
    let asked = false;
    for await (const event of stream) {
      id ??= event.response?.id;
      last = event;
      if (event.type !== 'response.output_text.delta' || asked) continue;
      asked = true;
      await client.responses.cancel(id);
    }
    assert.ok(asked);
    assert.equal(last.response.status, 'cancelled');
    assert.equal((await client.responses.retrieve(id)).status, 'cancelled');
  });

  it('belongs to its tenant', async () => {
    const shared = await start(test, [...sim, '--api-key', 'a,b']);
    shared.key = 'a';
    const [mine, theirs] = ['a', 'b'].map((key) => new OpenAI({ baseURL: `${shared.url}/v1`, apiKey: key, maxRetries: 0 }));
    const made = await mine.responses.create({ ...base, input: 'Hello' });
    assert.ok(await mine.responses.retrieve(made.id));
    await assert.rejects(theirs.responses.retrieve(made.id), { status: 404 });
    await assert.rejects(theirs.responses.create({ ...base, previous_response_id: made.id, input: 'x' }), { status: 400 });
  });
});
