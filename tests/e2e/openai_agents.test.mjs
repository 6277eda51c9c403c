// Agents of two kits that offer tools and want their last answer in a schema, unmodified, through a whole loop: the
// simulated voice calls the tool in the words of the template, and what the tool returns makes it say the answer.
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents';
import { Output, generateText, stepCountIs, streamText, tool as aiTool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';

import { sim, start } from './server.mjs';

const { describe, it } = test;

setTracingDisabled(true);
globalThis.AI_SDK_LOG_WARNINGS = false;

const sources = path.join(process.env.CHASQUI_CACHE ?? path.join(homedir(), '.cache/chasqui'), 'src');
const folder = existsSync(sources) ? readdirSync(sources).filter((name) => name.startsWith('llama.cpp-')).sort().at(-1) : undefined;
const template = folder && path.join(sources, folder, 'models/templates/Qwen-Qwen2.5-7B-Instruct.jinja');

const say = (text) => `say:${Buffer.from(text).toString('hex')};`;
const report = z.object({ city: z.string(), degrees: z.number().int().min(-60).max(60), sky: z.enum(['clear', 'rain']) });
const told = { city: 'Lima', degrees: 19, sky: 'clear' };
const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Lima"}}\n</tool_call>';
const question = `How is the weather in Lima? ${say(call)}`;
const parameters = z.object({ city: z.string() });
const model = 'chasqui-sim';

describe('tools together with an output type', { skip: !template && 'there is no source of llama.cpp' }, async () => {
  const server = await start(test, [...sim, '--chat-template-file', template]);
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
  let asked = [];
  const execute = async ({ city }) => {
    asked.push(city);
    return `It is 19 degrees. ${say(JSON.stringify(told))}`;
  };

  for (const [kind, make] of [['chat completions', OpenAIChatCompletionsModel], ['responses', OpenAIResponsesModel]]) {
    for (const stream of [false, true]) {
      it(`OpenAI Agents, ${kind}, ${stream ? 'streamed' : 'whole'}`, async () => {
        asked = [];
        const agent = new Agent({ name: 'weather', instructions: 'Ask the tool.', model: new make(client, model), outputType: report,
          tools: [tool({ name: 'weather', description: 'Tells the weather.', parameters, execute })] });
        const result = await run(agent, question, { stream });
        if (stream) await result.completed;
        assert.deepEqual(result.finalOutput, told);
        assert.deepEqual(asked, ['Lima']);
      });
    }
  }

  for (const stream of [false, true]) {
    it(`Vercel AI, ${stream ? 'streamed' : 'whole'}`, async () => {
      asked = [];
      const provider = createOpenAICompatible({ name: 'here', baseURL: `${server.url}/v1`, apiKey: 'none', supportsStructuredOutputs: true });
      const wish = { model: provider(model), prompt: question, maxRetries: 0, stopWhen: stepCountIs(4), output: Output.object({ schema: report }),
        tools: { weather: aiTool({ description: 'Tells the weather.', inputSchema: parameters, execute }) } };
      const result = stream ? streamText(wish) : await generateText(wish);
      if (stream) await result.consumeStream({ onError: (error) => assert.fail(error) });
      assert.deepEqual(await result.output, told);
      assert.deepEqual(asked, ['Lima']);
    });
  }
});
