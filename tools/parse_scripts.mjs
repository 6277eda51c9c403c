// Whether each .mjs file of the repository is a module, without running it: a mistake of syntax is told in a second, and
// not by the tests that it is in, an hour later. By hand: node --experimental-vm-modules tools/parse_scripts.mjs
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import vm from 'node:vm';

// None in a folder that is no checkout.
function scripts() {
  try {
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.mjs'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return listed.split('\n').filter((file) => file && existsSync(file));
  } catch {
    return [];
  }
}

const files = scripts();
let faults = 0;
for (const file of files) {
  try {
    new vm.SourceTextModule(readFileSync(file, 'utf8'), { identifier: file });
  } catch (error) {
    faults += 1;
    console.error(`${file}: ${error} (node --check ${file} shows where)`);
  }
}
if (faults > 0) process.exit(1);
console.log(`scripts: ${files.length} files, all of them modules`);
