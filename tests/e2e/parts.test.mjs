// What the binary tells of itself for packages: licences, the list of its parts (SBOM), manual pages.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import * as test from 'node:test';

import { run } from './server.mjs';

const { describe, it } = test;
const root = path.resolve(import.meta.dirname, '../..');
const said = async (...args) => {
  const { code, stdout, stderr } = await run(args);
  assert.equal(code, 0, stderr);
  return stdout;
};

describe('chasqui licenses', () => {
  it('has each part with its licence and the whole text', async () => {
    const text = await said('licenses');
    const table = (await said('licenses', '--list')).trimEnd().split('\n').slice(1);
    assert.ok(table.length >= 20, `${table.length} parts`);
    for (const row of table) {
      const [name, version] = row.split(/ {2,}/);
      assert.match(text, new RegExp(`^${(/^\d/.test(version) ? `${name} ${version}` : name).replace(/[.+/()]/g, '\\$&')}: `, 'm'), row);
    }
    assert.ok(text.includes(readFileSync(path.join(root, 'LICENSE'), 'utf8')));
    assert.match(text, /GCC RUNTIME LIBRARY EXCEPTION/);
    assert.ok(text.length < 150_000);
  });

  it('takes one form at a time', async () => {
    const { code, stderr } = await run(['licenses', '--list', '--spdx']);
    assert.equal(code, 2);
    assert.match(stderr, /--list/);
  });
});

// What SPDX 2.3 asks of a document (clauses 6, 7 and 11 of its specification).
describe('chasqui licenses --spdx', () => {
  it('is a valid document of SPDX 2.3', async () => {
    const { stdout } = await run(['licenses', '--spdx'], { SOURCE_DATE_EPOCH: '1700000000' });
    const document = JSON.parse(stdout);
    assert.equal(document.spdxVersion, 'SPDX-2.3');
    assert.equal(document.dataLicense, 'CC0-1.0');
    assert.equal(document.SPDXID, 'SPDXRef-DOCUMENT');
    assert.ok(document.name.length > 0);
    assert.ok(!new URL(document.documentNamespace).hash, 'a namespace has no fragment');
    assert.equal(document.creationInfo.created, '2023-11-14T22:13:20Z');
    assert.ok(document.creationInfo.creators.length > 0);
    for (const creator of document.creationInfo.creators) assert.match(creator, /^(Tool|Person|Organization): \S/);
    const ids = new Set(['SPDXRef-DOCUMENT']);
    const listed = ['Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BSL-1.0', 'Beerware', 'GCC-exception-3.1', 'GPL-3.0-or-later', 'ISC', 'MIT',
      'MIT-0', 'MPL-2.0', 'X11-distribute-modifications-variant', 'Zlib', 'curl'];
    for (const each of document.packages) {
      assert.match(each.SPDXID, /^SPDXRef-[A-Za-z0-9.-]+$/);
      assert.ok(!ids.has(each.SPDXID), `${each.SPDXID} stands twice`);
      ids.add(each.SPDXID);
      assert.ok(each.name.length > 0);
      assert.match(each.downloadLocation, /^(NOASSERTION|NONE|https:\/\/\S+)$/, each.name);
      assert.equal(each.filesAnalyzed, false);
      assert.match(each.supplier, /^(Person|Organization): \S/, each.name);
      for (const expression of [each.licenseConcluded, each.licenseDeclared]) {
        for (const word of expression.split(' ')) assert.ok(['AND', 'OR', 'WITH', ...listed].includes(word), `${each.name}: ${word}`);
      }
      for (const reference of each.externalRefs ?? []) {
        assert.equal(reference.referenceCategory, 'PACKAGE-MANAGER');
        assert.equal(reference.referenceType, 'purl');
        assert.match(reference.referenceLocator, /^pkg:(npm|github)\/[^\s@]+@[\w.]+$/, each.name);
      }
    }
    const kinds = new Set(['DESCRIBES', 'CONTAINS', 'DEPENDS_ON']);
    for (const { spdxElementId: from, relationshipType: kind, relatedSpdxElement: to } of document.relationships) {
      assert.ok(ids.has(from) && ids.has(to) && kinds.has(kind), `${from} ${kind} ${to}`);
    }
    const related = document.relationships.map((each) => each.relatedSpdxElement);
    assert.deepEqual(related.toSorted(), [...ids].filter((id) => id !== 'SPDXRef-DOCUMENT').toSorted(), 'each package once');
    assert.deepEqual(document.documentDescribes, ['SPDXRef-Package-Chasqui']);
  });

  it('is the same for the same binary and time', async () => {
    const twice = [0, 1].map(() => run(['licenses', '--spdx'], { SOURCE_DATE_EPOCH: '1' }));
    const [one, two] = await Promise.all(twice);
    assert.equal(one.stdout, two.stdout);
    const now = JSON.parse((await run(['licenses', '--spdx'], { SOURCE_DATE_EPOCH: 'soon' })).stdout);
    assert.match(now.creationInfo.created, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });
});

describe('chasqui man', () => {
  const hasGroff = spawnSync('groff', ['--version']).status === 0;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chasqui-man-'));
  test.after(() => rmSync(folder, { recursive: true }));

  it('has a page for each command, with all its flags', async () => {
    await said('man', '--into', folder);
    const commands = [...(await said('--help')).matchAll(/^ {2}([a-z][a-z-]+)(?:, [a-z]+)? {2,}\S/gm)].map(([, name]) => name);
    assert.ok(commands.length >= 15, commands.join());
    const files = readdirSync(folder).sort();
    assert.deepEqual(files, ['chasqui.1', ...commands.map((name) => `chasqui-${name}.1`)].sort());
    for (const name of commands) {
      const page = readFileSync(path.join(folder, `chasqui-${name}.1`), 'utf8');
      assert.equal(page, await said('man', name));
      assert.match(page, /^\.TH CHASQUI-\S+ 1 [^]*\n\.SH NAME\n[^]*\n\.SH SYNOPSIS\n[^]*\n\.SH OPTIONS\n[^]*\n\.SH SEE ALSO\n/);
      const plain = page.replaceAll('\\-', '-').replaceAll('\\e', '\\');
      for (const [flag] of (await said(name, '--help')).matchAll(/(?<=^ {2,}(?:-\w, ?)?)--[a-z][\w-]*/gm)) {
        assert.ok(plain.includes(`\\fB${flag}\\fR`), `chasqui-${name}.1 lacks ${flag}`);
      }
    }
    assert.equal(await said('man'), readFileSync(path.join(folder, 'chasqui.1'), 'utf8'));
    assert.equal(await said('man', 'run'), await said('man', 'chat'));
  });

  it('is read by groff without a warning', { skip: hasGroff ? false : 'groff is not installed' }, () => {
    for (const file of readdirSync(folder)) {
      const { status, stderr } = spawnSync('groff', ['-k', '-man', '-Tutf8', '-ww', '-z', path.join(folder, file)], { encoding: 'utf8' });
      assert.equal(status, 0, file);
      assert.equal(stderr, '', file);
    }
  });

  it('names the command that it does not have, and the folder that it cannot write', async () => {
    const unknown = await run(['man', 'swim']);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /no subcommand 'swim'/);
    const closed = await run(['man', '--into', '/dev/null/none']);
    assert.equal(closed.code, 1);
    assert.match(closed.stderr, /cannot write \/dev\/null\/none\/chasqui\.1/);
  });
});
