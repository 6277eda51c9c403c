// Texts that are hard on what reads them: a million characters of one class make the tokenizer's regex recurse, thousands
// of messages make templates write much. All that a client may notice is an answer, or a refusal that says why.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, post, refused, user } from './client.mjs';
import { demo, start } from './server.mjs';

const { describe, it } = test;
const million = 1_000_000;

describe('huge texts', async () => {
  const server = await start(test, [...demo, '-np', '2']);
  const story = await answer(server, 'Tell me a story', { max_tokens: 12 });

  for (const [what, text] of [['letters', 'a'], ['spaces', ' '], ['digits', '7'], ['line ends', '\n'], ['signs', '!'], ['accents', 'é'],
    ['emoji', '😀'], ['pairs', 'a '], ['marks', '\u0301']]) {
    it(`a million ${what} are tokenized, and refused as a prompt that is too long`, async () => {
      const content = text.repeat(Math.floor(million / Buffer.byteLength(text)));
      const { tokens } = await ask(server, '/tokenize', { content });
      assert.ok(tokens.length > 1000);
      const { message } = await refused(await post(server, '/v1/completions', { prompt: content, max_tokens: 1 }), 400);
      assert.match(message, /context/);
      await refused(await post(server, '/v1/chat/completions', { messages: user(content) }), 400);
    });
  }

  it('a control token written thousands of times is read in a time that grows with it, not with its square', async () => {
    // Of the threads that tokenize: what else the machine does is not in it.
    const time = async (n) => {
      const before = server.computed('offload');
      await ask(server, '/tokenize', { content: '<|im_end|>'.repeat(n), parse_special: true });
      return server.computed('offload') - before;
    };
    await time(5_000);
    const [small, large] = [await time(10_000), await time(80_000)];
    assert.ok(large < 40 * small, `${small} ms for 10,000, ${large} ms for 80,000`); // 64 times would be its square
  });

  it('as many messages and tools as are allowed are rendered or refused', async () => {
    const messages = Array.from({ length: 4096 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'x'.repeat(200) }));
    await refused(await post(server, '/v1/chat/completions', { messages }), 400);
    await refused(await post(server, '/v1/chat/completions', { messages: [...messages, ...user('one more')] }), 400);
    const tool = (i) => ({ type: 'function', function: { name: `tool_${i}`, description: 'd'.repeat(1000),
      parameters: { type: 'object', properties: { x: { type: 'string' } } } } });
    const tools = Array.from({ length: 2000 }, (_, i) => tool(i));
    await refused(await post(server, '/v1/chat/completions', { messages: user('x'), tools }), 400);
  });

  it('leave the server as it was', async () => {
    assert.equal((await answer(server, 'Tell me a story', { max_tokens: 12 })).text, story.text);
    assert.equal((await server.metrics()).value('chasqui_loop_lost_exceptions_total'), 0);
  });
});
