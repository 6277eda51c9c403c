// Makes page/built, which is committed, of page/src. With --check it writes nothing and fails when page/built is not what
// the sources give: the libraries are pinned by package-lock.json, and esbuild gives the same bytes everywhere.
import { readFile, writeFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { changing } from './pdfjs.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const inSources = (name) => path.join(here, 'src', name);
const inBuilt = (name) => path.join(here, 'built', name);
export const compressedMax = 400 * 1024;
export const pdfCompressedMax = 340 * 1024; // of the reader of PDFs, which a page without a PDF never loads

const inPackage = (name, file) => path.join(here, 'node_modules', name, file);
const manifest = async (name) => JSON.parse(await readFile(inPackage(name, 'package.json'), 'utf8'));

async function notice(name, file) {
  const { version, license } = await manifest(name);
  return `${name} ${version}, ${license}\n\n${(await readFile(file, 'utf8')).replaceAll('*/', '* /').trim()}`;
}

// What the licences of the bundled libraries ask for.
async function notices() {
  const texts = [];
  for (const name of ['marked', 'highlight.js', 'katex']) texts.push(await notice(name, inPackage(name, 'LICENSE')));
  return `/*!\n${texts.join('\n\n')}\n*/`;
}

const options = { bundle: true, minify: true, write: false, charset: 'utf8', logLevel: 'warning', target: 'es2022' };

async function pdfReader() {
  const { version } = await manifest('pdfjs-dist');
  const text = await notice('pdfjs-dist', path.join(here, '../licenses/texts/pdf.js.txt'));
  const { outputFiles: [file] } = await build({
    ...options, entryPoints: [inSources('pdf_worker.js')], format: 'iife', plugins: [changing], legalComments: 'none',
    define: { pdfjsVersion: JSON.stringify(version) }, footer: { js: `/*!\n${text}\n*/` },
  });
  return Buffer.from(file.contents);
}

const sizeOf = (bytes) => gzipSync(bytes, { level: 9 }).length;

export async function bundle() {
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
  const compressed = Object.values(files).reduce((sum, bytes) => sum + sizeOf(bytes), 0);
  if (compressed > compressedMax) throw new Error(`the page has ${compressed} bytes compressed, over ${compressedMax}`);
  files['pdf.js'] = await pdfReader();
  const pdfCompressed = sizeOf(files['pdf.js']);
  if (pdfCompressed > pdfCompressedMax) {
    throw new Error(`the reader of PDFs has ${pdfCompressed} bytes compressed, over ${pdfCompressedMax}`);
  }
  return { files, compressed, pdfCompressed };
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
  const { files, compressed, pdfCompressed } = await bundle();
  const sizes = `${compressed} bytes compressed, and ${pdfCompressed} of the reader of PDFs`;
  const changed = await differences(files);
  if (process.argv.includes('--check')) {
    if (changed.length === 0) return console.log(`page: built of its sources, ${sizes}`);
    console.error(`page: page/built is not what the sources give (${changed.join(', ')}); run: make page`);
    process.exitCode = 1;
    return;
  }
  await mkdir(path.join(here, 'built'), { recursive: true });
  for (const [name, bytes] of Object.entries(files)) await writeFile(inBuilt(name), bytes);
  console.log(`page: ${changed.length ? `new ${changed.join(', ')}` : 'nothing new'}, ${sizes}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
