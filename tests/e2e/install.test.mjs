// `make install PREFIX=…` as a user without rights: everything lies below the prefix, and works from there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync,
  statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { before, after, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { binary } from './server.mjs';

const build = path.resolve(path.dirname(binary), '..');
const rightless = 65534;
const rights = ['setpriv', `--reuid=${rightless}`, `--regid=${rightless}`, '--clear-groups'];
// Root gives its rights up, where others may read its checkout.
const drops = process.getuid() === 0 && spawnSync(rights[0], [...rights.slice(1), 'test', '-r', binary]).status === 0;
const asUser = drops ? rights : [];

describe('make install as a normal user', () => {
  const home = mkdtempSync(path.join(os.tmpdir(), 'chasqui-install-'));
  const prefix = path.join(home, '.local');
  const at = (...names) => path.join(prefix, ...names);
  const runAs = (...command) => {
    const [program, ...args] = [...asUser, ...command];
    const { status, stdout, stderr } = spawnSync(program, args, {
      encoding: 'utf8', cwd: home, env: { PATH: process.env.PATH, HOME: home }, timeout: 60_000,
    });
    return { status, stdout, stderr };
  };
  const install = () => {
    const done = runAs('cmake', '--install', build, '--strip', '--prefix', prefix);
    assert.equal(done.status, 0, done.stderr + done.stdout);
  };

  before(() => {
    if (drops) chownSync(home, rightless, rightless);
    // CMake writes here what it has installed. The build is another user's, who may only be root.
    const manifest = path.join(build, 'install_manifest.txt');
    closeSync(openSync(manifest, 'a'));
    if (drops) chmodSync(manifest, 0o666);
    install();
  });
  after(() => rmSync(home, { recursive: true, force: true }));

  it('puts all that the documents name below the prefix, as the user\'s own', () => {
    for (const file of ['bin/chasqui', 'etc/chasqui/chasqui.toml', 'lib/systemd/system/chasqui.service',
      'lib/systemd/system/chasqui.socket', 'share/bash-completion/completions/chasqui',
      'share/fish/vendor_completions.d/chasqui.fish', 'share/zsh/vendor-completions/_chasqui', 'share/man/man1/chasqui.1.gz',
      'share/man/man1/chasqui-serve.1.gz', 'share/doc/chasqui/README.md', 'share/doc/chasqui/chasqui.spdx.json']) {
      assert.ok(existsSync(at(file)), file);
    }
    const owner = drops ? rightless : process.getuid();
    for (const file of readdirSync(home, { recursive: true })) assert.equal(statSync(path.join(home, file)).uid, owner, file);
    assert.deepEqual(readdirSync(home), ['.local']);
    assert.match(gunzipSync(readFileSync(at('share/man/man1/chasqui.1.gz'))).toString(), /^\.TH/m);
  });

  it('has a binary that answers, a unit that starts it, and its licences', () => {
    const answer = runAs(at('bin/chasqui'), 'chat', '--temp', '0', '--no-history', 'What is Chasqui?');
    assert.equal(answer.status, 0, answer.stderr);
    assert.match(answer.stdout, /Chasqui/);
    const unit = readFileSync(at('lib/systemd/system/chasqui.service'), 'utf8');
    assert.match(unit, new RegExp(`^ExecStart=${at('bin/chasqui')} `, 'm'));
    assert.match(unit, new RegExp(at('etc/chasqui/')));
    assert.equal(readFileSync(at('share/doc/chasqui/copyright'), 'utf8'), runAs(at('bin/chasqui'), 'licenses').stdout);
  });

  it('leaves changed settings alone when it is installed again', () => {
    appendFileSync(at('etc/chasqui/chasqui.toml'), '# mine\n');
    install();
    assert.match(readFileSync(at('etc/chasqui/chasqui.toml'), 'utf8'), /# mine\n$/);
  });
});
