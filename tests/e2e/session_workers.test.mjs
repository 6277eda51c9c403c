// Sessions at --workers 2: each belongs to one worker for life, with all its forks, and gives its place up when it ends.
import assert from 'node:assert/strict';
import * as test from 'node:test';

import { answer, ask, post, stream } from './client.mjs';
import { random } from './random.mjs';
import { demo, sim, start } from './server.mjs';

const { describe, it } = test;
const two = ['--workers', '2'];

const open = (server, body) => ask(server, '/v1/sessions', body);
const command = (server, id, what, body = {}) => ask(server, `/v1/sessions/${id}/${what}`, body);
const user = (content) => ({ role: 'user', content });
const remove = async (server, id) =>
  assert.equal((await server.fetch(`/v1/sessions/${id}`, { method: 'DELETE' })).status, 200);

// Generations that have ended, by worker.
function ended(metrics) {
  return ['0', '1'].map((worker) => metrics.sum('chasqui_requests_finished_total', { worker }));
}

// The worker of a generation that nothing else runs beside.
async function homeOf(server, id) {
  const before = ended(await server.metrics());
  await command(server, id, 'generate', { max_tokens: 2, ignore_eos: true });
  const after = ended(await server.metrics());
  const worked = after.map((count, worker) => count - before[worker]);
  assert.equal(worked[0] + worked[1], 1, `${worked}`);
  return worked.indexOf(1);
}

function untilEnded(server, counts) {
  return server.until((metrics) => ended(metrics).every((count, worker) => count >= counts[worker]), `${counts}`);
}

describe('sessions of two workers', async () => {
  const clients = 50;
  const commands = 20;
  const server = await start(test, [...demo, ...two, '-np', '8', '-c', '16384']);

  it('stay with theirs through a thousand commands of fifty clients, and so do their forks', async () => {
    const { below } = random(4242); // a fixed order
    const homes = [];
    const sessions = [];
    for (let number = 0; number < clients; ++number) {
      sessions.push((await open(server, { messages: [user(`I am client ${number}.`)] })).id);
      homes.push(await homeOf(server, sessions[number]));
    }
    for (const worker of [0, 1]) {
      assert.ok(homes.filter((home) => home === worker).length >= clients / 5, `both have some: ${homes}`);
    }

    const before = await server.metrics();
    const wanted = ended(before); // what each worker has to do, if all stay at home
    const plans = sessions.map(() => Array.from({ length: commands }, () => below(8)));
    let sent = 0;
    const client = async (number) => {
      const family = [sessions[number]];
      for (const [turn, move] of plans[number].entries()) {
        const id = family[turn % family.length];
        ++sent;
        if (move < 2) {
          await command(server, id, 'append', { message: user(`This is turn ${turn}.`) });
        } else if (move < 5) {
          const { usage } = await command(server, id, 'generate', { max_tokens: 1 + (turn % 4), ignore_eos: true });
          assert.equal(usage.completion_tokens, 1 + (turn % 4));
          ++wanted[homes[number]];
        } else if (move === 5) {
          family.push((await command(server, id, 'fork')).id);
        } else if (move === 6) {
          const running = await stream(server, `/v1/sessions/${id}/generate`, { max_tokens: 60, ignore_eos: true });
          await running.nextText();
          ++wanted[homes[number]];
          await command(server, id, 'cancel');
          await running.collect();
        } else if (family.length > 1) {
          await remove(server, family.shift());
        } else {
          await command(server, id, 'cancel');
        }
      }
      return family;
    };
    const families = await Promise.all(sessions.map((_, number) => client(number)));
    assert.equal(sent, clients * commands);

    const after = await untilEnded(server, wanted);
    assert.deepEqual(ended(after), wanted, 'a generation went to another worker than the one of its session');
    for (const reason of ['prefix', 'load']) {
      const [first, last] = [before, after].map((page) => page.value('chasqui_placements_total', { reason }));
      assert.equal(last, first, `no session was placed anew (${reason})`);
    }
    assert.equal(after.value('chasqui_pins'), clients);

    for (const [number, family] of families.slice(0, 10).entries()) {
      for (const id of family) assert.equal(await homeOf(server, id), homes[number], 'still there');
    }
    for (const family of families) for (const id of family) await remove(server, id);
    const metrics = await server.until((page) => page.value('chasqui_pins') === 0, 'all pins are given up');
    assert.equal(metrics.value('chasqui_sessions'), 0);
    assert.equal(metrics.value('chasqui_placements_refused_total'), 0);
  });

  it('compute only what is new, wherever they are', async () => {
    const ids = [];
    for (let i = 0; i < 6; ++i) {
      const { id } = await open(server, { messages: [user(`Question ${i}: what is Chasqui, and what is a slot?`)] });
      ids.push(id);
    }
    const known = new Map(ids.map((id) => [id, 0]));
    for (let turn = 0; turn < 4; ++turn) {
      await Promise.all(ids.map(async (id) => {
        await command(server, id, 'append', { message: user(`And then, in turn ${turn}?`) });
        const { usage } = await command(server, id, 'generate', { temperature: 0, max_tokens: 12, ignore_eos: true });
        const computed = usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens;
        assert.ok(turn === 0 || computed <= usage.prompt_tokens - known.get(id) + 8, JSON.stringify(usage));
        known.set(id, usage.prompt_tokens + usage.completion_tokens);
      }));
    }
    for (const id of ids) await remove(server, id);
  });
});

describe('a session of two workers', async () => {
  const server = await start(test, [...sim, ...two, '-np', '2', '-c', '40000']);

  it('gives its worker up when it expires, and when it ends while it generates', async () => {
    const short = await open(server, { ttl_s: 3, prompt: 'abc' });
    await homeOf(server, short.id);
    assert.equal((await server.metrics()).value('chasqui_pins'), 1);
    await server.until((metrics) => metrics.value('chasqui_pins') === 0, 'it expires');

    const { id } = await open(server, { prompt: 'abc' });
    const running = await stream(server, `/v1/sessions/${id}/generate`, { max_tokens: 10_000, ignore_eos: true });
    await running.nextText();
    assert.equal((await server.metrics()).value('chasqui_pins'), 1);
    await remove(server, id);
    await running.collect();
    assert.equal(running.finish, 'cancelled');
    await server.until((metrics) => metrics.value('chasqui_pins') === 0, 'it has ended');
  });

  it('waits for its own worker, also where another one has nothing to do', async () => {
    const { id } = await open(server, { prompt: 'abc' });
    const home = await homeOf(server, id);
    const fork = (await command(server, id, 'fork')).id;
    const running = await stream(server, `/v1/sessions/${id}/generate`, { max_tokens: 10_000, ignore_eos: true });
    await running.nextText();
    const waiting = post(server, `/v1/sessions/${fork}/generate`, { max_tokens: 3, ignore_eos: true });
    await server.until((metrics) => metrics.sum('chasqui_requests_waiting', { worker: String(home) }) === 1);
    assert.equal((await answer(server, 'say: I am quicker')).text, 'I am quicker');
    assert.equal((await server.metrics()).value('chasqui_requests_running', { worker: String(home) }), 1);
    await command(server, id, 'cancel');
    await running.collect();
    assert.equal((await waiting).status, 200);
    assert.equal(await homeOf(server, fork), home);
  });
});
