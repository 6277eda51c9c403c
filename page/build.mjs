// Makes page/built, which is committed, of page/src. With --check it writes nothing and fails when page/built is not what
// the sources give: the libraries are pinned by package-lock.json, and esbuild gives the same bytes everywhere.
import { readFile, writeFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const inSources = (name) => path.join(here, 'src', name);
const inBuilt = (name) => path.join(here, 'built', name);
export const compressedMax = 400 * 1024;

// What the licences of the bundled libraries ask for.
async function notices() {
  const texts = [];
  for (const name of ['marked', 'highlight.js', 'katex']) {
    const folder = path.join(here, 'node_modules', name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
    const text = await readFile(path.join(folder, 'LICENSE'), 'utf8');
    texts.push(`${name} ${version}, ${license}\n\n${text.replaceAll('*/', '* /').trim()}`);
  }
  return `/*!\n${texts.join('\n\n')}\n*/`;
}

export async function bundle() {
  const options = { bundle: true, minify: true, write: false, charset: 'utf8', logLevel: 'warning', target: 'es2022' };
  const script = await build({
    ...options, entryPoints: [inSources('main.js')], format: 'iife', legalComments: 'eof', footer: { js: await notices() },
  });
  const style = await build({ ...options, entryPoints: [inSources('page.css')] });
  const files = {
    'index.html': await readFile(inSources('index.html')),
    'page.js': Buffer.from(script.outputFiles[0].contents),
    'page.css': Buffer.from(style.outputFiles[0].contents),
    'favicon.svg': await readFile(inSources('favicon.svg')),
  };
  const compressed = Object.values(files).reduce((sum, bytes) => sum + gzipSync(bytes, { level: 9 }).length, 0);
  if (compressed > compressedMax) throw new Error(`the page has ${compressed} bytes compressed, over ${compressedMax}`);
  return { files, compressed };
}

export async function differences(files) {
  const out = [];
  for (const [name, bytes] of Object.entries(files)) {
    const there = await readFile(inBuilt(name)).catch(() => Buffer.alloc(0));
    if (!there.equals(bytes)) out.push(name);
  }
  return out;
}

async function main() {
  const { files, compressed } = await bundle();
  const changed = await differences(files);
  if (process.argv.includes('--check')) {
    if (changed.length === 0) return console.log(`page: built of its sources, ${compressed} bytes compressed`);
    console.error(`page: page/built is not what the sources give (${changed.join(', ')}); run: make page`);
    process.exitCode = 1;
    return;
  }
  await mkdir(path.join(here, 'built'), { recursive: true });
  for (const [name, bytes] of Object.entries(files)) await writeFile(inBuilt(name), bytes);
  console.log(`page: ${changed.length ? `new ${changed.join(', ')}` : 'nothing new'}, ${compressed} bytes compressed`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
