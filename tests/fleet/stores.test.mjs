// The object stores of src/store with real servers: those of test_store run against s3rver, which checks signatures, and
// nginx with its dav modules; and what they say where a server fails.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

import { binary, hangAfter } from '../e2e/server.mjs';
import { freePort, startProxy, temporaryFile } from './nodes.mjs';
import { ToxicProxy } from './toxic.mjs';

const tests = path.join(path.dirname(binary), 'test_store');
// Its package lacks the program.
const s3rver = "require('@20minutes/s3rver/lib/cli').parse(process.argv.slice(1), { from: 'user' })";
const credentials = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER', AWS_REGION: 'eu-west-1' };

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

async function startS3(context) {
  const port = await freePort();
  const directory = path.dirname(temporaryFile(context, 'none', ''));
  // It encrypts what continues a list with DES.
  const args = ['--openssl-legacy-provider', '-e', s3rver, '--', '--directory', directory, '--address', '127.0.0.1',
    '--port', `${port}`, '--configure-bucket', 'bucket'];
  const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  context.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += text;
    if (said.includes('listening')) break;
  }
  assert.match(said, /listening/);
  child.stdout.resume();
  return `http://127.0.0.1:${port}`;
}

// Whose folders are made by MKCOL alone, and whose requests need a name and a password.
async function startDav(context) {
  const [port, certificate] = [await freePort(), await freePort()];
  const password = createHash('sha1').update('pass@word').digest('base64');
  const users = temporaryFile(context, 'users', `nodes:{SHA}${password}\n`);
  const pem = temporaryFile(context, 'pem', '');
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', pem];
  writeFileSync(pem, (await promisify(execFile)('openssl', made)).stdout, { flag: 'a' });
  const conf = temporaryFile(context, 'nginx.conf', `load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
daemon off; pid FOLDER/pid; error_log stderr; user root;
events {}
http {
  access_log off; client_body_temp_path FOLDER/body; client_max_body_size 1g;
  proxy_temp_path FOLDER/proxy; fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${certificate} ssl; ssl_certificate ${pem}; ssl_certificate_key ${pem};
    location = /ready { return 200 "ready"; }
    location /dav/ {
      root FOLDER; auth_basic store; auth_basic_user_file ${users};
      dav_methods PUT DELETE MKCOL; dav_ext_methods PROPFIND;
    }
  }
}
`);
  mkdirSync(path.join(path.dirname(conf), 'dav'));
  await startProxy(context, 'nginx', ['-c', conf], port);
  const url = (at, scheme = 'dav') => `${scheme}://nodes:pass%40word@127.0.0.1:${at}/dav/some%20where/else`;
  return { port, certificate, url };
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
