// LangChain.js, unmodified, with its classes for OpenAI.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';

import { demo, start } from './server.mjs';

const { describe, it } = test;

const place = z.object({ city: z.enum(['Lima', 'Cusco']) });
const question = [new SystemMessage('Be brief.'), new HumanMessage('How is the weather in Lima and in Cusco?')];
const weather = tool(async ({ city }) => `sunny in ${city}`, { name: 'weather', description: 'Tells the weather.', schema: place });

describe('LangChain', async () => {
  const server = await start(test, demo);
  const configuration = { baseURL: `${server.url}/v1` };
  const modelOf = (fields = {}) => new ChatOpenAI({
    model: 'chasqui-demo', apiKey: 'none', temperature: 0, maxTokens: 30, maxRetries: 0, configuration, ...fields,
  });

  it('invokes and streams the same answer, with its usage', async () => {
    const whole = await modelOf().invoke(question);
    assert.match(whole.content, /\w+/);
    assert.ok(whole.usage_metadata.output_tokens > 0);
    let gathered;
    let pieces = 0;
    for await (const piece of await modelOf().stream(question)) {
      gathered = gathered ? gathered.concat(piece) : piece;
      if (piece.content) ++pieces;
    }
    assert.equal(gathered.content, whole.content);
    assert.ok(pieces > 3, 'it came in pieces');
    assert.equal(gathered.usage_metadata.output_tokens, whole.usage_metadata.output_tokens);
    assert.equal(gathered.response_metadata.finish_reason, whole.response_metadata.finish_reason);
  });

  it('answers a batch in the order of its questions', async () => {
    const asked = ['What is Chasqui?', 'Count to five.', 'What is Chasqui?'];
    const answers = await modelOf().batch(asked);
    assert.equal(answers.length, 3);
    assert.equal(answers[0].content, answers[2].content);
    assert.notEqual(answers[0].content, answers[1].content);
  });

  // The demo model stops after one call. It may not before so many tokens, and the grammar leaves it only a second call.
  const caller = () => modelOf({ maxTokens: 100, modelKwargs: { min_tokens: 35 } }).bindTools([weather], { tool_choice: 'required' });

  it('binds tools, is called twice at once, and goes on with the results', async () => {
    const first = await caller().invoke(question);
    assert.deepEqual(first.tool_calls.map((call) => call.name), ['weather', 'weather']);
    assert.equal(first.invalid_tool_calls.length, 0);
    const results = await Promise.all(first.tool_calls.map((call) => weather.invoke(call)));
    assert.ok(results.every((result) => result instanceof ToolMessage && /^sunny in (Lima|Cusco)$/.test(result.content)));
    const second = await modelOf().bindTools([weather], { tool_choice: 'none' }).invoke([...question, first, ...results]);
    assert.equal(second.tool_calls.length, 0);
    assert.ok(second.usage_metadata.input_tokens > first.usage_metadata.input_tokens);
  });

  it('puts streamed calls together', async () => {
    let gathered;
    for await (const piece of await caller().stream(question)) gathered = gathered ? gathered.concat(piece) : piece;
    const whole = await caller().invoke(question);
    assert.deepEqual(gathered.tool_calls.map((call) => call.args), whole.tool_calls.map((call) => call.args));
    assert.equal(new Set(gathered.tool_calls.map((call) => call.id)).size, 2);
  });

  it('gives structured output by schema and by function', async () => {
    const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(150), home: place });
    for (const method of ['jsonSchema', 'functionCalling']) {
      const model = modelOf({ maxTokens: 400, temperature: 1.2, modelKwargs: { seed: 3 } });
      const made = await model.withStructuredOutput(schema, { name: 'person', method, strict: true }).invoke('Describe a person.');
      assert.deepEqual(schema.parse(made), made, method);
    }
  });

  it('embeds queries and documents alike', async () => {
    const embeddings = new OpenAIEmbeddings({ model: 'chasqui-demo', apiKey: 'none', maxRetries: 0, configuration });
    const [one, two] = await embeddings.embedDocuments(['Rain in Lima', 'A server of language models']);
    const again = await embeddings.embedQuery('Rain in Lima');
    assert.equal(one.length, two.length);
    const cosine = again.reduce((sum, value, i) => sum + value * one[i], 0);
    assert.ok(cosine > 0.999, `${cosine}`);
  });
});
