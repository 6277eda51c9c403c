// --rpc: a model whose layers lie on two other processes says what it says on this machine alone, however its KV is
// copied; and the loss of one of them ends what it computed, and nothing else. CHASQUI_RPC_KILLS says how often one is
// lost under a supervisor (3), CHASQUI_RPC_MODEL which test model is served (24m-f16).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import * as test from 'node:test';

import { answer, ask, endless, post, stream, streamChat, user } from './client.mjs';
import { binary, run, start, testModel } from './server.mjs';

const { describe, it } = test;
const model = ['-m', testModel(process.env.CHASQUI_RPC_MODEL ?? '24m-f16'), '-t', '1', '-np', '2', '-c', '8192'];
const kills = Number(process.env.CHASQUI_RPC_KILLS ?? 3);

// One that lends its CPU.
class Peer {
  constructor(flags) {
    this.child = spawn(binary, ['rpc-server', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.said = '';
    this.child.stderr.setEncoding('utf8').on('data', (text) => (this.said += text));
    this.ended = once(this.child, 'close');
  }

  async listening() {
    const lines = createInterface({ input: this.child.stdout });
    await new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        this.endpoint ??= /^listening on (\S+)$/.exec(line)?.[1];
        if (this.endpoint) resolve();
      });
      this.ended.then(() => reject(new Error(`rpc-server ended: ${this.said}`)));
    });
    return this;
  }

  get port() {
    return this.endpoint.split(':')[1];
  }

  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

async function lend(context, flags = ['-t', '1'], port = '0') {
  const peer = new Peer(['-p', port, ...flags]);
  context.after(() => peer.kill());
  return peer.listening();
}

async function folder(t) {
  const name = await fs.mkdtemp(path.join(os.tmpdir(), 'chasqui-e2e-'));
  t.after(() => fs.rm(name, { recursive: true, force: true, maxRetries: 20 }));
  return name;
}

const say = (server, prompt, more = {}) => ask(server, '/completion', { prompt, temperature: 0, n_predict: 24, ...more });
const texts = ['The relay runner', 'What is it that waits at the post?', 'one two three four '.repeat(60),
  'A story of a road, and of those who run on it. '.repeat(30)];
const cachedOf = (body) => body.timings.cache_n;

// MiB of weights and of KV on each device, as the log of the start says.
function parts(server) {
  const found = server.stderr.matchAll(/a device has a part of the model.*device="(\w+) \([\d.:]+\)" weights_mib=(\d+) kv_mib=(\d+)/g);
  return Object.fromEntries([...found].map(([, device, weights, kv]) => [device, { weights: Number(weights), kv: Number(kv) }]));
}

describe('a model on two other processes', async () => {
  // Peers do not repack weights for kernels that round otherwise.
  const alone = await start(test, [...model, '--spec-type', 'none', '--no-repack']);
  // Of one thread each: on a busy machine several would wait for each other's turn of the processor.
  const peers = [await lend(test), await lend(test)];
  const rpc = ['--rpc', peers.map((peer) => peer.endpoint).join(','), '--tensor-split', '2,3', '--log-level', 'debug'];
  // A peer has one client at a time.
  const together = (t, flags = []) => start(t, [...model, ...rpc, ...flags]);

  it('says the same, of prompts that are new, known and drafted', async (t) => {
    const server = await together(t);
    const { RPC0, RPC1 } = parts(server);
    assert.ok(RPC0.weights > 0 && RPC1.weights > 1.5 * RPC0.weights, JSON.stringify([RPC0, RPC1]));
    assert.ok(RPC0.kv > 0 && RPC1.kv > 0, 'KV is on both');
    for (const text of texts) {
      const [here, there] = await Promise.all([say(alone, text), say(server, text)]);
      assert.equal(there.content, here.content, text.slice(0, 30));
      const again = await say(server, text);
      assert.equal(again.content, here.content);
      assert.ok(cachedOf(again) > 0 || text.length < 40, `${cachedOf(again)} of ${text.slice(0, 30)}`);
      const other = await say(server, text, { 'speculative.n_max': 0 });
      assert.equal(other.content, here.content);
    }
    // More prompts than slots: what is in one is copied out, and in again.
    for (let round = 0; round < 2; ++round) {
      for (const text of texts) {
        const [here, there] = [await say(alone, `${text} and more`), await say(server, `${text} and more`)];
        assert.equal(there.content, here.content);
      }
    }
    assert.ok((await server.metrics()).sum('chasqui_steps_total') > 0);
  });

  it('says the same in streams that run together, and in a session with a fork', async (t) => {
    const server = await together(t);
    // Which rows share a step is decided by time, and so are near ties, but for requests that ask for the same bytes.
    for (const fields of [{ deterministic: true, max_tokens: 48 }, { max_tokens: 16 }]) {
      const both = await Promise.all([alone, server].map((one) => Promise.all(texts.slice(0, 2).map(async (text) => {
        const running = await stream(one, '/v1/completions', { prompt: text, temperature: 0, ...fields });
        return (await running.collect()).text;
      }))));
      assert.deepEqual(both[1], both[0]);
    }
    const turns = await Promise.all([alone, server].map(async (one) => {
      const session = await ask(one, '/v1/sessions', { text: texts[3] });
      const said = [];
      const generate = (id) => ask(one, `/v1/sessions/${id}/generate`, { temperature: 0, max_tokens: 12 });
      said.push((await generate(session.id)).choices[0]);
      const fork = await ask(one, `/v1/sessions/${session.id}/fork`, {});
      await ask(one, `/v1/sessions/${session.id}/append`, { text: ' On the next day' });
      said.push((await generate(session.id)).choices[0], (await generate(fork.id)).choices[0]);
      return said.map((choice) => choice.text ?? choice.message.content);
    }));
    assert.deepEqual(turns[1], turns[0]);
  });

  it('says the same when its KV comes back from the disk', async (t) => {
    const dir = await folder(t);
    const here = await say(alone, texts[3]);
    const written = (metrics) => metrics.value('chasqui_disk_snapshots') > 0 && metrics.value('chasqui_disk_queue') === 0;
    const first = await together(t, ['--cache-disk', dir]);
    assert.equal((await say(first, texts[3])).content, here.content);
    await first.stop();
    const second = await together(t, ['--cache-disk', dir]);
    const after = await say(second, texts[3]);
    assert.ok(cachedOf(after) > 100, `${cachedOf(after)} tokens`);
    assert.equal(after.content, here.content);
    await second.until(written, 'it is on disk');
  });

  // ggml remembers the last graph of a device; here several threads have graphs for it.
  it('says the same beside embeddings, and with two workers', async (t) => {
    const server = await together(t, ['--workers', '2', '--spec-type', 'none']);
    const vector = async (one, text) => (await ask(one, '/v1/embeddings', { input: text })).data[0].embedding;
    const wanted = await vector(alone, texts[1]);
    const here = await Promise.all(texts.map((text) => say(alone, text, { n_predict: 60 })));
    const all = await Promise.all([
      ...texts.map((text) => say(server, text, { n_predict: 60 })),
      ...Array.from({ length: 12 }, () => vector(server, texts[1])),
    ]);
    texts.forEach((text, i) => assert.equal(all[i].content, here[i].content, text.slice(0, 30)));
    for (const got of all.slice(texts.length)) {
      const apart = Math.max(...got.map((value, i) => Math.abs(value - wanted[i])));
      assert.ok(apart < 1e-3, `${apart}`);
    }
  });

  it('lies on the device that is named, and nowhere else', async (t) => {
    const server = await together(t, ['--tensor-split', '1', '--device', 'RPC1']);
    const { RPC0, RPC1 } = parts(server);
    assert.equal(RPC0, undefined);
    assert.ok(RPC1.weights > 0);
    assert.equal((await say(server, texts[0])).content, (await say(alone, texts[0])).content);
  });

  it('is shown by doctor, with the devices and what will lie where', async (t) => {
    const doctor = async (flags = []) => (await run(['doctor', ...model, '--port', '0', ...rpc, ...flags])).stdout;
    const stdout = await doctor();
    assert.match(stdout, new RegExp(`ok +rpc +${peers[0].endpoint} lends RPC0 with .* free of`));
    assert.match(stdout, new RegExp(`ok +rpc +${peers[1].endpoint} lends RPC1 with`));
    assert.match(stdout, /free on RPC servers/);
    // The forecast is what libllama does.
    const forecast = (await doctor(['--gpu-layers', '4'])).match(/layers +(layers .*);/)[1];
    const server = await together(t, ['--gpu-layers', '4']);
    const placed = [...server.stderr.matchAll(/layer +(\d+) assigned to device (\w+)/g)].map(([, layer, device]) => [Number(layer), device]);
    const ranges = [...forecast.matchAll(/(\d+) to (\d+) on (\w+)/g)].map(([, first, last, device]) => [Number(first), Number(last), device]);
    assert.equal(ranges.length, 3, forecast);
    assert.ok(placed.length >= 4, 'the log has the layers');
    for (const [layer, device] of placed) {
      assert.equal(ranges.find(([first, last]) => first <= layer && layer <= last)?.[2], device, `layer ${layer} in ${forecast}`);
    }
  });

  it('is refused, by name and before it is read, while a peer has another client', async (t) => {
    await together(t);
    const { code, stderr } = await run(['serve', '--port', '0', ...model, ...rpc]);
    assert.equal(code, 2);
    assert.ok(stderr.includes(`--rpc: the RPC server ${peers[0].endpoint} does not answer within 1000 ms`), stderr);
    assert.match(stderr, /another client/);
  });
});

describe('a peer that is lost', async () => {
  const lost = async (server, peer) => {
    const running = await streamChat(server, 'go on', endless);
    await running.nextText();
    const whole = post(server, '/completion', { prompt: 'and on', ...endless, n_predict: 1_000_000 }).catch((error) => error);
    await peer.kill();
    // Its last event, or a connection that is cut.
    const end = await (async () => {
      for await (const chunk of running) if (chunk.error) return chunk.error.message;
      return 'cut';
    })().catch(() => 'cut');
    assert.match(end, new RegExp(`${peer.endpoint}.*is lost|^cut$`));
    const other = await whole;
    // One that had not been admitted yet is told that the server is shutting down.
    if (!(other instanceof Error)) assert.match(`${other.status} ${await other.text()}`, /^500 |^503 .*shutting down/);
    return end;
  };

  it('ends the requests with an error and the process with its name', async (t) => {
    const [a, b] = [await lend(t), await lend(t)];
    const server = await start(t, [...model, '--rpc', `${a.endpoint},${b.endpoint}`]);
    assert.match(await lost(server, b), /is lost/);
    assert.deepEqual(await server.ended, { code: 75, signal: null });
    const last = server.stderr.trimEnd().split('\n').at(-1);
    assert.equal(last, `chasqui: --rpc: the RPC server ${b.endpoint} is lost, which holds a part of the model`);
  });

  it('is noticed while there is nothing to compute', async (t) => {
    const peer = await lend(t);
    const server = await start(t, [...model, '--rpc', peer.endpoint]);
    await peer.kill();
    assert.deepEqual(await server.ended, { code: 75, signal: null });
    assert.match(server.stderr, new RegExp(`${peer.endpoint} is lost`));
  });

  it('is waited for under a supervisor, which serves again when it is back', async (t) => {
    const [a, b] = [await lend(t), await lend(t)];
    const alone = await start(t, model);
    const wanted = (await answer(alone, 'Who runs?', { max_tokens: 16 })).text;
    const server = await start(t, [...model, '--rpc', `${a.endpoint},${b.endpoint}`, '--supervise']);
    let last = b;
    for (let round = 0; round < kills; ++round) {
      assert.equal((await answer(server, 'Who runs?', { max_tokens: 16 })).text, wanted);
      const seen = server.stderr.length;
      await lost(server, last);
      while (!/cannot be reached: Connection refused[^]*an RPC server is not there/.test(server.stderr.slice(seen))) {
        await once(server.child.stderr, 'data');
      }
      const waiting = answer(server, 'Who runs?', { max_tokens: 16 }); // in the queue of the socket
      last = await lend(t, ['-t', '1'], last.port);
      assert.equal((await waiting).text, wanted);
    }
    assert.match(server.stderr, /exit code 75/);
    await server.stop(); // before the peers
  });

  it('ends a supervisor that has never seen it', async () => {
    const { code, stderr } = await run(['serve', '--port', '0', '--supervise', ...model, '--rpc', '127.0.0.1:1']);
    assert.equal(code, 2);
    assert.match(stderr, /--rpc: the RPC server 127\.0\.0\.1:1 cannot be reached/);
  });
});

describe('--rpc is refused before the model is read', async () => {
  // Listens, and answers what connects with these bytes; null: never.
  const answering = async (t, bytes) => {
    const sockets = [];
    const listener = net.createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      if (bytes) socket.once('data', () => socket.end(bytes));
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    t.after(() => {
      sockets.forEach((socket) => socket.destroy());
      listener.close();
    });
    return `127.0.0.1:${listener.address().port}`;
  };
  const refusal = async (list, env = {}) => {
    const { code, stderr } = await run(['serve', '--port', '0', '-m', '/nowhere.gguf', ...(list ? ['--rpc', list] : [])], env);
    assert.equal(code, 2, stderr);
    return stderr;
  };
  const greeting = (major, minor) => Buffer.from([28, 0, 0, 0, 0, 0, 0, 0, major, minor, 0, 0, ...Array(24).fill(0)]);

  for (const [list, words] of [
    ['127.0.0.1', /"127\.0\.0\.1" is no HOST:PORT/],
    ['127.0.0.1:1,', /"" is no HOST:PORT/],
    ['127.0.0.1:70000', /"127\.0\.0\.1:70000" is no HOST:PORT/],
    ['[::1]:50052', /is no HOST:PORT: a name or an IPv4 address/],
    ['127.0.0.1:1', /the RPC server 127\.0\.0\.1:1 cannot be reached: Connection refused/],
    ['no.such.host.invalid:1', /the host of "no\.such\.host\.invalid:1" has no IPv4 address/],
    ['8.8.8.8:50052', /8\.8\.8\.8:50052 is no address of a private network.*neither authentication.*--rpc-public/],
  ]) {
    it(list, async () => assert.match(await refusal(list), words));
  }

  it('as a variable', async () => assert.match(await refusal('', { LLAMA_ARG_RPC: '127.0.0.1:1' }), /cannot be reached/));

  it('what is silent', async (t) => {
    assert.match(await refusal(await answering(t, null)), /does not answer within 1000 ms/);
  });

  it('what speaks something else', async (t) => {
    assert.match(await refusal(await answering(t, 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')), /is no RPC server/);
  });

  it('another version', async (t) => {
    assert.match(await refusal(await answering(t, greeting(6, 9))), /speaks version 6\.9\.0 of the protocol, and this server 7\.0\.0/);
    assert.match(await refusal(await answering(t, greeting(7, 1))), /version 7\.1\.0/);
  });

  it('what hangs up', async (t) => {
    assert.match(await refusal(await answering(t, Buffer.alloc(0))), /hangs up when it is greeted/);
  });

  it('a device that is not lent', async (t) => {
    const peer = await lend(t);
    const { code, stderr } = await run(['serve', '--port', '0', '--device', 'RPC7', '--rpc', peer.endpoint]);
    assert.equal(code, 2);
    assert.match(stderr, /--device: invalid device: RPC7/);
  });
});

describe('rpc-server', async () => {
  const refusal = async (flags) => {
    const { code, stderr } = await run(['rpc-server', ...flags]);
    return `${code} ${stderr}`;
  };

  it('says what its protocol lacks', async (t) => {
    const peer = await lend(t);
    assert.match(peer.said, /neither authentication nor encryption/);
  });

  it('refuses addresses that others can reach, and what is no address', async () => {
    assert.match(await refusal(['-H', '0.0.0.0']), /^2 .*--host 0\.0\.0\.0 is no address of a private network.*--rpc-public/);
    assert.match(await refusal(['-H', 'localhost']), /^2 .*must be an IPv4 address; got localhost/);
    assert.match(await refusal(['-p', '70000']), /^2 /);
    assert.match(await refusal(['-t', '-1']), /^2 /);
    assert.match(await refusal(['-p', '0', '-d', 'CUDA9']), /^2 .*--device: there is no CUDA9 here, but .*CPU/s);
  });

  it('listens on every address if it is told to', async (t) => {
    const peer = await lend(t, ['-H', '0.0.0.0', '--rpc-public']);
    assert.match(peer.endpoint, /^0\.0\.0\.0:\d+$/);
  });

  it('says that its port is taken', async (t) => {
    const peer = await lend(t);
    assert.match(await refusal(['-p', peer.port]), /^1 .*cannot listen on 127\.0\.0\.1/s);
  });
});
