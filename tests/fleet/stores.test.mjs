// The object stores of src/store with real servers: those of test_store run against s3rver, which checks signatures, and
// nginx with its dav modules; and what they say where a server fails.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

import { binary, hangAfter } from '../e2e/server.mjs';
import { credentials, startDav, startS3 } from './object_stores.mjs';
import { ToxicProxy } from './toxic.mjs';

const tests = path.join(path.dirname(binary), 'test_store');

async function runTests(stores, env, names = '*', count = 4) {
  const all = { ...process.env, ...credentials, ...env, CHASQUI_TEST_STORES: stores };
  const run = promisify(execFile)(tests, [`--gtest_filter=*RealStores.${names}/1_*`], { env: all, timeout: 2 * hangAfter });
  const { stdout } = await run.catch(({ stdout: said, message }) => assert.fail(`${message}${said.slice(0, 3000)}`));
  assert.ok(stdout.includes(`[  PASSED  ] ${count} test`), stdout);
}

// What a message says in each mode of the proxy that fails.
const broken = {
  refuse: 'does not answer', hang: 'nothing came in time', half: 'does not answer', slow: 'nothing came in time',
  corrupt: 'is not what was written',
};

async function runBroken(context, port, stores, env, behind) {
  const proxy = await ToxicProxy.start(context, { host: '127.0.0.1', port });
  for (const [mode, says] of Object.entries(broken)) {
    proxy.mode = mode;
    const more = { ...env, ...behind(proxy.port), CHASQUI_TEST_BROKEN_SAYS: says };
    await runTests(stores, more, 'SayThatTheyAreBroken', 1);
  }
}

it('keeps objects in S3', async (context) => {
  const env = { AWS_ENDPOINT_URL: await startS3(context) };
  await runTests('s3://bucket', env);
  await runTests('s3://bucket/nodes/a', env);
  await runBroken(context, new URL(env.AWS_ENDPOINT_URL).port, 's3://bucket', env, (port) =>
    ({ CHASQUI_TEST_BROKEN_STORE: 's3://bucket', CHASQUI_TEST_BROKEN_ENDPOINT: `http://127.0.0.1:${port}` }));
});

it('keeps objects on a WebDAV server', async (context) => {
  const { port, certificate, url } = await startDav(context);
  await runTests(url(port), {});
  await runBroken(context, port, url(port), {}, (broken) => ({ CHASQUI_TEST_BROKEN_STORE: url(broken) }));
  // Which the machine does not know.
  const env = { CHASQUI_TEST_BROKEN_STORE: url(certificate, 'davs'), CHASQUI_TEST_BROKEN_SAYS: 'certificate' };
  await runTests(url(port), env, 'SayThatTheyAreBroken', 1);
});
