// The Vercel AI SDK, unmodified, through its provider for servers that speak OpenAI's protocol.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';

import { demo, start } from './server.mjs';

const { describe, it } = test;

globalThis.AI_SDK_LOG_WARNINGS = false;
const place = z.object({ city: z.enum(['Lima', 'Cusco']) });
const prompt = 'How is the weather in Lima and in Cusco?';
// The demo model stops after one call. It may not before so many tokens, and the grammar leaves it only a second call.
const calls = { maxOutputTokens: 100, temperature: 0, toolChoice: 'required', maxRetries: 0, providerOptions: { here: { min_tokens: 35 } } };

describe('the AI SDK', async () => {
  const server = await start(test, demo);
  const provider = createOpenAICompatible({
    name: 'here', baseURL: `${server.url}/v1`, apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true,
  });
  const base = { model: provider('chasqui-demo'), temperature: 0, maxRetries: 0 };

  it('generates and streams the same text, with its usage', async () => {
    const ask = { ...base, prompt: 'What is Chasqui?', system: 'Be brief.', maxOutputTokens: 30 };
    const whole = await generateText(ask);
    assert.match(whole.text, /\w+/);
    assert.ok(['stop', 'length'].includes(whole.finishReason));
    const stream = streamText(ask);
    const pieces = [];
    for await (const piece of stream.textStream) pieces.push(piece);
    assert.equal(pieces.join(''), whole.text);
    assert.ok(pieces.length > 3, 'it came in pieces');
    assert.equal(await stream.finishReason, whole.finishReason);
    const usage = await stream.usage;
    assert.equal(usage.outputTokens, whole.usage.outputTokens);
    assert.equal(usage.inputTokens, whole.usage.inputTokens);
  });

  for (const [how, run] of [
    ['whole', async (ask) => generateText(ask)],
    ['streamed', async (ask) => {
      const stream = streamText(ask);
      await stream.consumeStream({ onError: (error) => assert.fail(error) });
      return { steps: await stream.steps };
    }],
  ]) {
    it(`runs the tools of two calls and goes on with their results, ${how}`, async () => {
      const asked = [];
      const weather = tool({
        description: 'Tells the weather.', inputSchema: place,
        execute: async ({ city }) => { asked.push(city); return `sunny in ${city}`; },
      });
      const { steps } = await run({
        ...base, ...calls, prompt, tools: { weather }, stopWhen: stepCountIs(2),
        prepareStep: ({ stepNumber }) => (stepNumber === 0 ? {} : { toolChoice: 'none' }),
      });
      assert.equal(steps.length, 2);
      assert.equal(steps[0].finishReason, 'tool-calls');
      assert.deepEqual(steps[0].toolCalls.map((call) => call.toolName), ['weather', 'weather']);
      assert.notEqual(steps[0].toolCalls[0].toolCallId, steps[0].toolCalls[1].toolCallId);
      assert.deepEqual(asked, steps[0].toolCalls.map((call) => call.input.city));
      assert.equal(steps[1].toolCalls.length, 0);
      assert.ok(steps[1].usage.inputTokens > steps[0].usage.inputTokens, 'the results are in the second prompt');
    });
  }

  it('makes an object of a schema, whole and streamed', async () => {
    const schema = z.object({ name: z.string().max(8), age: z.number().int().min(0).max(150), home: place });
    const ask = { ...base, schema, prompt: 'Describe a person.', temperature: 1.2, seed: 4 };
    const { object } = await generateObject(ask);
    assert.deepEqual(schema.parse(object), object);
    const stream = streamObject(ask);
    let last;
    for await (const partial of stream.partialObjectStream) last = partial;
    assert.deepEqual(schema.parse(last), last);
    assert.deepEqual(await stream.object, last);
  });

  it('embeds texts', async () => {
    const values = ['Rain in Lima', 'A server of language models'];
    const { embeddings, usage } = await embedMany({ model: provider.textEmbeddingModel('chasqui-demo'), values, maxRetries: 0 });
    assert.equal(embeddings.length, 2);
    assert.ok(embeddings.every((vector) => Math.abs(Math.hypot(...vector) - 1) < 1e-3));
    assert.ok(usage.tokens > 4);
  });

  it('reports a refusal with its status and message', async () => {
    await assert.rejects(generateText({ ...base, prompt: 'x', temperature: -1 }), (error) => {
      assert.equal(error.statusCode, 400);
      assert.match(error.message, /temperature must be/);
      return true;
    });
  });

  it('aborts a stream, and nothing is left of it', async () => {
    const controller = new AbortController();
    const stream = streamText({
      ...base, prompt: 'Go on', maxOutputTokens: 1_000_000, abortSignal: controller.signal, providerOptions: { here: { ignore_eos: true } },
    });
    for await (const piece of stream.textStream) {
      assert.ok(piece.length > 0);
      controller.abort();
    }
    await server.idle();
  });
});
